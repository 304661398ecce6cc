//! An example of a hardware manager in a program of its own: the machines of ACME have a locator LED, a BIOS setting,
//! and disks with an erase of their own. Try it: `hwm-conformance target/debug/hwm-example-external`.

use agent_protocol::inventory::{Disk, Inventory};
use agent_protocol::progress::Progress;
use agent_protocol::step::Step;
use hwm_sdk::StepKind::{Clean, Deploy, Service};
use hwm_sdk::protocol::{
    BiosSetting, Claim, ClaimKind, Destructive, EraseCapabilities, EraseLevel, EraseMethod, EraseParams,
    Expected, InventoryPatch, ProviderRecord, Quirk, Suppressed,
};
use hwm_sdk::{
    Argument, Declaration, HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome, Support,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

const BLINK: &str = "blink";
const SET_BOOT_MODE: &str = "set_boot_mode";
const PURGE: &str = "acme-purge";

/// What it can do, declared: lists and priorities, promises, arguments.
const STEPS: &[Declaration] = &[
    Declaration {
        priorities: &[(Clean, 0), (Service, 0)],
        abortable: true,
        idempotent: true,
        destructive: Destructive::None,
        estimated_duration_s: Some(1),
        arguments: &[Argument {
            name: "times",
            description: "How often, 20 by default",
            required: false,
            schema: || json!({"type": "integer", "minimum": 1, "maximum": 1000}),
        }],
        result_schema: Some(|| json!({"type": "object", "required": ["blinked"]})),
        ..Declaration::new("management", BLINK)
    },
    Declaration {
        priorities: &[(Clean, 0), (Deploy, 0)],
        idempotent: true,
        reboot_requested: true,
        destructive: Destructive::Configuration,
        arguments: &[Argument {
            name: "mode",
            description: "Bios or Uefi",
            required: true,
            schema: || json!({"enum": ["Bios", "Uefi"]}),
        }],
        ..Declaration::new("bios", SET_BOOT_MODE)
    },
];

struct Acme;

impl HardwareManager for Acme {
    fn name(&self) -> &str {
        "acme_example"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn vendor(&self) -> &str {
        "ACME Inc."
    }

    fn evaluate(&self, inventory: &Inventory) -> Support {
        if inventory.system_vendor.manufacturer == "ACME" { Support::ServiceProvider } else { Support::None }
    }

    fn claims(&self, _: &Inventory) -> Vec<Claim> {
        let properties = BTreeMap::from([("model".to_owned(), "ACME *".to_owned())]);
        vec![Claim { kind: ClaimKind::Block, id: None, properties }]
    }

    fn quirks(&self, _: &Inventory) -> Vec<Quirk> {
        vec![Quirk {
            suppress: Suppressed::Bmc,
            machine: BTreeMap::from([("product_name".to_owned(), "R1*".to_owned())]),
            reason: "its BMC hangs when it is asked over IPMI".to_owned(),
        }]
    }

    fn inventory(&self, _: &StepContext) -> Result<InventoryPatch, StepError> {
        let mode =
            BiosSetting { name: "BootMode".into(), value: Some("Uefi".into()), ..BiosSetting::default() };
        Ok(InventoryPatch { bios_settings: vec![mode], ..InventoryPatch::default() })
    }

    fn steps(&self, kind: StepKind, _: &Inventory) -> Vec<Step> {
        hwm_sdk::advertise(STEPS, kind)
    }

    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
        match call.step.step.as_str() {
            BLINK => blink(call, context),
            SET_BOOT_MODE => {
                println!("boot mode is {}", call.args["mode"]);
                Ok(StepOutcome::RebootRequested(Value::Null))
            }
            other => Err(StepError::Unknown { manager: self.name().into(), step: other.into() }),
        }
    }

    fn erase_capabilities(&self, disk: &Disk) -> EraseCapabilities {
        let purge = EraseMethod {
            method: PURGE.into(),
            level: EraseLevel::Purge,
            expected: Expected::Zeroes,
            abortable: false,
            estimated_duration_s: Some(2),
        };
        EraseCapabilities { methods: is_ours(disk).then(|| vec![purge]), parallel: true }
    }

    fn erase(&self, erase: &EraseParams, context: &StepContext) -> Result<ProviderRecord, StepError> {
        if !is_ours(&erase.disk) {
            let reason = format!("{} is no disk of ACME's", erase.disk.name);
            return Err(StepError::Declined { reason });
        }
        let id = Some(erase.disk.name.clone());
        let claim = Claim { kind: ClaimKind::Block, id, properties: BTreeMap::new() };
        let start = context.read_device(&claim, 0, 512)?;
        let empty = start.iter().all(|byte| *byte == 0);
        let detail = Map::from_iter([("zeroes_already".to_owned(), empty.into())]);
        Ok(ProviderRecord { method: erase.method.clone(), bytes_erased: erase.disk.size, detail })
    }
}

fn is_ours(disk: &Disk) -> bool {
    disk.model.as_deref().is_some_and(|model| model.starts_with("ACME "))
}

/// Blinks, reports how often, stops when cancelled, and goes on where it was.
fn blink(call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
    let times = call.args.get("times").and_then(Value::as_u64).unwrap_or(20);
    let begin = context.checkpoint().and_then(Value::as_u64).unwrap_or_default();
    for blinked in begin..times {
        if context.is_cancelled() {
            return Err(StepError::Cancelled { report: json!({"blinked": blinked}) });
        }
        sleep(Duration::from_millis(10));
        let percent = u8::try_from((blinked + 1) * 100 / times).ok();
        context.report(Progress { percent, ..Progress::default() });
        context.save_checkpoint(&json!(blinked + 1));
    }
    Ok(StepOutcome::Done(json!({"blinked": times})))
}

fn main() -> ExitCode {
    hwm_sdk::serve(Acme)
}
