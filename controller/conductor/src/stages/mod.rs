//! The stages of a node, one file each. `decide` returns what comes next, `apply_outcome` returns what an outcome
//! changes; both are pure. A module uses only modules that stand below it in this picture.
//!
//! ```text
//! mod.rs               by provision state
//!  ├ verifying.rs      VERIFYING, ADOPTING
//!  ├ idle.rs           states without a run
//!  └ run.rs            states with a run: by the run's cursor
//!     ├ start.rs       does the run need a ramdisk?
//!     ├ boot.rs        boot the ramdisk, wait for its first heartbeat
//!     ├ agent_steps.rs ask the agent for its steps, make the plan
//!     ├ next_step.rs   store the next step; the reserved steps
//!     ├ command/       a step that the agent runs: dispatch, watch, result
//!     ├ out_of_band.rs a step that the controller runs
//!     ├ hello.rs       the instance that was started says that it runs
//!     ├ inspecting.rs  the inventory
//!     └ end.rs         all steps have succeeded
//!
//! plan.rs, replan.rs   the plan, and what happens to it when hardware managers change
//! success.rs           a step has succeeded
//! second_agent.rs      a second agent, or a second fetch of the boot script
//! basis.rs             what a cleaning that succeeded makes the node AVAILABLE on
//! erase_step.rs        the steps of the agent that erase disks
//! fast_track.rs        the ramdisk of a cleaning, kept running for a deployment
//! power_loss.rs        a node that boots has no power any more
//! power.rs             the BMC has not reached the requested power state yet
//! panicked.rs          what the controller gives up: the passes over the node panicked too often
//! medium.rs            the boot medium of virtual media
//! open_call.rs         what a controller that died may have had under way
//! restored.rs          the row of the node is of a backup
//! fail.rs              retried, failed, aborted; logs.rs: the ramdisk's logs
//! transition.rs        provision states; wait.rs: waits; view.rs: the snapshot with its run
//! ```

mod agent_steps;
mod basis;
mod boot;
mod command;
mod end;
mod erase_step;
mod fail;
mod fast_track;
mod hello;
mod idle;
mod inspecting;
mod logs;
mod medium;
mod next_step;
mod open_call;
mod out_of_band;
mod panicked;
mod plan;
mod power;
mod power_loss;
mod replan;
mod restored;
mod run;
mod second_agent;
mod start;
mod success;
mod transition;
mod verifying;
mod view;
mod wait;

use crate::decision::{Action, Change, Decision, Outcome, Snapshot};
use crate::settings::Settings;
pub use boot::BOOT_DEVICE_NEW;
use model::{PowerTarget, ProvisionState};
pub use open_call::may_be_unfenced;
pub use panicked::give_up;
pub use restored::after_restore;

/// What to do next for the node of this snapshot.
pub fn decide(snapshot: &Snapshot, settings: &Settings) -> Decision {
    match snapshot.node.provision_state {
        ProvisionState::Verifying | ProvisionState::Adopting => verifying::decide(snapshot),
        state if state.phase().has_run() => run::decide(snapshot, settings),
        _ => idle::decide(snapshot, settings),
    }
}

/// What an outcome changes. The node in the snapshot is the one that `decide` was given.
pub fn apply_outcome(snapshot: &Snapshot, action: &Action, outcome: Outcome, settings: &Settings) -> Change {
    let mut change = match snapshot.node.provision_state {
        ProvisionState::Verifying | ProvisionState::Adopting => {
            verifying::apply_outcome(snapshot, outcome, settings)
        }
        state if state.phase().has_run() => run::apply_outcome(snapshot, action, outcome, settings),
        _ => idle::apply_outcome(snapshot, action, outcome, settings),
    };
    if is_reset(action) {
        // A BMC that answers with an error may have reset the node nevertheless.
        change.node.reset_at = Some(snapshot.now);
    }
    change
}

/// Whether the firmware starts again with this action.
fn is_reset(action: &Action) -> bool {
    matches!(action, Action::SetPower(PowerTarget::Reboot | PowerTarget::SoftReboot))
}
