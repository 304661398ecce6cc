//! The deploy interface `direct`: the agent writes the image, and the node starts from its disk. Steps and priorities are
//! those of Ironic 39.

use crate::BmcError;
use crate::declared::{Declared, StepCall, StepEnd};
use serde_json::Value;

/// The conductor sends the steps of the agent, with the image, and does itself what changes the power
/// ([`model::plan::Reserved::of`]).
pub(crate) const STEPS: &[Declared] = &[
    // The core step. The ramdisk runs before the first step is begun, so nothing is left to do.
    Declared::new("deploy", |call, _| Box::pin(nothing(call))).deploy(100).requires_ramdisk().idempotent(),
    Declared::of_agent("write_image").deploy(80).abortable().idempotent(),
    Declared::of_agent("prepare_instance_boot").deploy(60).abortable().idempotent(),
    Declared::new("tear_down_agent", |call, _| Box::pin(nothing(call))).deploy(40).abortable().idempotent(),
    // The network interface noop has no networks to switch.
    Declared::new("switch_to_tenant_network", |call, _| Box::pin(nothing(call)))
        .deploy(30)
        .abortable()
        .idempotent(),
    Declared::new("boot_instance", |call, _| Box::pin(nothing(call))).deploy(20).abortable().idempotent(),
];

/// The deploy interface `custom-agent`: steps that the user names do the writing.
pub(crate) const CUSTOM_AGENT_STEPS: &[Declared] = &[
    Declared::new("deploy", |call, _| Box::pin(nothing(call))).deploy(100).requires_ramdisk().idempotent(),
    Declared::new("prepare_instance_boot", |call, _| Box::pin(nothing(call)))
        .deploy(60)
        .abortable()
        .idempotent(),
    Declared::new("tear_down_agent", |call, _| Box::pin(nothing(call))).deploy(40).abortable().idempotent(),
    Declared::new("switch_to_tenant_network", |call, _| Box::pin(nothing(call)))
        .deploy(30)
        .abortable()
        .idempotent(),
    Declared::new("boot_instance", |call, _| Box::pin(nothing(call))).deploy(20).abortable().idempotent(),
];

async fn nothing(_: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    Ok(StepEnd::Done(Value::Null))
}
