//! Declarations of out-of-band steps: constants next to the code that they declare.
//!
//! ```text
//!   const STEPS: &[Declared] = &[
//!       Declared::new("factory_reset", |call, _| Box::pin(factory_reset(call))).clean(0.0).deploy(0).idempotent(),
//!   ];
//! ```
//!
//! What Ironic's decorators `@clean_step`, `@deploy_step` and `@service_step` say of a method
//! (specs/cleaning-states.txt, deploy-steps.txt, manual-cleaning.txt) is said here of a function; one
//! declaration may be a step of every kind.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use model::CatalogueStep;
use model::step::{Argument, StepKind};
use serde_json::{Map, Number, Value};

use crate::{BmcError, ErrorKind, Settings};

/// One call of an out-of-band step.
#[derive(Debug, Clone, Copy)]
pub struct StepCall<'a> {
    /// `node.driver`.
    pub driver: &'a str,
    /// `node.driver_info`.
    pub driver_info: &'a Map<String, Value>,
    /// `node.interfaces`: `deploy_interface` → `direct`.
    pub interfaces: &'a BTreeMap<String, String>,
    /// Node.
    pub node_uuid: &'a str,
    /// `node.properties`.
    pub properties: &'a Map<String, Value>,
    /// As what the step is run.
    pub kind: StepKind,
    /// Interface: `bios`.
    pub interface: &'a str,
    /// Name: `apply_configuration`.
    pub step: &'a str,
    /// Arguments, not checked yet.
    pub args: &'a Map<String, Value>,
    /// Id of this execution. The same id again is the same execution.
    pub command_id: &'a str,
    /// It has begun and goes on outside: ask how far it is.
    pub polling: bool,
}

/// How a call of a step ended.
#[derive(Debug, Clone, PartialEq)]
pub enum StepEnd {
    /// The step has succeeded; its result, in which no secret is.
    Done(Value),
    /// The step is still running on the BMC; the text says what it waits for. Call again with `polling` for its progress.
    Running(String),
}

/// What a step does when called.
pub type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<StepEnd, BmcError>> + Send + 'a>>;

/// The function that a declaration stands for.
pub type StepFn = for<'a> fn(&'a StepCall<'a>, &'a Arc<Settings>) -> StepFuture<'a>;

/// An argument of a step.
#[derive(Debug, Clone, Copy)]
pub struct Arg {
    /// Name.
    pub name: &'static str,
    /// What it is, with its possible values.
    pub description: &'static str,
    /// Whether it must be given.
    pub required: bool,
    /// JSON Schema of its value, as [`model::schema`] knows it.
    pub schema: &'static str,
}

/// A step of an interface implementation.
///
/// Without further word: of no kind, priority 0 (never run by itself), no arguments, not abortable, not
/// idempotent, without ramdisk and without reboot.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    pub(crate) step: &'static str,
    pub(crate) run: StepFn,
    clean: Option<f64>,
    deploy: Option<u32>,
    service: bool,
    pub(crate) args: &'static [Arg],
    abortable: bool,
    idempotent: bool,
    requires_ramdisk: bool,
    reboot: bool,
    in_band: bool,
}

impl Declared {
    /// A step `step` that is done by `run`.
    pub const fn new(step: &'static str, run: StepFn) -> Self {
        Self {
            step,
            run,
            clean: None,
            deploy: None,
            service: false,
            args: &[],
            abortable: false,
            idempotent: false,
            requires_ramdisk: false,
            reboot: false,
            in_band: false,
        }
    }

    /// A step `step` that the node's agent does. The controller sends it, and never runs it itself.
    pub const fn of_agent(step: &'static str) -> Self {
        let mut declared = Self::new(step, |call, _| Box::pin(not_here(call)));
        (declared.requires_ramdisk, declared.in_band) = (true, true);
        declared
    }

    /// A clean step with this priority, whole or not; 0: manual cleaning only.
    ///
    /// # Panics
    /// (when compiling) A priority that is negative or no number.
    pub const fn clean(mut self, priority: f64) -> Self {
        assert!(priority >= 0.0 && priority.is_finite(), "a clean priority is 0 or greater");
        self.clean = Some(priority);
        self
    }

    /// A deploy step with this priority: a non-negative integer (specs/deploy-steps.txt).
    pub const fn deploy(mut self, priority: u32) -> Self {
        self.deploy = Some(priority);
        self
    }

    /// A service step; those are always asked for.
    pub const fn service(mut self) -> Self {
        self.service = true;
        self
    }

    /// With these arguments.
    pub const fn args(mut self, args: &'static [Arg]) -> Self {
        self.args = args;
        self
    }

    /// May be stopped while it runs.
    pub const fn abortable(mut self) -> Self {
        self.abortable = true;
        self
    }

    /// May be run again after an interruption.
    pub const fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Needs the ramdisk to run.
    pub const fn requires_ramdisk(mut self) -> Self {
        self.requires_ramdisk = true;
        self
    }

    /// Takes effect with the reboot that it asks for.
    pub const fn reboot(mut self) -> Self {
        self.reboot = true;
        self
    }

    /// Its priority as a step of `kind`; `None`: it is none.
    pub(crate) fn priority(&self, kind: StepKind) -> Option<Number> {
        match kind {
            StepKind::Clean => self.clean.and_then(number),
            StepKind::Deploy => self.deploy.map(Number::from),
            StepKind::Service => self.service.then(|| Number::from(0)),
        }
    }

    /// The step as the catalogue has it; `None`: it is no step of this kind.
    pub(crate) fn catalogue(&self, kind: StepKind, interface: &str, provider: &str) -> Option<CatalogueStep> {
        let priority = self.priority(kind)?;
        let args = self.args.iter().map(|arg| {
            let argument = Argument {
                description: arg.description.to_owned(),
                required: arg.required,
                schema: Some(arg.schema()),
            };
            (arg.name.to_owned(), argument)
        });
        Some(CatalogueStep {
            interface: interface.to_owned(),
            step: self.step.to_owned(),
            priority,
            abortable: self.abortable,
            reboot_requested: self.reboot,
            idempotent: self.idempotent,
            args: args.collect(),
            requires_ramdisk: self.requires_ramdisk,
            in_band: self.in_band,
            provider: provider.to_owned(),
            raw: Map::new(),
        })
    }
}

impl Arg {
    /// Its JSON Schema. One that is not JSON accepts nothing (the tests look at every one of them).
    pub(crate) fn schema(&self) -> Value {
        serde_json::from_str(self.schema).unwrap_or_default()
    }
}

async fn not_here(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let message = format!("internal: {}.{} is a step of the agent", call.interface, call.step);
    Err(BmcError::new(ErrorKind::Step, "", "run a step", message))
}

/// A whole priority is written without a point, as Ironic does.
fn number(priority: f64) -> Option<Number> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and in range")]
    if priority.fract() == 0.0 && priority <= f64::from(u32::MAX) {
        return Some(Number::from(priority as u32));
    }
    Number::from_f64(priority)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nothing<'a>(_: &'a StepCall<'a>, _: &'a Arc<Settings>) -> StepFuture<'a> {
        Box::pin(async { Ok(StepEnd::Done(Value::Null)) })
    }

    const PLAIN: Declared = Declared::new("plain", nothing).clean(0.0);
    const FULL: Declared = Declared::new("full", nothing)
        .clean(10.5)
        .deploy(100)
        .service()
        .args(&[Arg {
            name: "level",
            description: "RAID level: 0, 1.",
            required: true,
            schema: r#"{"enum": ["0", "1"]}"#,
        }])
        .abortable()
        .idempotent()
        .requires_ramdisk()
        .reboot();

    #[test]
    fn without_a_word_a_step_is_manual_takes_nothing_and_may_not_be_stopped_or_repeated() {
        let step = PLAIN.catalogue(StepKind::Clean, "bios", "redfish").unwrap();
        assert_eq!(
            serde_json::to_value(&step).unwrap(),
            json!({"interface": "bios", "step": "plain", "priority": 0, "abortable": false,
                "reboot_requested": false, "idempotent": false, "args": {}, "requires_ramdisk": false,
                "in_band": false, "provider": "redfish", "raw": {}})
        );
        assert!(!step.is_enabled());
        assert_eq!(PLAIN.catalogue(StepKind::Deploy, "bios", "redfish"), None);
        assert_eq!(PLAIN.catalogue(StepKind::Service, "bios", "redfish"), None);
    }

    #[test]
    fn one_declaration_is_a_step_of_every_kind() {
        let priorities = StepKind::ALL.map(|kind| {
            let step = FULL.catalogue(kind, "raid", "fake").unwrap();
            assert!(step.abortable && step.idempotent && step.requires_ramdisk && step.reboot_requested);
            let level = &step.args["level"];
            assert!(level.required && level.description == "RAID level: 0, 1.");
            assert_eq!(level.schema, Some(json!({"enum": ["0", "1"]})));
            step.priority.to_string()
        });
        assert_eq!(priorities, ["10.5", "100", "0"]);
        assert_eq!(number(7.0).unwrap().to_string(), "7");
    }
}
