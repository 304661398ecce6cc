//! What moves a node on, by its provision state.

use crate::node::Node;
use crate::provision::ProvisionState;

/// How a node in a state gets out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is left on request only.
    Stable,
    /// Something failed: it is left on request only.
    Failed,
    /// A step `hold` holds it.
    Held,
    /// The controller checks its BMC.
    Verifies,
    /// A run works on it.
    Works,
}

impl Phase {
    pub fn of(node: &Node) -> Self {
        use ProvisionState as P;
        match node.provision_state {
            P::Enroll | P::Manageable | P::Available | P::Active | P::Rescue => Self::Stable,
            P::Error
            | P::DeployFail
            | P::CleanFail
            | P::InspectFail
            | P::AdoptFail
            | P::RescueFail
            | P::UnrescueFail
            | P::ServiceFail => Self::Failed,
            P::DeployHold | P::CleanHold | P::ServiceHold => Self::Held,
            P::Verifying | P::Adopting => Self::Verifies,
            P::Deploying
            | P::DeployWait
            | P::Cleaning
            | P::CleanWait
            | P::Deleting
            | P::Inspecting
            | P::InspectWait
            | P::Rescuing
            | P::RescueWait
            | P::Unrescuing
            | P::Servicing
            | P::ServiceWait => Self::Works,
        }
    }

    /// Whether a user's command alone leads out of the state.
    pub fn is_at_rest(self) -> bool {
        matches!(self, Self::Stable | Self::Failed)
    }
}
