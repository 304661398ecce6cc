//! What is tested: a command line, a machine, and the steps that may be run.

use agent_protocol::inventory::Inventory;
use hwm_sdk::protocol::{AskErase, Detect, GRACE, Hello, Init, InventoryCall, Method, Steps};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// The inventory that is used when none is given.
const EXAMPLE: &str = include_str!("example-inventory.json");

/// What is tested, and with what.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Program and arguments of the manager.
    pub command: Vec<String>,
    /// The machine: of the kind that the manager supports, or its steps cannot be looked at.
    pub inventory: Inventory,
    /// Steps that are run, with their arguments, and must work. Steps that destroy nothing and need no argument are run
    /// anyway, and may fail for want of their hardware.
    pub runs: BTreeMap<String, Map<String, Value>>,
    /// Disks (of the inventory, by name) that are erased with each method offered. They **are** erased.
    pub erases: Vec<String>,
    /// A manager within Anneal, which may have Anneal's names.
    pub in_tree: bool,
    /// How long everything may take.
    pub deadlines: Deadlines,
}

/// How long everything may take; the protocol's own by default.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// `hello`, from the start of the program.
    pub hello: Duration,
    /// `detect`.
    pub detect: Duration,
    /// `init`.
    pub init: Duration,
    /// `inventory`.
    pub inventory: Duration,
    /// `steps`.
    pub steps: Duration,
    /// `run` and `erase`; shorter than the default of the protocol, which is up to a day.
    pub run: Duration,
    /// `erase_capabilities`.
    pub erase_capabilities: Duration,
    /// From a cancel to the answer, and from a shutdown or the end of the socket to the exit.
    pub grace: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        let of = |deadline: Option<Duration>| deadline.unwrap_or(Duration::from_secs(60));
        Self {
            hello: of(Hello::DEADLINE),
            detect: of(Detect::DEADLINE),
            init: of(Init::DEADLINE),
            inventory: of(InventoryCall::DEADLINE),
            steps: of(Steps::DEADLINE),
            run: Duration::from_secs(60),
            erase_capabilities: of(AskErase::DEADLINE),
            grace: GRACE,
        }
    }
}

impl Plan {
    /// A plan for a command, on the example machine.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            inventory: example_inventory(),
            runs: BTreeMap::new(),
            erases: Vec::new(),
            in_tree: false,
            deadlines: Deadlines::default(),
        }
    }
}

/// A machine with two disks, two NICs and a BMC, made by ACME.
pub fn example_inventory() -> Inventory {
    serde_json::from_str(EXAMPLE).expect("the example is an inventory")
}
