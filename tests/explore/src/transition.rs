//! What can happen next, in words.

use model::Verb;
use std::fmt;

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// The conductor looks at the node, decides, and stores or does what it decided.
    Turn(Answer),
    /// The conductor goes on with what it has begun.
    GoOn(Answer),
    /// The controller dies; it is started again at once.
    Die,
    /// The controller is away for longer than an agent may be silent.
    Away,
    /// Firmware boots the ramdisk, or the disk if no server offers one.
    Boot,
    /// The agent asks for its node and its token.
    Lookup,
    /// The same, and the answer is lost.
    LookupLost,
    /// The agent sends a heartbeat.
    Beat,
    /// The same, and it is late.
    BeatLate,
    /// The same, and a copy of it is late.
    BeatTwice,
    /// A late message arrives.
    Arrive,
    /// The running step ends well.
    StepEnds,
    /// It fails.
    StepFails,
    /// It is reported as a success with a record that contradicts it.
    StepLies,
    /// It will never end.
    StepHangs,
    /// It stops, as requested.
    StepStops,
    /// The BMC ends what it was at.
    TaskEnds,
    /// The BMC fails in it.
    TaskFails,
    /// The agent's process dies and is started again.
    AgentRestarts,
    /// The node resets and boots from the network.
    Reset,
    /// The node resets and boots from its disk.
    ResetToDisk,
    /// The node loses power.
    PowerLost,
    /// It comes back.
    PowerBack,
    /// Heartbeats and lookups are lost from now on.
    Mute,
    /// Everything between agent and controller is lost from now on.
    Cut,
    /// The network is well again.
    Heal,
    /// Hardware managers change.
    ManagersChange,
    /// A tick passes.
    Tick,
    /// The user asks for something.
    User(Verb),
}

/// How the world answers an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// As it should; also where there is no action.
    Well,
    /// It goes on with it.
    GoesOn,
    /// The request is lost.
    RequestLost,
    /// The request arrives, the answer is lost.
    AnswerLost,
    /// The request arrives after its sender has timed out.
    RequestLate,
    /// It breaks off in the middle.
    BreaksOff,
    /// The controller dies in the middle.
    Dies,
    /// The BMC says yes and does nothing.
    Ignored,
    /// It is refused for good.
    Refused,
}

impl Transition {
    /// Whether it is one of the disturbances that are counted.
    pub fn is_disturbance(self) -> bool {
        match self {
            Self::Turn(answer) | Self::GoOn(answer) => !matches!(answer, Answer::Well | Answer::GoesOn),
            Self::Boot
            | Self::Lookup
            | Self::Beat
            | Self::Arrive
            | Self::StepEnds
            | Self::StepStops
            | Self::TaskEnds
            | Self::PowerBack
            | Self::Heal
            | Self::Tick
            | Self::User(Verb::Unhold) => false,
            Self::Die
            | Self::Away
            | Self::LookupLost
            | Self::BeatLate
            | Self::BeatTwice
            | Self::StepFails
            | Self::StepLies
            | Self::StepHangs
            | Self::TaskFails
            | Self::AgentRestarts
            | Self::Reset
            | Self::ResetToDisk
            | Self::PowerLost
            | Self::Mute
            | Self::Cut
            | Self::ManagersChange
            | Self::User(_) => true,
        }
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(answer) => write!(f, "the conductor's turn{answer}"),
            Self::GoOn(answer) => write!(f, "the conductor goes on{answer}"),
            Self::Die => f.write_str("THE CONTROLLER DIES, and is started again"),
            Self::Away => f.write_str("THE CONTROLLER IS AWAY for long, and is started again"),
            Self::Boot => f.write_str("the firmware has booted"),
            Self::Lookup => f.write_str("the agent looks itself up"),
            Self::LookupLost => f.write_str("the agent looks itself up, THE ANSWER IS LOST"),
            Self::Beat => f.write_str("a heartbeat"),
            Self::BeatLate => f.write_str("A HEARTBEAT IS HELD BACK by the network"),
            Self::BeatTwice => f.write_str("a heartbeat, A COPY IS HELD BACK by the network"),
            Self::Arrive => f.write_str("what was held back arrives"),
            Self::StepEnds => f.write_str("the step ends well in the agent"),
            Self::StepFails => f.write_str("THE STEP FAILS in the agent"),
            Self::StepLies => f.write_str("THE STEP FAILS in the agent, and is reported as a success"),
            Self::StepHangs => f.write_str("THE STEP HANGS in the agent"),
            Self::StepStops => f.write_str("the step stops in the agent, as requested"),
            Self::TaskEnds => f.write_str("the BMC has done the step"),
            Self::TaskFails => f.write_str("THE BMC FAILS in the step"),
            Self::AgentRestarts => f.write_str("THE AGENT'S PROCESS RESTARTS with an empty memory"),
            Self::Reset => f.write_str("THE NODE RESETS and boots from the network"),
            Self::ResetToDisk => f.write_str("THE NODE RESETS and boots from its disk"),
            Self::PowerLost => f.write_str("THE NODE LOSES POWER"),
            Self::PowerBack => f.write_str("the power comes back"),
            Self::Mute => f.write_str("HEARTBEATS ARE LOST from now on"),
            Self::Cut => f.write_str("THE NETWORK IS CUT between agent and controller"),
            Self::Heal => f.write_str("the network is well again"),
            Self::ManagersChange => f.write_str("THE HARDWARE MANAGERS CHANGE"),
            Self::Tick => f.write_str("a tick passes"),
            Self::User(Verb::Unhold) => f.write_str("the user says unhold"),
            Self::User(verb) => write!(f, "THE USER ASKS: {}", verb.as_str()),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Well => "",
            Self::GoesOn => ", the action goes on outside",
            Self::RequestLost => ", THE REQUEST IS LOST",
            Self::AnswerLost => ", THE ANSWER IS LOST",
            Self::RequestLate => ", THE REQUEST IS HELD BACK by the network",
            Self::BreaksOff => ", THE ACTION BREAKS OFF in the middle",
            Self::Dies => ", THE CONTROLLER DIES in the middle of the action",
            Self::Ignored => ", THE BMC SAYS YES AND DOES NOTHING",
            Self::Refused => ", THE ACTION IS REJECTED permanently",
        })
    }
}
