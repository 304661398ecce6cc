//! The deploy interface `direct`: the agent writes the image, and the node starts from its disk. Steps and priorities are
//! those of Ironic 39.

use crate::BmcError;
use crate::declared::{Declared, StepCall, StepEnd};
use serde_json::Value;

/// The core step. The ramdisk runs before the first step is begun; the conductor gets the image ready where the controller
/// serves it, which can be aborted.
const DEPLOY: Declared = Declared::new("deploy", |call, _| Box::pin(nothing(call)))
    .deploy(100)
    .requires_ramdisk()
    .abortable()
    .idempotent();

/// The network interface noop has no networks to switch.
const SWITCH_TO_TENANT_NETWORK: Declared = last("switch_to_tenant_network", 30);

/// The conductor sends the steps of the agent, with the image, and does itself what changes the power
/// ([`model::plan::Reserved::of`]).
pub(crate) const STEPS: &[Declared] = &[
    DEPLOY,
    Declared::of_agent("write_image").deploy(80).abortable().idempotent(),
    Declared::of_agent("prepare_instance_boot").deploy(60).abortable().idempotent(),
    last("tear_down_agent", 40),
    SWITCH_TO_TENANT_NETWORK,
    last("boot_instance", 20),
];

/// The deploy interface `custom-agent`: steps that the user names do the writing.
pub(crate) const CUSTOM_AGENT_STEPS: &[Declared] = &[
    DEPLOY,
    last("prepare_instance_boot", 60),
    last("tear_down_agent", 40),
    SWITCH_TO_TENANT_NETWORK,
    last("boot_instance", 20),
];

/// A step after the writing, of which nothing is done here.
const fn last(step: &'static str, priority: u32) -> Declared {
    Declared::new(step, |call, _| Box::pin(nothing(call))).deploy(priority).abortable().idempotent()
}

async fn nothing(_: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    Ok(StepEnd::Done(Value::Null))
}
