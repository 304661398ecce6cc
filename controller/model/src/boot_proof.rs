//! What the TPM of a node proves of its boots, and what is known of that TPM (docs/decisions/0070).

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Key of `driver_info` that decides for one node whether its TPM has to prove each boot; without it the configuration decides.
pub const REQUIRE_TPM: &str = "require_tpm";

/// Platform configuration registers of the firmware, which are recorded at enrolment and change by an operator's word alone: its
/// code, the option ROMs and their settings, and the state of Secure Boot (TCG PC Client Platform Firmware Profile, 3.3.4).
pub const FIRMWARE_PCRS: [u8; 4] = [0, 2, 3, 7];

/// Most events of one register that are kept: more than a firmware measures there.
const EVENTS_MAX: usize = 64;
/// Longest name of what was measured that is kept, in bytes.
const NAME_MAX: usize = 120;

/// Whether a node with this `driver_info` gets a token only after its TPM has proved its boot.
///
/// # Errors
/// One sentence about a value that is neither true nor false, which counts as true.
pub fn is_required(driver_info: &Map<String, Value>, configured: bool) -> Result<bool, String> {
    let refused = |value: &Value| format!("driver_info['{REQUIRE_TPM}'] is {value}, neither true nor false");
    match driver_info.get(REQUIRE_TPM) {
        None | Some(Value::Null) => Ok(configured),
        Some(Value::Bool(on)) => Ok(*on),
        Some(Value::String(word)) => match word.trim().to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "on" | "y" | "yes" => Ok(true),
            "0" | "f" | "false" | "off" | "n" | "no" => Ok(false),
            _ => Err(refused(&Value::String(word.clone()))),
        },
        Some(other) => Err(refused(other)),
    }
}

/// One boot, as its TPM proved it: only the agent with these keys may speak for the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootProof {
    /// When the controller accepted it.
    pub at: Timestamp,
    /// Boot id of the agent that proved it.
    pub boot_id: String,
    /// Name of the endorsement key that is in one TPM with the attestation key: hexadecimal digits, with the algorithm first.
    pub endorsement_key: String,
    /// SHA-256 of the quote (`TPMS_ATTEST`), 64 hexadecimal digits.
    pub quote_sha256: String,
    /// SHA-256 of the agent's certificate (DER), 64 hexadecimal digits.
    pub tls_certificate: String,
    /// The key with which the agent signs evidence: `ed25519:` and 64 hexadecimal digits.
    pub evidence_key: String,
}

/// The TPM of a node, and what its firmware measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TpmRecord {
    /// What makes it this TPM and no other.
    pub endorsement_key: EndorsementKey,
    /// When it was recorded.
    pub enrolled_at: Timestamp,
    /// What each boot must measure.
    pub measurements: Measurements,
    /// When these were recorded or accepted.
    pub accepted_at: Timestamp,
    /// What a boot of the same TPM measured in their place, until an operator accepts it or a boot measures the same again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<PendingMeasurements>,
}

/// The endorsement key of a TPM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndorsementKey {
    /// `TPMT_PUBLIC` in base64.
    pub public: String,
    /// Its Name: hexadecimal digits, with the algorithm first.
    pub name: String,
    /// The certificate that the TPM has for it, as base64 of its DER; it was not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}

/// What a boot measured that is not as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingMeasurements {
    /// All of it.
    pub measurements: Measurements,
    /// When a boot first proved it.
    pub at: Timestamp,
}

/// What a boot measured besides the ramdisk, whose measurements are predicted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurements {
    /// Registers of the SHA-256 bank, [`FIRMWARE_PCRS`].
    pub registers: BTreeMap<u8, Register>,
    /// Digests of programs that the firmware started besides the ramdisk: 64 hexadecimal digits each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// One register.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// Its value: 64 hexadecimal digits.
    pub digest: String,
    /// What was measured into it, in order; at most [`EVENTS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Measurement>,
}

/// One measurement, as the firmware logged it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// What it is, in the firmware's words: `EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot`. Proved is the digest alone.
    pub name: String,
    /// What the register was extended with: 64 hexadecimal digits.
    pub digest: String,
}

/// How one register differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference<'a> {
    /// Number of the register.
    pub pcr: u8,
    /// Its recorded value; `None`: it was not recorded.
    pub recorded: Option<&'a str>,
    /// Its value now; `None`: it is not quoted.
    pub now: Option<&'a str>,
    /// What was measured before and is not now.
    pub gone: Vec<&'a Measurement>,
    /// What is measured now and was not before.
    pub new: Vec<&'a Measurement>,
}

impl Register {
    /// A register with this value and these events. What is beyond the limits of a record is left out: the value counts.
    pub fn new(digest: String, events: impl Iterator<Item = Measurement>) -> Self {
        let short = |mut event: Measurement| {
            let mut end = event.name.len().min(NAME_MAX);
            while !event.name.is_char_boundary(end) {
                end -= 1;
            }
            event.name.truncate(end);
            event
        };
        Self { digest, events: events.take(EVENTS_MAX).map(short).collect() }
    }
}

impl Measurements {
    /// SHA-256 over all values, 64 hexadecimal digits: an operator accepts these and no others. How firmware calls what it
    /// measured is no part of it.
    pub fn id(&self) -> String {
        let mut digest = Sha256::new();
        for (pcr, register) in &self.registers {
            digest.update(format!("pcr {pcr} {}\n", register.digest));
        }
        for program in &self.programs {
            digest.update(format!("program {program}\n"));
        }
        digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The programs among these that are not among those that were `recorded`.
    pub fn new_programs<'a>(&'a self, recorded: &Self) -> Vec<&'a str> {
        let new = self.programs.iter().filter(|program| !recorded.programs.contains(program));
        new.map(String::as_str).collect()
    }

    /// The registers whose values differ from those that were `recorded`.
    pub fn differences<'a>(recorded: &'a Self, now: &'a Self) -> Vec<Difference<'a>> {
        let pcrs: BTreeSet<u8> = recorded.registers.keys().chain(now.registers.keys()).copied().collect();
        let differs = pcrs.into_iter().filter_map(|pcr| {
            let (before, after) = (recorded.registers.get(&pcr), now.registers.get(&pcr));
            let value = |register: Option<&'a Register>| register.map(|register| register.digest.as_str());
            if value(before) == value(after) {
                return None;
            }
            let events = |of: Option<&'a Register>| of.map(|of| of.events.as_slice()).unwrap_or_default();
            let (was, is) = (events(before), events(after));
            Some(Difference {
                pcr,
                recorded: value(before),
                now: value(after),
                gone: missing(was, is),
                new: missing(is, was),
            })
        });
        differs.collect()
    }
}

/// Those of `these` that are not among `those`, each counted.
fn missing<'a>(these: &'a [Measurement], those: &[Measurement]) -> Vec<&'a Measurement> {
    let mut left: Vec<&str> = those.iter().map(|event| event.digest.as_str()).collect();
    let is_missing = |event: &&Measurement| match left.iter().position(|digest| *digest == event.digest) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    these.iter().filter(is_missing).collect()
}

impl TpmRecord {
    /// A TPM that is recorded now.
    pub fn new(endorsement_key: EndorsementKey, measurements: Measurements, now: Timestamp) -> Self {
        Self { endorsement_key, enrolled_at: now, measurements, accepted_at: now, changed: None }
    }

    /// Note what a boot measured in place of what is recorded. False if the same is noted already.
    pub fn note_change(&mut self, measurements: Measurements, now: Timestamp) -> bool {
        if self.changed.as_ref().is_some_and(|changed| changed.measurements.id() == measurements.id()) {
            return false;
        }
        self.changed = Some(PendingMeasurements { measurements, at: now });
        true
    }

    /// Take the changed measurements with this [`Measurements::id`] for the recorded ones. False, and nothing changed, if there
    /// are none with it.
    pub fn accept(&mut self, id: &str, now: Timestamp) -> bool {
        match self.changed.take() {
            Some(changed) if changed.measurements.id() == id => {
                self.measurements = changed.measurements;
                self.accepted_at = now;
                true
            }
            other => {
                self.changed = other;
                false
            }
        }
    }
}

/// The first digits of a digest or a Name, for a sentence.
pub fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(name: &str, digest: &str) -> Measurement {
        Measurement { name: name.to_owned(), digest: digest.to_owned() }
    }

    /// Number, value, and what was measured into it: names and digests.
    type Expected<'a> = (u8, &'a str, &'a [(&'a str, &'a str)]);

    fn measured(registers: &[Expected<'_>]) -> Measurements {
        let register = |(pcr, digest, events): &Expected<'_>| {
            let events = events.iter().map(|(name, digest)| event(name, digest));
            (*pcr, Register::new((*digest).to_owned(), events))
        };
        Measurements { registers: registers.iter().map(register).collect(), programs: Vec::new() }
    }

    #[test]
    fn a_value_that_is_neither_true_nor_false_is_named() {
        let required = |value: Value| is_required(&Map::from_iter([(REQUIRE_TPM.to_owned(), value)]), false);
        assert_eq!(is_required(&Map::new(), true), Ok(true));
        assert_eq!((required(json!(true)), required(json!("Yes"))), (Ok(true), Ok(true)));
        assert_eq!((required(json!(false)), required(json!(null))), (Ok(false), Ok(false)));
        assert_eq!(
            required(json!("maybe")).unwrap_err(),
            "driver_info['require_tpm'] is \"maybe\", neither true nor false"
        );
    }

    #[test]
    fn a_difference_names_what_is_gone_and_what_is_new() {
        let before =
            measured(&[(0, "aa", &[("firmware", "1")]), (7, "bb", &[("SecureBoot", "2"), ("db", "3")])]);
        let after =
            measured(&[(0, "aa", &[("other name", "1")]), (7, "cc", &[("SecureBoot", "4"), ("db", "3")])]);
        assert_ne!(before.id(), after.id());
        let mut renamed = before.clone();
        renamed.registers.get_mut(&0).unwrap().events[0].name = "other name".to_owned();
        assert_eq!(renamed.id(), before.id(), "names are no proof");
        let more = Measurements { programs: vec!["dd".to_owned()], ..before.clone() };
        assert_ne!(more.id(), before.id());
        assert_eq!((more.new_programs(&before), before.new_programs(&more)), (vec!["dd"], Vec::new()));
        let differences = Measurements::differences(&before, &after);
        assert_eq!(differences.len(), 1);
        let Difference { pcr, recorded, now, gone, new } = &differences[0];
        assert_eq!((*pcr, *recorded, *now), (7, Some("bb"), Some("cc")));
        assert_eq!((gone[0].digest.as_str(), new[0].digest.as_str()), ("2", "4"));
        assert_eq!((gone.len(), new.len()), (1, 1));
        // One of two equal events is gone.
        let twice = measured(&[(2, "aa", &[("rom", "1"), ("rom", "1")])]);
        let once = measured(&[(2, "bb", &[("rom", "1")])]);
        assert_eq!(Measurements::differences(&twice, &once)[0].gone.len(), 1);
    }

    #[test]
    fn an_operator_accepts_what_was_shown_and_nothing_else() {
        let key = EndorsementKey { public: "AA".into(), name: "000b".into(), certificate: None };
        let mut record = TpmRecord::new(key, measured(&[(0, "aa", &[])]), Timestamp(1));
        let (second, third) = (measured(&[(0, "bb", &[])]), measured(&[(0, "cc", &[])]));
        assert!(record.note_change(second.clone(), Timestamp(2)));
        assert!(!record.note_change(second.clone(), Timestamp(3)), "known");
        assert_eq!(record.changed.as_ref().unwrap().at, Timestamp(2));
        assert!(record.note_change(third.clone(), Timestamp(4)));
        assert!(!record.accept(&second.id(), Timestamp(5)), "another boot has measured something else since");
        assert!(record.changed.is_some() && record.measurements.registers[&0].digest == "aa");
        assert!(record.accept(&third.id(), Timestamp(5)));
        assert_eq!(
            (record.measurements.registers[&0].digest.as_str(), record.accepted_at),
            ("cc", Timestamp(5))
        );
        assert!(record.changed.is_none() && !record.accept(&third.id(), Timestamp(6)));
    }

    #[test]
    fn what_a_firmware_logs_is_bounded() {
        let events = (0..1000).map(|number| event(&"\u{e4}".repeat(100), &number.to_string()));
        let register = Register::new("aa".into(), events);
        assert_eq!(register.events.len(), EVENTS_MAX);
        assert!(register.events.iter().all(|event| event.name.len() <= NAME_MAX));
    }
}
