//! How to erase: what the node's `driver_internal_info` and `properties` say, in Ironic's keys, and the arguments of
//! the step.

use crate::pace::STALL;
use crate::storage_controllers;
use agent_protocol::record::{IgnoredController, REQUIRE_VERIFICATION};
use block::opal::Psid;
use block::{EraseRequest, Fill, Level, Method, Passes, Reason, RequiredVerification};
use hwm_sdk::StepError;
use root_device::Hint;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;
use std::time::Duration;

/// More disks than this at once gain nothing and cost memory.
const MOST: usize = 16;

/// Argument: the level every disk must reach.
pub(crate) const LEVEL: &str = "level";
/// Argument: methods below the level that may be used.
pub(crate) const ALLOW: &str = "allow";
/// Argument: reasons for which a disk may be left alone.
pub(crate) const LEAVE: &str = "leave";
/// Argument: reasons to leave a disk that are ignored.
pub(crate) const DESPITE: &str = "despite";
/// Argument: the longest that one method may take on one disk.
pub(crate) const BUDGET: &str = "time_budget_s";
/// Argument: the longest that the step may take.
pub(crate) const DEADLINE: &str = "deadline_s";

/// Argument: sectors that a drive hides are given back.
pub(crate) const REVEAL: &str = "remove_hidden";
/// Argument: how often a disk is overwritten.
pub(crate) const PASSES: &str = "passes";
/// Argument: what with, in the last pass.
pub(crate) const PATTERN: &str = "pattern";
/// More passes than this are an input error: no standard ever required more.
pub(crate) const MOST_PASSES: u8 = 35;

/// How to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Disks worked on at once, 1..=16 (`disk_erasure_concurrency`; without it as many as there are).
    pub concurrency: usize,
    /// PSIDs of TCG Opal drives by serial number (`driver_info.agent_opal_psids`).
    pub psids: BTreeMap<String, Psid>,
    /// What is wanted of each disk.
    pub request: EraseRequest,
    /// How long a disk may make no progress before the stall is reported (`agent_erase_stall_s`).
    pub stall: Duration,
    /// How long the step may take; `None`: by the plan's estimate.
    pub deadline: Option<Duration>,
    /// What an erase must be verified by (`agent_require_verification`).
    pub required: RequiredVerification,
    /// Storage controllers that may be without a driver (`properties.ignored_controllers`).
    pub ignored_controllers: Vec<IgnoredController>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            concurrency: MOST,
            psids: BTreeMap::new(),
            request: EraseRequest::default(),
            stall: STALL,
            deadline: None,
            required: RequiredVerification::default(),
            ignored_controllers: Vec::new(),
        }
    }
}

impl Settings {
    /// From the node as the controller sent it. Absent keys have their defaults.
    ///
    /// # Errors
    /// [`StepError::Argument`] for a value of the wrong kind: an erase must not guess its settings.
    pub fn from_node(node: &Value) -> Result<Self, StepError> {
        let info = &node["driver_internal_info"];
        let flag = |name: &str, absent: bool| setting(info, name, absent, "true or false", Value::as_bool);
        let at_least_1 = "a whole number of at least 1";
        let concurrency = setting(info, "disk_erasure_concurrency", MOST, at_least_1, |value| {
            let count = value.as_u64().filter(|&count| count > 0)?;
            Some(usize::try_from(count).unwrap_or(MOST).min(MOST))
        })?;
        let mut request = EraseRequest::default();
        let level = |value: &Value| value.as_str().and_then(Level::of);
        request.level = setting(info, "agent_erase_level", request.level, "clear or purge", level)?;
        if flag("agent_erase_skip_read_only", false)? {
            request.policy.leave.insert(Reason::ReadOnly);
        }
        if flag("wipe_special_filesystems", false)? {
            request.policy.despite.insert(Reason::Shared);
        }
        request.policy.reveal = flag("agent_remove_hidden_areas", false)?;
        if !flag("agent_enable_nvme_secure_erase", true)? {
            request.policy.never.extend([Method::NvmeFormat, Method::NvmeFormatCrypto]);
        }
        if !flag("agent_enable_ata_secure_erase", true)? {
            request.policy.never.extend([Method::AtaErase, Method::AtaEnhancedErase]);
        }
        // Which Ironic called by another name once.
        let goes_on = flag("agent_continue_if_ata_erase_failed", true)?;
        request.policy.insist = !flag("agent_continue_if_secure_erase_failed", goes_on)?;
        request.overwrite = passes(info)?;
        request.policy.skip = skip_list(&node["properties"]["skip_block_devices"])?;
        let word = |value: &Value| value.as_str().and_then(RequiredVerification::of);
        let default = RequiredVerification::default();
        let required = setting(info, REQUIRE_VERIFICATION, default, "read, device or none", word)?;
        let stall = setting(info, "agent_erase_stall_s", STALL, at_least_1, seconds)?;
        Ok(Settings {
            concurrency,
            psids: psids(&node["driver_info"]["agent_opal_psids"])?,
            request,
            stall,
            deadline: None,
            required,
            ignored_controllers: storage_controllers::ignored(&node["properties"]["ignored_controllers"])?,
        })
    }

    /// With the arguments of the step, which take precedence. The agent has checked them against their schemas.
    ///
    /// # Errors
    /// [`StepError::Argument`] for one that is not known, or has a value that is not.
    pub fn with_arguments(
        mut self,
        step: &str,
        known: &[&str],
        args: &Map<String, Value>,
    ) -> Result<Self, StepError> {
        let request = &mut self.request;
        for (name, value) in args {
            let wrong = |problem: String| StepError::Argument { name: name.clone(), problem };
            if !known.contains(&name.as_str()) {
                return Err(wrong(format!("step {step:?} has no such argument")));
            }
            let unknown = |word: &str| wrong(format!("{word:?} is not known"));
            let words = || -> Result<Vec<&str>, StepError> {
                let list = value.as_array().ok_or_else(|| wrong("it is not a list".to_owned()))?;
                list.iter()
                    .map(|word| word.as_str().ok_or_else(|| wrong("it is not a list of words".to_owned())))
                    .collect()
            };
            let reasons = || -> Result<BTreeSet<Reason>, StepError> {
                words()?.into_iter().map(|word| Reason::of(word).ok_or_else(|| unknown(word))).collect()
            };
            match name.as_str() {
                LEVEL => {
                    let word = value.as_str().unwrap_or_default();
                    request.level = Level::of(word).ok_or_else(|| unknown(word))?;
                }
                ALLOW => {
                    let methods =
                        words()?.into_iter().map(|word| Method::of(word).ok_or_else(|| unknown(word)));
                    request.policy.weaker.extend(methods.collect::<Result<Vec<_>, _>>()?);
                }
                LEAVE => request.policy.leave.extend(reasons()?),
                DESPITE => match reasons()?.into_iter().find(|reason| !reason.may_be_overridden()) {
                    Some(reason) => {
                        return Err(wrong(format!("{} keeps from erasing always", reason.as_str())));
                    }
                    None => request.policy.despite.extend(reasons()?),
                },
                REVEAL => {
                    let flag = value.as_bool();
                    request.policy.reveal =
                        flag.ok_or_else(|| wrong("it is not true or false".to_owned()))?;
                }
                PASSES => {
                    let count = value
                        .as_u64()
                        .and_then(count)
                        .ok_or_else(|| wrong(format!("it is not a whole number from 1 to {MOST_PASSES}")))?;
                    request.overwrite = Some(Passes { count, ..request.overwrite.unwrap_or(ZEROES_ONCE) });
                }
                PATTERN => {
                    let word = value.as_str().unwrap_or_default();
                    let last = fill(word).ok_or_else(|| unknown(word))?;
                    request.overwrite = Some(Passes { last, ..request.overwrite.unwrap_or(ZEROES_ONCE) });
                }
                _ => {
                    let time =
                        seconds(value).ok_or_else(|| wrong("it is not a number of seconds".to_owned()))?;
                    *(if name == DEADLINE { &mut self.deadline } else { &mut request.budget }) = Some(time);
                }
            }
        }
        Ok(self)
    }
}

/// A member of the node's information; `absent` without one.
fn setting<T>(
    info: &Value,
    name: &str,
    absent: T,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, StepError> {
    match &info[name] {
        Value::Null => Ok(absent),
        value => read(value).ok_or_else(|| of_node(name, format!("{value} is not {expected}"))),
    }
}

fn of_node(name: &str, problem: String) -> StepError {
    StepError::Argument { name: format!("node.driver_internal_info.{name}"), problem }
}

/// At least one.
fn seconds(value: &Value) -> Option<Duration> {
    value.as_u64().filter(|&seconds| seconds > 0).map(Duration::from_secs)
}

/// What one of the two arguments means by itself.
const ZEROES_ONCE: Passes = Passes { count: NonZeroU8::MIN, last: Fill::Byte(0) };

fn count(number: u64) -> Option<NonZeroU8> {
    u8::try_from(number).ok().filter(|&count| count <= MOST_PASSES).and_then(NonZeroU8::new)
}

/// `zeroes`, `random`, or a byte as `0x5a`.
fn fill(word: &str) -> Option<Fill> {
    match word {
        "zeroes" => Some(Fill::Byte(0)),
        "random" => Some(Fill::Random),
        word => {
            let digits = word.strip_prefix("0x").filter(|digits| digits.len() == 2)?;
            u8::from_str_radix(digits, 16).ok().map(Fill::Byte)
        }
    }
}

/// Ironic's `agent_erase_devices_iterations` (random passes, 1 by default) and `agent_erase_devices_zeroize` (one of
/// zeroes after them, on by default). Every Ironic sends both: the defaults are no operator's request, and one pass of zeroes
/// serves their purpose.
fn passes(info: &Value) -> Result<Option<Passes>, StepError> {
    let name = "agent_erase_devices_iterations";
    let most = format!("a whole number from 0 to {}", MOST_PASSES - 1);
    let number = |value: &Value| value.as_u64().filter(|&number| number < u64::from(MOST_PASSES));
    let random = setting(info, name, 1, &most, number)?;
    let switch = "agent_erase_devices_zeroize";
    let zeroes = setting(info, switch, true, "true or false", Value::as_bool)?;
    let last = if zeroes { Fill::Byte(0) } else { Fill::Random };
    match (random, zeroes) {
        (0 | 1, true) => Ok(None),
        (0, false) => Err(of_node(name, format!("0 passes, and {switch} is off: nothing would be erased"))),
        _ => Ok(count(random + u64::from(zeroes)).map(|count| Passes { count, last })),
    }
}

/// An object from serial number to PSID. Errors name the problem without its content.
fn psids(object: &Value) -> Result<BTreeMap<String, Psid>, StepError> {
    let wrong =
        |problem: String| StepError::Argument { name: "node.driver_info.agent_opal_psids".into(), problem };
    let object = match object {
        Value::Null => return Ok(BTreeMap::new()),
        object => object.as_object().ok_or_else(|| wrong("it is not a set of serial: PSID".to_owned()))?,
    };
    let entry = |(serial, psid): (&String, &Value)| {
        let psid = psid.as_str().and_then(Psid::parse);
        let psid = psid.ok_or_else(|| {
            wrong(format!("what it has for serial {serial:?} is not 1 to 255 visible ASCII characters"))
        })?;
        Ok((serial.trim().to_owned(), psid))
    };
    object.iter().map(entry).collect()
}

/// `properties.skip_block_devices`: a list of root device hints.
fn skip_list(list: &Value) -> Result<Vec<Hint>, StepError> {
    let wrong =
        |problem: String| StepError::Argument { name: "node.properties.skip_block_devices".into(), problem };
    let hints = match list {
        Value::Null => return Ok(Vec::new()),
        Value::Array(hints) => hints,
        _ => return Err(wrong("it is not a list of hints".to_owned())),
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let hint = |hint: &Value| {
        let pairs = hint.as_object().ok_or_else(|| wrong(format!("{hint} is not a set of hints")))?;
        Hint::parse(pairs.iter().map(|(name, value)| (name.as_str(), text(value)))).map_err(wrong)
    };
    hints.iter().map(hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(info: Value) -> Result<Settings, StepError> {
        Settings::from_node(&json!({ "driver_internal_info": info }))
    }

    fn with(args: Value) -> Result<Settings, StepError> {
        let all = [LEVEL, ALLOW, LEAVE, DESPITE, BUDGET, DEADLINE, REVEAL, PASSES, PATTERN];
        Settings::default().with_arguments("erase_devices", &all, args.as_object().unwrap())
    }

    #[test]
    fn absent_keys_have_defaults_and_large_numbers_a_ceiling() {
        assert_eq!(Settings::from_node(&Value::Null).unwrap(), Settings::default());
        assert_eq!(parse(json!({})).unwrap(), Settings::default());
        let settings =
            parse(json!({"disk_erasure_concurrency": 900, "agent_erase_skip_read_only": true})).unwrap();
        assert_eq!(settings.concurrency, 16);
        assert_eq!(settings.request.policy.leave, BTreeSet::from([Reason::ReadOnly]));
        assert_eq!(parse(json!({"disk_erasure_concurrency": 4})).unwrap().concurrency, 4);
    }

    #[test]
    fn ironics_switches_and_skip_list_are_obeyed() {
        let settings =
            parse(json!({"agent_enable_nvme_secure_erase": false, "agent_enable_ata_secure_erase": false,
                                    "wipe_special_filesystems": true, "agent_erase_level": "purge"}));
        let request = settings.unwrap().request;
        assert!(
            request.policy.never.contains(&Method::NvmeFormat)
                && request.policy.never.contains(&Method::AtaErase)
        );
        assert_eq!((request.level, request.policy.despite), (Level::Purge, BTreeSet::from([Reason::Shared])));
        let node = json!({"properties": {"skip_block_devices": [{"size": 7, "rotational": true}, {"volume_name": "x"}]}});
        assert_eq!(Settings::from_node(&node).unwrap().request.policy.skip.len(), 2);
        let node = json!({"properties": {"skip_block_devices": [{"colour": "red"}]}});
        assert!(Settings::from_node(&node).unwrap_err().to_string().contains("colour"));
    }

    #[test]
    fn ironic_says_whether_a_failed_secure_erase_ends_it() {
        let insist = |info: Value| parse(info).unwrap().request.policy.insist;
        let (new, old) = ("agent_continue_if_secure_erase_failed", "agent_continue_if_ata_erase_failed");
        for (info, expected) in [
            (json!({}), false),
            (json!({new: true}), false),
            (json!({new: false}), true),
            (json!({old: false}), true),
            (json!({old: false, new: true}), false),
            (json!({old: true, new: false}), true),
        ] {
            assert_eq!(insist(info.clone()), expected, "{info}");
        }
        let error = parse(json!({new: "no"})).unwrap_err().to_string();
        assert!(error.contains(new) && error.contains("true or false"), "{error}");
    }

    #[test]
    fn arguments_count_more_and_unknown_words_are_named() {
        let settings = with(json!({"level": "purge", "allow": ["overwrite-zeroes"], "leave": ["read-only"],
                                   "despite": ["hidden"], "time_budget_s": 60, "deadline_s": 90,
                                   "remove_hidden": true}));
        let Settings { request, deadline, .. } = settings.unwrap();
        assert_eq!(deadline, Some(Duration::from_secs(90)));
        assert!(request.policy.reveal && !Settings::default().request.policy.reveal);
        assert_eq!((request.level, request.budget), (Level::Purge, Some(Duration::from_secs(60))));
        assert_eq!(request.policy.weaker, BTreeSet::from([Method::Overwrite]));
        for (args, word) in [
            (json!({"level": "destroy"}), "destroy"),
            (json!({"allow": ["shred"]}), "shred"),
            (json!({"leave": ["mood"]}), "mood"),
            (json!({"despite": ["in-use"]}), "in-use"),
            (json!({"passes": 0}), "1 to 35"),
            (json!({"passes": 36}), "1 to 35"),
            (json!({"pattern": "0x5"}), "0x5"),
            (json!({"pattern": "+5"}), "+5"),
            (json!({"fast": true}), "fast"),
            (json!({"remove_hidden": "yes"}), "remove_hidden"),
            (json!({"time_budget_s": 0}), "time_budget_s"),
            (json!({"deadline_s": -1}), "deadline_s"),
        ] {
            let error = with(args).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn psids_are_by_serial_and_no_error_contains_one() {
        let of = |psids: Value| Settings::from_node(&json!({"driver_info": {"agent_opal_psids": psids}}));
        let settings = of(json!({"S1": " 0123456789ABCDEF "})).unwrap();
        assert_eq!(
            settings.psids,
            BTreeMap::from([("S1".to_owned(), Psid::parse("0123456789ABCDEF").unwrap())])
        );
        assert!(!format!("{settings:?}").contains("0123"));
        for (wrong, word) in [
            (json!("******"), "serial: PSID"),
            (json!(["SECRET"]), "serial: PSID"),
            (json!({"S1": "SECRET TEXT"}), "\"S1\""),
            (json!({"S1": 5_417_417}), "\"S1\""),
        ] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("agent_opal_psids") && error.contains(word), "{error}");
            assert!(!error.contains("SECRET") && !error.contains("5417417"), "{error}");
        }
    }

    #[test]
    fn passes_and_patterns_are_ironics_or_those_of_the_step() {
        let passes = |count, last| Some(Passes { count: NonZeroU8::new(count).unwrap(), last });
        let of = |iterations: Value, zeroize: Value| {
            let info =
                json!({"agent_erase_devices_iterations": iterations, "agent_erase_devices_zeroize": zeroize});
            parse(info).map(|settings| settings.request.overwrite)
        };
        assert_eq!(of(json!(1), json!(true)).unwrap(), None, "what every Ironic sends");
        assert_eq!(of(Value::Null, Value::Null).unwrap(), None);
        assert_eq!(of(json!(0), json!(true)).unwrap(), None);
        assert_eq!(of(json!(3), json!(true)).unwrap(), passes(4, Fill::Byte(0)));
        assert_eq!(of(json!(1), json!(false)).unwrap(), passes(1, Fill::Random));
        assert_eq!(of(json!(7), json!(false)).unwrap(), passes(7, Fill::Random));
        for (iterations, zeroize) in
            [(json!(0), json!(false)), (json!(-1), json!(true)), (json!(99), json!(true))]
        {
            let error = of(iterations, zeroize).unwrap_err().to_string();
            assert!(error.contains("agent_erase_devices_iterations"), "{error}");
        }
        let wanted = |args: Value| with(args).unwrap().request.overwrite;
        assert_eq!(wanted(json!({"passes": 3})), passes(3, Fill::Byte(0)));
        assert_eq!(wanted(json!({"pattern": "random"})), passes(1, Fill::Random));
        assert_eq!(wanted(json!({"pattern": "0xA5", "passes": 2})), passes(2, Fill::Byte(0xa5)));
        assert_eq!(wanted(json!({})), None);
    }

    #[test]
    fn values_of_the_wrong_kind_are_named() {
        let zero = parse(json!({"disk_erasure_concurrency": 0})).unwrap_err().to_string();
        assert!(zero.contains("disk_erasure_concurrency") && zero.contains("at least 1"), "{zero}");
        let still = parse(json!({"agent_erase_stall_s": 0})).unwrap_err().to_string();
        assert!(still.contains("agent_erase_stall_s"), "{still}");
        let text = parse(json!({"agent_erase_skip_read_only": "yes"})).unwrap_err().to_string();
        assert!(text.contains("agent_erase_skip_read_only"), "{text}");
        let word = parse(json!({"agent_require_verification": "maybe"})).unwrap_err().to_string();
        assert!(
            word.contains("agent_require_verification") && word.contains("read, device or none"),
            "{word}"
        );
    }

    #[test]
    fn the_words_of_the_required_verification_are_those_of_the_protocol() {
        use agent_protocol::record::RequiredVerification as Sent;
        let of = |sent: Sent| parse(json!({"agent_require_verification": sent})).unwrap().required;
        assert_eq!([Sent::None, Sent::Device, Sent::Read].map(of), RequiredVerification::ALL);
        assert_eq!(Settings::default().required.as_str(), Sent::default().as_str());
    }
}
