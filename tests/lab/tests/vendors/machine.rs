//! One recorded machine, the driver that speaks with it, and what it looks like from outside.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bmc::{Bmc, BmcError, Builtin, Drivers, ErrorKind, PowerTarget, StepCall, StepEnd};
use lab::recorded::{Boot, RecordedBmc, Tree};
use model::StepKind;
use serde_json::{Map, Value, json};

use crate::table::{Cell, Row};
use crate::verbs;

/// A machine whose system is known.
pub struct Machine {
    pub recorded: RecordedBmc,
    pub bmc: Arc<dyn Bmc>,
    pub info: Map<String, Value>,
    pub system: String,
}

fn info(recorded: &RecordedBmc, system: Option<&str>) -> Map<String, Value> {
    let mut info = Map::from_iter([
        ("redfish_address".to_owned(), json!(recorded.url())),
        ("redfish_username".to_owned(), json!("root")),
        ("redfish_password".to_owned(), json!("recorded")),
    ]);
    if let Some(system) = system {
        info.insert("redfish_system_id".to_owned(), json!(system));
    }
    info
}

fn open(info: &Map<String, Value>) -> Arc<dyn Bmc> {
    Builtin::default().open("redfish", info, "node").unwrap()
}

/// Every verb, each on the tree as it was recorded.
pub async fn replay(tree: &Path) -> Row {
    let name = tree.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut row = Row::new(&name);
    let tree = Tree::load(tree).unwrap_or_else(|error| panic!("{name}: {error:#}"));
    for (verb, work) in verbs::ALL {
        let recorded = RecordedBmc::start(tree.clone()).await.unwrap();
        let found = system(&recorded).await;
        let (system, needs_id) = match found {
            Ok(found) => found,
            Err(refused) => {
                row.push(verb, refused);
                continue;
            }
        };
        if row.machine.is_empty() {
            row.machine = title(&recorded, &system);
        }
        row.needs_id |= needs_id;
        let info = info(&recorded, Some(&system));
        let machine = Machine { bmc: open(&info), recorded, info, system };
        row.push(verb, work(&machine).await);
    }
    row
}

/// The system that an operator would name, and whether one has to be named. `Err` is what the driver says without any.
async fn system(recorded: &RecordedBmc) -> Result<(String, bool), Cell> {
    let (systems, resettable) = {
        let tree = recorded.tree();
        let systems = tree.systems();
        let has_reset = |path: &&String| {
            tree.get(path).is_some_and(|system| system["Actions"].get("#ComputerSystem.Reset").is_some())
        };
        let resettable = systems.iter().find(has_reset).or(systems.first()).cloned();
        (systems.len(), resettable)
    };
    let verified = open(&info(recorded, None)).verify().await;
    match (verified, resettable) {
        (Ok(()), Some(system)) => Ok((system, false)),
        (Err(error), Some(system)) if systems > 1 => {
            if error.kind() == ErrorKind::Config && error.to_string().contains("redfish_system_id") {
                Ok((system, true))
            } else {
                Err(Cell::Wrong(format!("several systems: {error}")))
            }
        }
        (verified, _) => Err(refusal(verified, false)),
    }
}

fn title(recorded: &RecordedBmc, system: &str) -> String {
    let tree = recorded.tree();
    let system = tree.get(system).cloned().unwrap_or_default();
    let manager = tree.linked(&system["Links"]["ManagedBy"][0]).map(|(_, manager)| manager.clone());
    let manager = manager.unwrap_or_default();
    let words = [&system["Manufacturer"], &system["Model"], &manager["FirmwareVersion"]];
    words.into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// A verb that is to be refused, by name: by what the driver knows to be missing, or may not see. `offered`: whether the tree offers
/// what the verb needs.
pub fn refusal(outcome: Result<(), BmcError>, offered: bool) -> Cell {
    match outcome {
        Ok(()) => Cell::Wrong("the driver reports success".to_owned()),
        Err(error) if offered => Cell::Wrong(format!("the tree offers it: {error}")),
        Err(error) => match error.kind() {
            ErrorKind::Unsupported | ErrorKind::Config | ErrorKind::Auth | ErrorKind::Step => {
                Cell::Refused(reason(&error))
            }
            kind => Cell::Wrong(format!("{kind:?}: {error}")),
        },
    }
}

/// Without the address, which differs each time.
fn reason(error: &BmcError) -> String {
    let text = error.to_string();
    if error.address().is_empty() { text } else { text.replace(&format!("BMC {}: ", error.address()), "") }
}

impl Machine {
    /// The system as the tree has it.
    pub fn look(&self) -> Value {
        self.recorded.tree().get(&self.system).cloned().unwrap_or_default()
    }

    /// A resource that the system links to.
    pub fn linked(&self, key: &str) -> Option<Value> {
        let tree = self.recorded.tree();
        tree.linked(&self.look_at(&tree)[key]).map(|(_, resource)| resource.clone())
    }

    fn look_at<'a>(&self, tree: &'a Tree) -> &'a Value {
        tree.get(&self.system).unwrap_or(&Value::Null)
    }

    /// Switches the machine off and on, and says what it booted from.
    pub async fn boot(&self) -> Result<Boot, String> {
        let before = self.recorded.tree().boots.len();
        let power = async |target| self.bmc.set_power(target).await.map_err(|error| error.to_string());
        power(PowerTarget::Off).await?;
        power(PowerTarget::On).await?;
        let boots = self.recorded.tree().boots.clone();
        match boots.as_slice() {
            [.., last] if boots.len() == before + 1 => Ok(last.clone()),
            boots => Err(format!("{} boots instead of one", boots.len() - before)),
        }
    }

    /// Runs a step of the BIOS interface.
    pub async fn bios_step(&self, step: &str, args: Value) -> Result<Value, BmcError> {
        let call = StepCall {
            driver: "redfish",
            driver_info: &self.info,
            interfaces: &BTreeMap::new(),
            node_uuid: "node",
            properties: &Map::new(),
            kind: StepKind::Clean,
            interface: "bios",
            step,
            args: args.as_object().unwrap(),
            command_id: "c1",
            polling: false,
        };
        match Builtin::default().run_step(&call).await? {
            StepEnd::Done(result) => Ok(result),
            StepEnd::Running(what) => panic!("{step} runs: {what}"),
        }
    }
}
