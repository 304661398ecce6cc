//! What can happen next, in words.

use crate::world::Lack;
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
    /// The instance says hello.
    Hello,
    /// The agent asks for its node and its token.
    Lookup,
    /// The same, and the answer is lost.
    LookupLost,
    /// Someone who has no boot script asks for the token.
    Impostor,
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
    /// It ends well, and is reported without the proof that the agent owes.
    StepUnproven(Lack),
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
            Self::User(verb) => verb != Verb::Unhold,
            other => matches!(other.text(), Text::Disturbance(_)),
        }
    }

    fn text(self) -> Text {
        use Text::{Course, Disturbance};
        match self {
            Self::Turn(_) => Course("the conductor's turn"),
            Self::GoOn(_) => Course("the conductor goes on"),
            Self::Die => Disturbance("THE CONTROLLER DIES, and is started again"),
            Self::Away => Disturbance("THE CONTROLLER IS AWAY for long, and is started again"),
            Self::Boot => Course("the firmware has booted"),
            Self::Hello => Course("the instance says hello"),
            Self::Lookup => Course("the agent looks itself up"),
            Self::Impostor => Course("AN IMPOSTOR without the boot script asks for the token"),
            Self::LookupLost => Disturbance("the agent looks itself up, THE ANSWER IS LOST"),
            Self::Beat => Course("a heartbeat"),
            Self::BeatLate => Disturbance("A HEARTBEAT IS HELD BACK by the network"),
            Self::BeatTwice => Disturbance("a heartbeat, A COPY IS HELD BACK by the network"),
            Self::Arrive => Course("what was held back arrives"),
            Self::StepEnds => Course("the step ends well in the agent"),
            Self::StepFails => Disturbance("THE STEP FAILS in the agent"),
            Self::StepLies => Disturbance("THE STEP FAILS in the agent, and is reported as a success"),
            Self::StepUnproven(Lack::Signature) => Disturbance("the step ends, its report IS NOT SIGNED"),
            Self::StepUnproven(Lack::Disk) => Disturbance("the step ends, its report LACKS A DISK"),
            Self::StepUnproven(Lack::Report) => Disturbance("the step ends WITHOUT A REPORT"),
            Self::StepHangs => Disturbance("THE STEP HANGS in the agent"),
            Self::StepStops => Course("the step stops in the agent, as requested"),
            Self::TaskEnds => Course("the BMC has done the step"),
            Self::TaskFails => Disturbance("THE BMC FAILS in the step"),
            Self::AgentRestarts => Disturbance("THE AGENT'S PROCESS RESTARTS with an empty memory"),
            Self::Reset => Disturbance("THE NODE RESETS and boots from the network"),
            Self::ResetToDisk => Disturbance("THE NODE RESETS and boots from its disk"),
            Self::PowerLost => Disturbance("THE NODE LOSES POWER"),
            Self::PowerBack => Course("the power comes back"),
            Self::Mute => Disturbance("HEARTBEATS ARE LOST from now on"),
            Self::Cut => Disturbance("THE NETWORK IS CUT between agent and controller"),
            Self::Heal => Course("the network is well again"),
            Self::ManagersChange => Disturbance("THE HARDWARE MANAGERS CHANGE"),
            Self::Tick => Course("a tick passes"),
            Self::User(Verb::Unhold) => Course("the user says "),
            Self::User(_) => Disturbance("THE USER ASKS: "),
        }
    }
}

/// What happens, in words: in the normal course, or as a disturbance.
enum Text {
    Course(&'static str),
    Disturbance(&'static str),
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Text::Course(text) | Text::Disturbance(text)) = self.text();
        match self {
            Self::Turn(answer) | Self::GoOn(answer) => write!(f, "{text}{answer}"),
            Self::User(verb) => write!(f, "{text}{}", verb.as_str()),
            _ => f.write_str(text),
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
