//! A machine with a RAID controller: the fake tool, with its state and its log.

use hwm_raidtool::{RaidTool, Tool};
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The interpreter itself: what stands in the path may be a script that looks for one, a hundred times a test.
fn interpreter() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let output =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
}

pub struct Rig(tempfile::TempDir);

impl Rig {
    /// A controller with four solid state drives, one of which has failed, and a spinning one.
    pub fn new() -> Self {
        let rig = Self(tempfile::tempdir().unwrap());
        let (_, program) = include_str!("../fake_tool.py").split_once('\n').unwrap();
        fs::write(rig.tool(), format!("#!{} -SE\n{program}", interpreter())).unwrap();
        fs::set_permissions(rig.tool(), fs::Permissions::from_mode(0o755)).unwrap();
        let ssd = |slot: u8| json!({"id": format!("252:{slot}"), "gib": 100, "media": "SSD", "serial": format!("D{slot}")});
        let mut failed = ssd(3);
        failed["state"] = "UBad".into();
        rig.set_state(&json!({"controllers": [{
            "id": 0, "model": "ACME 9560", "pci": "00:31:00:00", "firmware": "5.200.02", "volumes": [],
            "drives": [ssd(0), ssd(1), ssd(2), failed, {"id": "252:4", "gib": 4000, "media": "HDD"}],
            "properties": {"patrol_read": {"Value": "auto", "Possible": ["auto", "off"]}, "rebuild_rate": {"Value": "30"}},
        }]}));
        rig
    }

    pub fn tool(&self) -> PathBuf {
        self.0.path().join("raidtool")
    }

    pub fn state(&self) -> Value {
        serde_json::from_slice(&fs::read(self.0.path().join("STATE.json")).unwrap()).unwrap()
    }

    pub fn set_state(&self, state: &Value) {
        fs::write(self.0.path().join("STATE.json"), state.to_string()).unwrap();
    }

    pub fn fault(&self, command: &str, fault: Value) {
        let mut state = self.state();
        state["faults"] = json!({ command: fault });
        self.set_state(&state);
    }

    /// Commands since the last time, but those that only look.
    pub fn commands(&self) -> Vec<String> {
        let log = self.0.path().join("log");
        let text = fs::read_to_string(&log).unwrap_or_default();
        fs::write(log, "").unwrap();
        text.lines().filter(|line| !line.contains("show")).map(str::to_owned).collect()
    }

    pub fn manager(&self) -> RaidTool {
        RaidTool::new(Tool::new(self.tool()).with_deadline(Duration::from_secs(20)))
    }

    pub fn run(
        &self,
        step: &str,
        args: Value,
        node: Value,
        context: &StepContext,
    ) -> Result<StepOutcome, StepError> {
        let manager = self.manager();
        let kind = if step == "apply_configuration" { StepKind::Deploy } else { StepKind::Clean };
        let mut offered = manager.steps(kind, &Default::default()).into_iter();
        let step = offered.find(|offered| offered.step == step).expect("offered");
        let args = hwm_sdk::checked_arguments(Some(&args), step.argsinfo.as_ref())?;
        manager.run(&StepCall { kind, step, args, node, inventory: Default::default() }, context)
    }
}
