//! Which loader an image brings, and by which label, as ironic-python-agent finds them: the list that shim's fallback
//! program reads, `EFI/debian/BOOTX64.CSV`, else `EFI/BOOT/BOOTX64.EFI`.

use crate::fat::{Entry, Fat, FatError, Source};

/// The label of an image that brings none.
pub const LABEL: &str = "anneal";
/// A label in the firmware's menu.
const LONGEST_LABEL: usize = 80;

/// What the firmware runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64
    X64,
    /// AArch64
    Aa64,
}

impl Architecture {
    /// Of this program; `None` where UEFI is not known to be.
    pub fn here() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X64),
            "aarch64" => Some(Self::Aa64),
            _ => None,
        }
    }

    /// `BOOTX64`
    fn stem(self) -> &'static str {
        match self {
            Self::X64 => "BOOTX64",
            Self::Aa64 => "BOOTAA64",
        }
    }
}

/// A loader on an EFI system partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loader {
    /// `\EFI\debian\shimx64.efi`
    pub path: String,
    /// Its label.
    pub label: String,
    /// What it is given.
    pub options: String,
}

/// Why there is no loader.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// The file system.
    #[error(transparent)]
    Fat(#[from] FatError),
    /// Neither a list nor a loader.
    #[error("it has neither EFI/*/{0}.CSV nor EFI/BOOT/{0}.EFI")]
    None(&'static str),
    /// A list that is none.
    #[error("{list}: {problem}")]
    List {
        /// Its path.
        list: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The list names what is not there.
    #[error("{list} names the loader {loader}, which is not there")]
    Missing {
        /// Its path.
        list: String,
        /// The path of the loader.
        loader: String,
    },
}

/// The loader that the firmware shall start.
///
/// # Errors
/// [`LoaderError`]
pub fn find<S: Source + ?Sized>(fat: &Fat<S>, architecture: Architecture) -> Result<Loader, LoaderError> {
    let stem = architecture.stem();
    let none = || LoaderError::None(stem);
    let efi = directory(fat.root()?, "EFI").ok_or_else(none)?;
    let mut vendors: Vec<Entry> = fat.list(&efi)?.into_iter().filter(|entry| entry.directory).collect();
    vendors.sort_by(|a, b| a.name.cmp(&b.name));
    for vendor in &vendors {
        let files = fat.list(vendor)?;
        let named = |name: &str| files.iter().find(|entry| !entry.directory && entry.is(name));
        if let Some(list) = named(&format!("{stem}.CSV")).or_else(|| named("BOOT.CSV")) {
            let path = format!("{}/{}/{}", efi.name, vendor.name, list.name);
            return listed(fat, &path, list, &[&efi, vendor]);
        }
    }
    let boot = vendors.iter().find(|vendor| vendor.is("BOOT")).ok_or_else(none)?;
    let file = format!("{stem}.EFI");
    let found = fat.list(boot)?.into_iter().find(|entry| !entry.directory && entry.is(&file));
    let found = found.filter(|entry| entry.size > 0).ok_or_else(none)?;
    let path = format!("\\{}\\{}\\{}", efi.name, boot.name, found.name);
    Ok(Loader { path, label: LABEL.to_owned(), options: String::new() })
}

fn directory(entries: Vec<Entry>, name: &str) -> Option<Entry> {
    entries.into_iter().find(|entry| entry.directory && entry.is(name))
}

/// The loader of a list, which must be there.
fn listed<S: Source + ?Sized>(
    fat: &Fat<S>,
    list: &str,
    file: &Entry,
    directories: &[&Entry; 2],
) -> Result<Loader, LoaderError> {
    let wrong = |problem| LoaderError::List { list: list.to_owned(), problem };
    let line = parse(&fat.content(file)?).map_err(wrong)?;
    let [efi, vendor] = directories.map(|entry| entry.name.as_str());
    let mut path = format!("\\{efi}\\{vendor}");
    let mut here = directories[1].clone();
    for part in line.loader.split('\\') {
        path.push('\\');
        path.push_str(part);
        // A file has nothing below it.
        let below = if here.directory { fat.list(&here)? } else { Vec::new() };
        let found = below.into_iter().find(|entry| entry.is(part));
        here = found.ok_or_else(|| LoaderError::Missing { list: list.to_owned(), loader: path.clone() })?;
    }
    if here.directory || here.size == 0 {
        return Err(LoaderError::Missing { list: list.to_owned(), loader: path });
    }
    Ok(Loader { path, label: line.label, options: line.options })
}

/// The first line of a list.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    loader: String,
    label: String,
    options: String,
}

/// `loader,label,options,comment` in UTF-16, or in UTF-8 where it was written by hand.
fn parse(bytes: &[u8]) -> Result<Line, &'static str> {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest),
        [_, 0, ..] => wide(bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).ok_or("it is empty")?;
    let mut fields = line.split(',').map(str::trim);
    let mut field = || fields.next().unwrap_or_default().to_owned();
    let (loader, label, options) = (field(), field(), field());
    let parts = loader.split('\\');
    if parts.clone().any(|part| matches!(part, "" | "." | "..") || part.contains(['/', ':'])) {
        return Err("its first line names no file next to it");
    }
    if [&loader, &label, &options].iter().any(|text| text.contains(char::is_control)) {
        return Err("its first line has control characters");
    }
    if label.chars().count() > LONGEST_LABEL {
        return Err("its label has more than 80 characters");
    }
    let label = if label.is_empty() { LABEL.to_owned() } else { label };
    Ok(Line { loader, label, options })
}

fn wide(bytes: &[u8]) -> String {
    crate::text(bytes).0
}
