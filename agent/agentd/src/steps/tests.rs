use super::*;
use proptest::prelude::*;

struct Fake {
    name: &'static str,
    support: Support,
    steps: Vec<(&'static str, f64)>,
}

impl HardwareManager for Fake {
    fn name(&self) -> &str {
        self.name
    }
    fn version(&self) -> &str {
        "1"
    }
    fn evaluate(&self, _: &Inventory) -> Support {
        self.support
    }
    fn steps(&self, _: StepKind, _: &Inventory) -> Vec<Step> {
        let step = |(name, priority): &(&str, f64)| {
            let text = json!({
                "step": name, "priority": priority, "interface": "deploy",
                "argsinfo": { "must": { "required": true }, "may": { "required": false },
                    "configdrive": { "required": false }, "image_info": { "required": false } },
            });
            serde_json::from_value(text).expect("step")
        };
        self.steps.iter().map(step).collect()
    }
    fn run(&self, call: &StepCall, _: &StepContext) -> Result<StepOutcome, StepError> {
        match call.args["must"].as_str() {
            Some("reboot") => Ok(StepOutcome::RebootRequested(self.name.into())),
            Some("fail") => {
                Err(StepError::Failed { reason: "no".into(), report: json!({ "disks": ["kept"] }) })
            }
            Some("after reboot") => {
                Err(StepError::NeedsReboot { reason: "not yet".into(), checkpoint: json!({ "asked": 5 }) })
            }
            Some("cancel") => Err(StepError::Cancelled { report: json!({ "disks": [] }) }),
            _ => Ok(StepOutcome::Done(self.name.into())),
        }
    }
}

fn manager(name: &'static str, support: Support, steps: &[(&'static str, f64)]) -> Arc<dyn HardwareManager> {
    Arc::new(Fake { name, support, steps: steps.to_vec() })
}

fn table(managers: &[Arc<dyn HardwareManager>]) -> StepTable {
    StepTable::collect(managers, &Arc::default(), StepKind::Clean)
}

fn execute(table: &StepTable, step: &Value) -> Ending {
    table.execute(step, &Value::Null, None, &StepContext::new())
}

fn winner(managers: &[Arc<dyn HardwareManager>], step: &str) -> Value {
    let ending = execute(&table(managers), &json!({ "step": step, "args": { "must": "x" } }));
    ending.result.expect("a result")["clean_result"].clone()
}

#[test]
fn support_beats_priority_beats_name_and_the_winner_runs() {
    use Support::{Generic, Mainline};
    let generic = manager("generic", Generic, &[("erase", 99.0)]);
    let vendor = manager("vendor", Mainline, &[("erase", 0.0)]);
    assert_eq!(winner(&[generic.clone(), vendor], "erase"), "vendor");
    let keener = manager("keener", Generic, &[("erase", 99.5)]);
    assert_eq!(winner(&[generic.clone(), keener], "erase"), "keener");
    let earlier = manager("earlier", Generic, &[("erase", 99.0)]);
    assert_eq!(winner(&[generic.clone(), earlier.clone()], "erase"), "earlier");
    assert_eq!(winner(&[earlier, generic], "erase"), "earlier");
}

#[test]
fn every_supporting_manager_is_named_even_when_its_steps_lost() {
    let advertised = table(&[
        manager("a", Support::Generic, &[("erase", 1.0)]),
        manager("b", Support::Mainline, &[("erase", 0.0)]),
        manager("c", Support::None, &[("other", 0.0)]),
    ])
    .advertised();
    assert_eq!(advertised["hardware_manager_version"], json!({ "a": "1", "b": "1" }));
    assert_eq!(advertised["clean_steps"].as_object().map(|steps| steps.len()), Some(1));
    assert_eq!(advertised["clean_steps"]["b"][0]["step"], "erase");
}

#[test]
fn changed_managers_are_a_version_mismatch_and_run_nothing() {
    let table = table(&[manager("a", Support::Generic, &[("erase", 1.0)])]);
    let step = json!({ "step": "erase", "args": { "must": "x" } });
    let run = |version: Value| table.execute(&step, &Value::Null, Some(&version), &StepContext::new()).status;
    assert_eq!(run(json!({ "a": "2" })), Status::VersionMismatch);
    assert_eq!(run(json!({})), Status::VersionMismatch);
    assert_eq!(run(json!({ "a": "1" })), Status::Succeeded);
    assert_eq!(run(Value::Null), Status::Succeeded);
}

#[test]
fn a_configuration_drive_is_never_echoed() {
    let table = table(&[manager("a", Support::Generic, &[("write", 0.0)])]);
    for must in ["x", "fail"] {
        let step = json!({
            "step": "write",
            "args": { "must": must, "may": {"configdrive": "kept"}, "configdrive": "secret", "image_info": {"configdrive": "secret"} },
        });
        let shown = json!(execute(&table, &step).result.expect("a result")).to_string();
        assert!(!shown.contains("secret"), "{shown}");
    }
    let unnamed = execute(&table, &json!({ "args": { "configdrive": "secret" } }));
    assert!(!unnamed.error.expect("no step").details.contains("secret"));
}

#[test]
fn results_echo_the_step_and_keep_the_report_of_a_failure() {
    let table = table(&[manager("a", Support::Generic, &[("erase", 1.0)])]);
    let step =
        |must: &str| json!({ "step": "erase", "interface": "deploy", "x": [1], "args": { "must": must } });
    let failed = execute(&table, &step("fail"));
    let error = failed.error.expect("error");
    assert_eq!(
        (error.kind.as_str(), error.message.as_str(), error.details.as_str()),
        ("CleaningError", "Clean step failed", "no")
    );
    assert_eq!(
        failed.result,
        Some(json!({ "clean_result": { "disks": ["kept"] }, "clean_step": step("fail") }))
    );
    let cancelled = execute(&table, &step("cancel"));
    assert_eq!(cancelled.error.map(|error| error.kind), Some("Cancelled".into()));
    assert!(cancelled.result.is_some());
    let reboot = execute(&table, &step("reboot")).result.expect("result");
    assert_eq!(reboot["anneal"], json!({ "reboot_requested": true }));
    assert_eq!(reboot["clean_step"], step("reboot"));
    let not_yet = execute(&table, &step("after reboot"));
    assert_eq!(not_yet.status, Status::Failed, "a controller that cannot run it again");
    assert_eq!(not_yet.error.map(|error| error.details), Some("not yet".into()));
    let added = json!({ "after_reboot": { "asked": 5 } });
    assert_eq!(
        not_yet.result,
        Some(json!({ "clean_result": null, "clean_step": step("after reboot"), "anneal": added }))
    );
}

#[test]
fn unknown_and_malformed_steps_fail_by_name() {
    let table = table(&[manager("a", Support::Generic, &[("erase", 1.0)])]);
    let kind =
        |step: Value| execute(&table, &step).error.map(|error| (error.kind, error.details)).expect("error");
    assert_eq!(kind(json!({ "step": "nope" })).0, "HardwareManagerMethodNotFound");
    assert_eq!(kind(json!({ "step": "erase", "interface": "raid" })).0, "HardwareManagerMethodNotFound");
    assert_eq!(kind(json!({ "interface": "deploy" })).0, "CommandExecutionError");
    assert!(kind(json!({ "step": "erase" })).1.contains("must"));
    assert!(kind(json!({ "step": "erase", "args": [1] })).1.contains("args"));
    assert_eq!(kind(json!("erase")).0, "CommandExecutionError");
}

proptest! {
    /// The order in which managers are listed decides nothing.
    #[test]
    fn merging_does_not_depend_on_order(seed in proptest::collection::vec((0..3usize, 0..3u8), 1..5)) {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let build = |(at, (support, priority)): (usize, &(usize, u8))| {
            let support = [Support::Generic, Support::Mainline, Support::ServiceProvider][*support];
            manager(NAMES[at], support, &[("erase", f64::from(*priority))])
        };
        let managers: Vec<_> = seed.iter().enumerate().map(build).collect();
        let reversed: Vec<_> = managers.iter().rev().cloned().collect();
        prop_assert_eq!(winner(&managers, "erase"), winner(&reversed, "erase"));
    }
}
