//! `service.*`: steps of service of an active node.

use super::command::{Command, Mode, command_panicked};
use super::step::{EXECUTE, GET, execute_step, get_steps, step_panicked};
use agent_protocol::command::ANNEAL;
use hwm_sdk::StepKind::Service;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "service.get_service_steps",
        mode: Mode::Sync,
        required: &["node", "ports"],
        optional: &[],
        run: |call| get_steps(call, Service),
        panicked: command_panicked,
        compatibility: GET,
    },
    Command {
        name: "service.execute_service_step",
        mode: Mode::Async,
        required: &["step", "node", "ports"],
        optional: &["service_version", ANNEAL],
        run: |call| execute_step(call, Service),
        panicked: |params, panic| step_panicked(Service, params, panic),
        compatibility: EXECUTE,
    },
];
