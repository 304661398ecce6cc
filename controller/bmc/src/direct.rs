//! The deploy interface `direct`: the agent writes the image.

use crate::declared::{Declared, StepCall, StepEnd};
use crate::{BmcError, ErrorKind};

/// The core step of a deployment. It runs in the controller, which sends the agent what to write.
pub(crate) const STEPS: &[Declared] =
    &[Declared::new("deploy", |call, _| Box::pin(deploy(call))).deploy(100).requires_ramdisk()];

async fn deploy(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let message = format!(
        "{}.{} cannot deploy: this version cannot write images yet; nothing was written",
        call.interface, call.step
    );
    Err(BmcError::new(ErrorKind::Step, "", "deploy", message))
}
