//! Faults as data.

/// A fault of one command or step; they are taken from a queue, in order, when one is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The step ends FAILED with this text.
    StepFails(&'static str),
    /// The node loses power two seconds into the step and stays off.
    PowerCut,
    /// The node resets two seconds into the step.
    Reset,
    /// The agent's process restarts two seconds into the step, in the same boot.
    AgentRestart,
    /// The command arrives, its answer does not.
    LostAnswer,
    /// The agent answers with a success whose report says that a disk failed.
    LyingReport,
    /// The agent answers with a success whose result has more than a mebibyte.
    LargeResult,
    /// Hardware managers changed: the step is refused.
    VersionMismatch,
    /// The step never ends, while its agent goes on sending heartbeats.
    Hang,
    /// The conductor is killed while an out-of-band step runs, before its outcome is stored.
    Kill,
    /// Nothing.
    None,
}
