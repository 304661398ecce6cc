//! The rules, numbered and named. `PROTOCOL.md` has the same list.

use std::fmt;

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $number:literal $name:literal $text:literal;)*) => {
        /// A rule of the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $text] $variant,)* }

        impl Rule {
            /// All of them, by number.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its number; never given to another rule.
            pub fn number(self) -> u32 {
                match self { $(Self::$variant => $number,)* }
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Text of the rule.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

rules! {
    Alive = 1 "alive" "The program runs from its start until the agent ends it.";
    OnlyMessages = 2 "only-messages" "Empty but messages, one a line, is written to file descriptor 3.";
    LineLimit = 3 "line-limit" "No line has more than 1 MiB.";
    AnswersOnce = 4 "answers-once" "Every request is answered once, with its id; nothing else is.";
    Notifications = 5 "notifications" "Notifications have the members of their method.";
    Hello = 6 "hello" "hello is answered as described, with a version that was offered.";
    HelloDeadline = 7 "hello-deadline" "hello is answered within 5 s of the start.";
    Version = 8 "version" "An offer without a version that is spoken is refused with -32000 and the versions that are.";
    ManagerName = 9 "manager-name" "Name and version have the characters they may have, and the name is not taken.";
    UnknownFields = 10 "unknown-fields" "Members that are not known are ignored.";
    UnknownMethod = 11 "unknown-method" "A request with an unknown method is answered with -32601.";
    UnknownNotification = 12 "unknown-notification" "An unknown notification is ignored.";
    BadLine = 13 "bad-line" "A line that is no JSON is answered with -32700, one that is no message with -32600; and it goes on.";
    BadParams = 14 "bad-params" "Params that are not those of the method are answered with -32602.";
    Detect = 15 "detect" "detect is answered as described.";
    DetectDeadline = 16 "detect-deadline" "detect is answered within 2 s.";
    DetectRepeats = 17 "detect-repeats" "detect gives the same answer for the same machine.";
    DetectAnyMachine = 18 "detect-any-machine" "detect answers for every machine, also an empty and a very large one.";
    Claims = 19 "claims" "A claim names a device, by id or by properties of its kind.";
    Quirks = 20 "quirks" "A quirk names machines, by properties, and a reason.";
    Init = 21 "init" "init is answered with a result, or with -32003 by a manager that cannot get ready.";
    InitDeadline = 22 "init-deadline" "init is answered within 60 s.";
    Inventory = 23 "inventory" "inventory is answered as described.";
    InventoryDeadline = 24 "inventory-deadline" "inventory is answered within 30 s.";
    Steps = 25 "steps" "steps is answered as described, each with an interface of the list.";
    StepsDeadline = 26 "steps-deadline" "steps is answered within 5 s.";
    StepsRepeat = 27 "steps-repeat" "steps gives the same answer when it is asked again.";
    StepNames = 28 "step-names" "Names of steps have the characters they may have, and each is in a list once.";
    ReservedSteps = 29 "reserved-steps" "No step is one that the agent or the controller has for itself.";
    Schemas = 30 "schemas" "Schemas have the keywords of the protocol and no others.";
    UnknownStep = 31 "unknown-step" "A step that is not offered is refused with -32005.";
    Arguments = 32 "arguments" "Wrong arguments are refused with -32001, before any work.";
    Run = 33 "run" "run is answered as described.";
    RunDeadline = 34 "run-deadline" "run is answered in its time.";
    ResultSchema = 35 "result-schema" "The result of a step is as its result_schema says.";
    Progress = 36 "progress" "Progress is of a call that is under way, and never goes back.";
    Checkpoint = 37 "checkpoint" "A checkpoint is of a run that is under way, and has at most 64 KiB.";
    Resume = 38 "resume" "A step goes on from its checkpoint.";
    Idempotent = 39 "idempotent" "A step that says that it is idempotent can be run again.";
    Cancel = 40 "cancel" "A step that says that it is abortable is answered within 10 s of a cancel, with -32002 or its result.";
    LateCancel = 41 "late-cancel" "A cancel of a call that was answered, or never made, is ignored.";
    EraseCapabilities = 42 "erase-capabilities" "erase_capabilities is answered as described.";
    EraseCapabilitiesDeadline = 43 "erase-capabilities-deadline" "erase_capabilities is answered within 10 s.";
    Declines = 44 "declines" "Disks that the manager does not know are declined.";
    EraseRefused = 45 "erase-refused" "erase of a disk that was declined is an error, never a success.";
    Erase = 46 "erase" "erase is answered as described, with the method that was asked for.";
    Services = 47 "services" "The agent is asked only what it offers, after init, and only for devices that were claimed.";
    Shutdown = 48 "shutdown" "shutdown is answered, and the program exits with status 0 within 10 s.";
    ClosedSocket = 49 "closed-socket" "The program exits within 10 s when its socket is closed, also while a step runs.";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02} {}", self.number(), self.name())
    }
}
