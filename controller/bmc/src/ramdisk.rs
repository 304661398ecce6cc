//! The deploy interface `ramdisk`: the node boots a kernel and a ramdisk of its user's over the network, and no disk is touched. The
//! step and its priority are those of Ironic 39; the conductor does it ([`model::ramdisk_deploy`]).

use crate::declared::{Declared, StepCall, StepEnd};
use crate::{BmcError, ErrorKind};

/// Power off, boot device network, power on.
pub(crate) const STEPS: &[Declared] =
    &[Declared::new("deploy", |call, _| Box::pin(not_here(call))).deploy(100).idempotent()];

async fn not_here(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let message = format!("internal: {}.{} is a step of the conductor", call.interface, call.step);
    Err(BmcError::new(ErrorKind::Step, "", "run a step", message))
}
