//! `verify_firmware`: has every component the firmware that a baseline asks for?
//!
//! Components are what sysfs reports in-band: `bios_version`, `bios_vendor`, `bios_date` (SMBIOS), and
//! `disk:MODEL` for all disks of a model, whose version is `firmware_rev` of NVMe and `rev` of SCSI and SATA (four
//! characters: SCSI INQUIRY has no room for more). Not here: NICs, whose version only ethtool(8)'s ioctl
//! returns, and the BMC, which reports its own out-of-band.

use crate::finding::Finding;
use crate::sysfs::text;
use crate::version;
use agent_protocol::schema;
use block::Disk;
use hwm_sdk::{StepCall, StepError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the argument, and of nothing else.
pub const ARGUMENT: &str = "baseline";
const PROPERTY: &str = "node.properties.firmware_baseline";
const AT_LEAST: &str = ">=";

/// What a baseline looks like.
pub fn schema() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

/// What a component must have.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Exactly(String),
    AtLeast(String),
}

/// Components and what they must have; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline(BTreeMap<String, Wanted>);

/// One piece of firmware that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// `bios_version`, `disk:MODEL`.
    pub component: String,
    /// The device, when there may be several.
    pub device: Option<String>,
    /// `None`: it does not report its version.
    pub version: Option<String>,
}

impl Baseline {
    /// From the argument, else from the node's properties.
    ///
    /// # Errors
    /// [`StepError::Argument`] when there is none, or it is not one.
    pub fn of(call: &StepCall) -> Result<Self, StepError> {
        let property = &call.node["properties"]["firmware_baseline"];
        let (name, value) = match call.args.get(ARGUMENT) {
            Some(given) => (ARGUMENT, given),
            None => (PROPERTY, property),
        };
        let wrong = |problem: String| StepError::Argument { name: name.to_owned(), problem };
        if value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty) {
            return Err(wrong(format!(
                "there is no firmware baseline to verify against: give the argument {ARGUMENT:?}, or set {PROPERTY}"
            )));
        }
        schema::check(name, &schema(), value).map_err(|problem| StepError::argument(name, &problem))?;
        let mut baseline = BTreeMap::new();
        for (component, version) in value.as_object().into_iter().flatten() {
            let wanted = Wanted::parse(version.as_str().unwrap_or_default())
                .map_err(|problem| wrong(format!("{component}: {problem}")))?;
            baseline.insert(component.clone(), wanted);
        }
        Ok(Self(baseline))
    }

    /// Compare. Pure. A component that the node does not have differs, and so does one that hides its version.
    pub fn compare(&self, installed: &[Installed]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (component, wanted) in &self.0 {
            let mut present = installed.iter().filter(|one| one.component == *component).peekable();
            if present.peek().is_none() {
                let found = "no such component".to_owned();
                let (item, expected) = (component.clone(), wanted.to_string());
                findings.push(Finding { item, expected, found, agrees: false });
            }
            findings.extend(present.map(|one| Finding {
                item: match &one.device {
                    Some(device) => format!("{component} ({device})"),
                    None => component.clone(),
                },
                expected: wanted.to_string(),
                found: one.version.clone().unwrap_or_else(|| "no reported version".into()),
                agrees: one.version.as_deref().is_some_and(|version| wanted.holds(version)),
            }));
        }
        findings
    }
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, String> {
        let (at_least, version) = match text.trim().strip_prefix(AT_LEAST) {
            Some(version) => (true, version.trim()),
            None => (false, text.trim()),
        };
        match version.chars().next() {
            None => Err("no version".into()),
            // Taken for a part of the version, it would make every run fail with a misleading text.
            Some('<' | '=' | '>' | '!' | '~' | '^') => {
                Err(format!("must be a version, or {AT_LEAST} and a version"))
            }
            Some(_) if at_least => Ok(Self::AtLeast(version.to_owned())),
            Some(_) => Ok(Self::Exactly(version.to_owned())),
        }
    }

    fn holds(&self, version: &str) -> bool {
        match self {
            Self::Exactly(wanted) => version == wanted,
            Self::AtLeast(wanted) => version::compare(version, wanted).is_ge(),
        }
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Exactly(version) => formatter.write_str(version),
            Self::AtLeast(version) => write!(formatter, "{AT_LEAST}{version}"),
        }
    }
}

/// The installed firmware, by sysfs at `sys`. Components that report no version are listed without one.
pub fn installed(sys: &Path, disks: &[Disk]) -> Vec<Installed> {
    let bios = ["bios_version", "bios_vendor", "bios_date"].map(|component| Installed {
        component: component.to_owned(),
        device: None,
        version: text(&sys.join("class/dmi/id").join(component)),
    });
    let disk = |disk: &Disk| {
        let device = sys.join("block").join(&disk.name).join("device");
        Some(Installed {
            component: format!("disk:{}", disk.model.as_ref()?),
            device: Some(disk.path.to_string_lossy().into_owned()),
            version: text(&device.join("firmware_rev")).or_else(|| text(&device.join("rev"))),
        })
    };
    bios.into_iter().chain(disks.iter().filter_map(disk)).collect()
}

/// Firmware by the names of Ironic's firmware API, with its version: `bios`, `disk:/dev/sda`, `ec` (embedded controller). Firmware that reports no
/// version is left out.
pub fn components(sys: &Path, disks: &[Disk]) -> Vec<(String, String)> {
    let component = |one: Installed| {
        let name = match one.device {
            Some(device) => format!("disk:{device}"),
            None => one.component.strip_suffix("_version")?.to_owned(),
        };
        Some((name, one.version?))
    };
    let embedded_controller = text(&sys.join("class/dmi/id/ec_firmware_release"));
    let embedded_controller = embedded_controller.map(|version| ("ec".to_owned(), version));
    installed(sys, disks).into_iter().filter_map(component).chain(embedded_controller).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hwm_sdk::StepKind;
    use serde_json::Map;

    fn baseline(argument: Option<Value>, property: Value) -> Result<Baseline, String> {
        let step = crate::STEPS.iter().find(|step| step.step == crate::VERIFY_FIRMWARE);
        Baseline::of(&StepCall {
            kind: StepKind::Clean,
            step: step.and_then(|step| step.step(StepKind::Clean)).expect("declared"),
            args: argument.map(|value| (ARGUMENT.to_owned(), value)).into_iter().collect::<Map<_, _>>(),
            node: json!({ "properties": { "firmware_baseline": property } }),
            inventory: Default::default(),
        })
        .map_err(|error| error.to_string())
    }

    fn found(component: &str, device: Option<&str>, version: Option<&str>) -> Installed {
        Installed {
            component: component.into(),
            device: device.map(str::to_owned),
            version: version.map(str::to_owned),
        }
    }

    #[test]
    fn every_component_is_compared_with_the_baseline_and_every_difference_is_reported() {
        let wanted = json!({"bios_version": ">=2.10", "disk:FAST": "GDC5602Q", "nic": "1", "bios_date": ">= 2023-01-01"});
        let installed = [
            found("bios_version", None, Some("2.9")),
            found("bios_vendor", None, Some("any")),
            found("bios_date", None, Some("03/15/2023")),
            found("disk:FAST", Some("/dev/nvme0n1"), Some("GDC5602Q")),
            found("disk:FAST", Some("/dev/nvme1n1"), Some("GDC5602R")),
            found("disk:FAST", Some("/dev/nvme2n1"), None),
        ];
        let findings = baseline(Some(wanted), Value::Null).expect("a baseline").compare(&installed);
        let compared: Vec<(&str, &str, &str, bool)> = findings
            .iter()
            .map(|f| (f.item.as_str(), f.expected.as_str(), f.found.as_str(), f.agrees))
            .collect();
        assert_eq!(
            compared,
            [
                ("bios_date", ">=2023-01-01", "03/15/2023", true),
                ("bios_version", ">=2.10", "2.9", false),
                ("disk:FAST (/dev/nvme0n1)", "GDC5602Q", "GDC5602Q", true),
                ("disk:FAST (/dev/nvme1n1)", "GDC5602Q", "GDC5602R", false),
                ("disk:FAST (/dev/nvme2n1)", "GDC5602Q", "no reported version", false),
                ("nic", "1", "no such component", false),
            ]
        );
    }

    #[test]
    fn the_argument_wins_over_the_property_and_no_baseline_is_a_failure_that_says_so() {
        let property = json!({"bios_version": "1"});
        assert_eq!(baseline(None, property.clone()), baseline(Some(property.clone()), Value::Null));
        assert_eq!(
            baseline(Some(json!({"bios_version": "2"})), property),
            baseline(Some(json!({"bios_version": "2"})), Value::Null)
        );
        for (argument, property) in
            [(None, Value::Null), (None, json!({})), (Some(json!({})), json!({"a": "1"}))]
        {
            let error = baseline(argument, property).expect_err("refused");
            assert!(error.contains("no firmware baseline") && error.contains(PROPERTY), "{error}");
        }
    }

    #[test]
    fn a_baseline_that_is_none_is_refused_by_name() {
        let error = baseline(None, json!({"bios_version": 2})).expect_err("refused");
        assert!(error.contains(PROPERTY) && error.contains(": bios_version must be a string"), "{error}");
        for version in ["", ">=", "> 2", "<3", "== 2", ">=>2"] {
            let error = baseline(Some(json!({"bios_version": version})), Value::Null).expect_err(version);
            assert!(error.contains("bios_version: "), "{error}");
        }
    }
}
