//! BIOS settings as the kernel reports them (Linux, Documentation/ABI/testing/sysfs-class-firmware-attributes).

use crate::sysfs::{is_read_only, names, number, text};
use hwm_sdk::protocol::BiosSetting;
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel driver that offers settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// `dell-wmi-sysman`, `thinklmi`, `hp-bioscfg`.
    pub name: String,
    /// Its settings, by name.
    pub attributes: Vec<Attribute>,
    /// Passwords that are set and without which the firmware takes no change: their names (`Admin`).
    pub locks: Vec<String>,
    directory: PathBuf,
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// What values it can have.
    pub kind: Kind,
    /// Its value; `None` when it cannot be read, or must not be reported.
    pub value: Option<String>,
    /// The kernel does not let it be written.
    pub read_only: bool,
    /// `current_value`.
    file: PathBuf,
}

/// What values a setting can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// One of these.
    Enumeration(Vec<String>),
    /// A whole number.
    Integer {
        /// Smallest.
        min: Option<i64>,
        /// Largest.
        max: Option<i64>,
    },
    /// Text.
    Text {
        /// Shortest, in characters.
        min: Option<u64>,
        /// Longest, in characters.
        max: Option<u64>,
    },
    /// These, in an order of choice, with `;` between them.
    OrderedList(Vec<String>),
    /// A password: its value is never reported.
    Password,
    /// A type that this version does not know.
    Unknown(String),
}

/// All drivers that offer settings, by name.
pub fn drivers(sys: &Path) -> Vec<Driver> {
    let class = sys.join("class/firmware-attributes");
    names(&class).into_iter().map(|name| driver(class.join(&name), name)).collect()
}

fn driver(directory: PathBuf, name: String) -> Driver {
    let settings = directory.join("attributes");
    // Next to the settings, which are directories, there are files: pending_reboot, reset_bios, debug_cmd.
    let attributes =
        names(&settings).into_iter().filter_map(|name| attribute(&settings.join(&name), name)).collect();
    let passwords = directory.join("authentication");
    let locks = names(&passwords).into_iter().filter(|name| locks(&passwords.join(name))).collect();
    Driver { name, attributes, locks, directory }
}

/// Whether it is a password that is set and guards the settings. One that is asked for at power-on or by a disk
/// does not.
fn locks(password: &Path) -> bool {
    let role = text(&password.join("role")).unwrap_or_default();
    let guards = ["bios-admin", "system-mgmt", "enhanced-bios-auth"].contains(&role.as_str());
    guards && text(&password.join("is_enabled")).is_some_and(|flag| flag != "0")
}

fn attribute(directory: &Path, name: String) -> Option<Attribute> {
    let kind = kind(directory, &name, text(&directory.join("type"))?);
    let file = directory.join("current_value");
    let value = if kind == Kind::Password { None } else { read(&file) };
    let read_only = is_read_only(&file);
    Some(Attribute { name, kind, value, read_only, file })
}

fn kind(directory: &Path, name: &str, word: String) -> Kind {
    let list = |file: &str| -> Vec<String> {
        let text = text(&directory.join(file)).unwrap_or_default();
        text.split(';').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect()
    };
    let file = |file: &str| directory.join(file);
    match word.as_str() {
        "enumeration" => Kind::Enumeration(list("possible_values")),
        "integer" => Kind::Integer { min: number(&file("min_value")), max: number(&file("max_value")) },
        "string" if name.to_lowercase().contains("password") => Kind::Password,
        "string" => Kind::Text { min: number(&file("min_length")), max: number(&file("max_length")) },
        "ordered-list" => Kind::OrderedList(list("elements")),
        _ => Kind::Unknown(word),
    }
}

/// An empty value is a value.
fn read(file: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(file).ok()?).trim().to_owned())
}

impl Driver {
    /// Whether a change waits for the next boot.
    pub fn pending_reboot(&self) -> bool {
        text(&self.directory.join("attributes/pending_reboot")).is_some_and(|flag| flag != "0")
    }
}

impl Attribute {
    /// Its value as it is now.
    pub fn read(&self) -> Option<String> {
        read(&self.file)
    }

    /// Give it another value.
    ///
    /// # Errors
    /// The kernel's; the firmware may have refused it.
    pub fn write(&self, value: &str) -> std::io::Result<()> {
        fs::write(&self.file, value)
    }
}

/// A setting in Ironic's words.
pub fn setting(attribute: &Attribute) -> BiosSetting {
    let plain = BiosSetting {
        name: attribute.name.clone(),
        value: attribute.value.clone(),
        read_only: attribute.read_only.then_some(true),
        ..BiosSetting::default()
    };
    let of = |kind: &str| Some(kind.to_owned());
    match &attribute.kind {
        Kind::Enumeration(values) => BiosSetting {
            attribute_type: of("Enumeration"),
            allowable_values: (!values.is_empty()).then(|| values.clone()),
            ..plain
        },
        &Kind::Integer { min, max } => {
            BiosSetting { attribute_type: of("Integer"), lower_bound: min, upper_bound: max, ..plain }
        }
        &Kind::Text { min, max } => {
            BiosSetting { attribute_type: of("String"), min_length: min, max_length: max, ..plain }
        }
        Kind::Password => BiosSetting { attribute_type: of("Password"), ..plain },
        Kind::OrderedList(_) | Kind::Unknown(_) => BiosSetting { attribute_type: of("String"), ..plain },
    }
}
