//! The protocol between the agent and an external hardware manager, version 1.
//!
//! JSON-RPC 2.0, one message a line, both ways over one Unix stream socket. `PROTOCOL.md` in this crate is its
//! reference; every example there is read and written back by these types in `tests/frozen_protocol_1.rs`.

mod call;
mod claim;
mod erase;
mod error;
mod inventory;
mod line;
mod message;
mod name;
mod run;
mod service;
mod step;

pub use call::{
    Cancel, Cancelled, Detect, DetectParams, Detected, Hello, HelloAnswer, HelloParams, Init, Shutdown,
};
pub use claim::{Claim, ClaimKind, Quirk, Suppressed, like};
pub use erase::{
    AskErase, AskEraseParams, Erase, EraseAnswer, EraseCapabilities, EraseLevel, EraseMethod, EraseParams,
    Expected, ProviderRecord,
};
pub use error::{Code, RpcError};
pub use inventory::{
    BiosSetting, FirmwareComponent, InventoryCall, InventoryPatch, LogicalDisk, PatchAnswer, PhysicalDisk,
    Raid, RaidController,
};
pub use line::{LINE_MAX, LineBuffer, LineReader, TooLong};
pub use message::{Malformed, Message, decode};
pub use name::{
    INTERFACES, bad_manager_name, bad_step_name, bad_version, is_reserved_manager, is_reserved_step,
};
pub use run::{
    Checkpoint, CheckpointSaved, Level, Log, Logged, ProgressReport, Progressed, Run, RunAnswer, RunParams,
};
pub use service::{Artifact, DeviceData, Fetch, FetchParams, READ_MAX, ReadDevice, ReadDeviceParams};
pub use step::{Destructive, Priority, StepOffer, Steps, StepsAnswer, StepsParams};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version that these types speak.
pub const VERSION: u32 = 1;
/// File descriptor of the socket in the manager.
pub const FD: i32 = 3;
/// Environment variable with its number.
pub const FD_VARIABLE: &str = "ANNEAL_HWM_FD";
/// A cancelled `run` or `erase` that is abortable must answer within this time, and a manager must exit within it after
/// `shutdown` or the end of its socket.
pub const GRACE: Duration = Duration::from_secs(10);

/// A request with an answer.
pub trait Method {
    /// Name on the wire.
    const NAME: &'static str;
    /// Time for the answer; `None`: as [`run_deadline`] says.
    const DEADLINE: Option<Duration>;
    /// Parameters of the request.
    type Params: Serialize + DeserializeOwned;
    /// Result of the request.
    type Answer: Serialize + DeserializeOwned;
}

/// A message without an answer.
pub trait Notification {
    /// Name on the wire.
    const NAME: &'static str;
    /// Its content.
    type Params: Serialize + DeserializeOwned;
}

/// `{}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// How long a step or an erase may take when the operator says nothing: four times the estimate and at least an
/// hour, or a day without an estimate.
pub fn run_deadline(estimated_duration_s: Option<u64>) -> Duration {
    match estimated_duration_s {
        Some(seconds) => Duration::from_secs(seconds.saturating_mul(4).max(3600)),
        None => Duration::from_secs(24 * 3600),
    }
}
