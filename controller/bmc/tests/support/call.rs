//! Calls of out-of-band steps.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;

use bmc::{BmcError, Builtin, Drivers, Settings, StepCall, StepEnd};
use model::StepKind;
use serde_json::{Map, Value, json};

/// A node, as far as steps see it.
#[derive(Clone)]
pub struct Node {
    pub driver: &'static str,
    pub driver_info: Map<String, Value>,
    pub interfaces: BTreeMap<String, String>,
    pub uuid: &'static str,
    pub settings: Settings,
}

impl Node {
    pub fn fake(uuid: &'static str) -> Self {
        let (driver_info, interfaces) = (Map::new(), BTreeMap::new());
        Self { driver: "fake-hardware", driver_info, interfaces, uuid, settings: Settings::default() }
    }

    pub fn redfish(address: &str, system: &str) -> Self {
        let info = json!({"redfish_address": address, "redfish_system_id": system});
        let driver_info = info.as_object().unwrap().clone();
        let (interfaces, settings) = (BTreeMap::new(), Settings::default());
        Self { driver: "redfish", driver_info, interfaces, uuid: "n1", settings }
    }

    pub fn with(mut self, interface: &str, name: &str) -> Self {
        self.interfaces.insert(interface.to_owned(), name.to_owned());
        self
    }

    /// Runs `interface.step` as execution `command_id`, or asks for it.
    pub async fn call(
        &self,
        kind: StepKind,
        label: &str,
        args: Value,
        (command_id, polling): (&str, bool),
    ) -> Result<StepEnd, BmcError> {
        let (interface, step) = label.split_once('.').unwrap();
        let call = StepCall {
            driver: self.driver,
            driver_info: &self.driver_info,
            interfaces: &self.interfaces,
            node_uuid: self.uuid,
            properties: &Map::new(),
            kind,
            interface,
            step,
            args: args.as_object().unwrap(),
            command_id,
            polling,
        };
        Builtin::new(self.settings.clone()).run_step(&call).await
    }

    pub async fn run(&self, kind: StepKind, label: &str, args: Value) -> Result<StepEnd, BmcError> {
        self.call(kind, label, args, ("c1", false)).await
    }

    /// The result of a step that succeeds at once.
    pub async fn done(&self, kind: StepKind, label: &str, args: Value) -> Value {
        match self.run(kind, label, args).await.unwrap() {
            StepEnd::Done(result) => result,
            StepEnd::Running(what) => panic!("{label} runs: {what}"),
        }
    }

    /// Why a step is not done.
    pub async fn refused(&self, kind: StepKind, label: &str, args: Value) -> BmcError {
        match self.run(kind, label, args).await {
            Err(error) => error,
            Ok(end) => panic!("{label} ended with {end:?}"),
        }
    }
}
