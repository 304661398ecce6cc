//! What moves a node on, by its provision state.

use crate::provision::ProvisionState;

/// How a node in a state gets out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
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

impl ProvisionState {
    /// What moves a node on that is in this state.
    pub fn phase(self) -> Phase {
        use Phase::{Failed, Held, Stable, Verifies, Works};
        use ProvisionState as P;
        match self {
            P::Enroll | P::Manageable | P::Available | P::Active | P::Rescue => Stable,
            P::Error
            | P::DeployFail
            | P::CleanFail
            | P::InspectFail
            | P::AdoptFail
            | P::RescueFail
            | P::UnrescueFail
            | P::ServiceFail => Failed,
            P::DeployHold | P::CleanHold | P::ServiceHold => Held,
            P::Verifying | P::Adopting => Verifies,
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
            | P::ServiceWait => Works,
        }
    }
}

impl Phase {
    /// Whether a user's command alone leads out of the state.
    pub fn is_at_rest(self) -> bool {
        matches!(self, Self::Stable | Self::Failed)
    }

    /// Whether the states have a run that is under way.
    pub fn has_run(self) -> bool {
        matches!(self, Self::Held | Self::Works)
    }
}
