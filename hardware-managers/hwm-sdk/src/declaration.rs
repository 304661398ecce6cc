//! A step, declared once for whatever it is: a clean step, a deploy step, a service step, or several of them.
//!
//! ```
//! use hwm_sdk::{Argument, Declaration, StepKind::{Clean, Deploy}};
//! use serde_json::json;
//!
//! const STEPS: &[Declaration] = &[Declaration {
//!     priorities: &[(Clean, 0), (Deploy, 0)],
//!     idempotent: true,
//!     arguments: &[Argument {
//!         name: "level",
//!         description: "Only volumes of this level: 0 or 1",
//!         required: false,
//!         schema: || json!({"type": "string", "enum": ["0", "1"]}),
//!     }],
//!     ..Declaration::new("raid", "delete_configuration")
//! }];
//!
//! let advertised = hwm_sdk::advertise(STEPS, Deploy);
//! assert_eq!(advertised[0].step, "delete_configuration");
//! ```

use crate::StepKind;
use crate::protocol::{Destructive, StepOffer};
use agent_protocol::step::{ArgInfo, Step};
use serde_json::Value;

/// A step as its manager declares it.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Interface it belongs to, one of Ironic's: `power`, `management`, `firmware`, `deploy`, `bios`, `raid`, `vendor`.
    pub interface: &'static str,
    /// Its name, unique among the steps of the manager.
    pub step: &'static str,
    /// Which lists it is in, with its priority there: larger runs earlier, 0 never runs by itself.
    pub priorities: &'static [(StepKind, u32)],
    /// It stops within a second of being cancelled.
    pub abortable: bool,
    /// It may be started again after an interruption. Anneal's controller starts no other again.
    pub idempotent: bool,
    /// The node must be rebooted after it.
    pub reboot_requested: bool,
    /// What it destroys.
    pub destructive: Destructive,
    /// About how long it takes, in seconds.
    pub estimated_duration_s: Option<u64>,
    /// Its arguments. The agent runs it with these and no others, each as its schema says.
    pub arguments: &'static [Argument],
    /// JSON Schema of its result, as far as [`agent_protocol::schema`] goes.
    pub result_schema: Option<fn() -> Value>,
}

/// An argument of a step.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it is, with its possible values.
    pub description: &'static str,
    /// Whether the step cannot do without it.
    pub required: bool,
    /// JSON Schema of its values, as far as [`agent_protocol::schema`] goes.
    pub schema: fn() -> Value,
}

impl Declaration {
    /// A step in no list, of which nothing is promised: it cannot be stopped or started again, and destroys data.
    pub const fn new(interface: &'static str, step: &'static str) -> Self {
        Self {
            interface,
            step,
            priorities: &[],
            abortable: false,
            idempotent: false,
            reboot_requested: false,
            destructive: Destructive::Data,
            estimated_duration_s: None,
            arguments: &[],
            result_schema: None,
        }
    }

    /// The step as it is advertised among those of `kind`, if it is one of them.
    pub fn step(&self, kind: StepKind) -> Option<Step> {
        let (_, priority) = self.priorities.iter().find(|(of, _)| *of == kind)?;
        let argument = |argument: &Argument| {
            let info = ArgInfo {
                description: argument.description.to_owned(),
                required: argument.required,
                schema: Some((argument.schema)()),
            };
            (argument.name.to_owned(), info)
        };
        let offer = StepOffer {
            interface: self.interface.to_owned(),
            step: self.step.to_owned(),
            priority: *priority,
            argsinfo: self.arguments.iter().map(argument).collect(),
            result_schema: self.result_schema.map(|schema| schema()),
            reboot_requested: self.reboot_requested,
            abortable: self.abortable,
            idempotent: self.idempotent,
            destructive: self.destructive,
            estimated_duration_s: self.estimated_duration_s,
        };
        Some(offer.into())
    }
}

/// The steps of one kind, in the order of their declarations.
pub fn advertise(declarations: &[Declaration], kind: StepKind) -> Vec<Step> {
    declarations.iter().filter_map(|declaration| declaration.step(kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepKind::{Clean, Deploy, Service};
    use serde_json::json;

    const STEPS: &[Declaration] = &[
        Declaration { priorities: &[(Clean, 10), (Deploy, 0)], ..Declaration::new("deploy", "erase") },
        Declaration {
            priorities: &[(Clean, 0), (Service, 5)],
            reboot_requested: true,
            destructive: Destructive::Configuration,
            estimated_duration_s: Some(90),
            result_schema: Some(|| json!({"type": "null"})),
            arguments: &[Argument {
                name: "size",
                description: "GiB, at least 1",
                required: true,
                schema: || json!({"type": "integer", "minimum": 1}),
            }],
            ..Declaration::new("raid", "create")
        },
    ];

    #[test]
    fn one_declaration_is_a_step_of_each_of_its_kinds_with_the_priority_there() {
        let of = |kind| -> Vec<(String, u64)> {
            let steps = advertise(STEPS, kind);
            steps.into_iter().map(|step| (step.step, step.priority.as_u64().expect("integer"))).collect()
        };
        assert_eq!(of(Clean), [("erase".into(), 10), ("create".into(), 0)]);
        assert_eq!(of(Deploy), [("erase".into(), 0)]);
        assert_eq!(of(Service), [("create".into(), 5)]);
    }

    #[test]
    fn a_step_is_advertised_with_all_that_was_declared() {
        let step = STEPS[1].step(Service).expect("a service step");
        assert_eq!(
            serde_json::to_value(step).expect("writes"),
            json!({
                "interface": "raid", "step": "create", "priority": 5, "abortable": false,
                "reboot_requested": true, "idempotent": false, "destructive": "configuration",
                "estimated_duration_s": 90, "result_schema": {"type": "null"},
                "argsinfo": {"size": {
                    "description": "GiB, at least 1", "required": true,
                    "schema": {"type": "integer", "minimum": 1},
                }},
            })
        );
    }
}
