//! `deploy.*`: steps of deployment.

use super::command::{Command, Mode, command_panicked};
use super::step::{EXECUTE, GET, execute_step, get_steps, step_panicked};
use agent_protocol::command::ANNEAL;
use hwm_sdk::StepKind::Deploy;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "deploy.get_deploy_steps",
        mode: Mode::Sync,
        required: &["node", "ports"],
        optional: &[],
        run: |call| get_steps(call, Deploy),
        panicked: command_panicked,
        compatibility: GET,
    },
    Command {
        name: "deploy.execute_deploy_step",
        mode: Mode::Async,
        required: &["step", "node", "ports"],
        optional: &["deploy_version", ANNEAL],
        run: |call| execute_step(call, Deploy),
        panicked: |params, panic| step_panicked(Deploy, params, panic),
        compatibility: EXECUTE,
    },
];
