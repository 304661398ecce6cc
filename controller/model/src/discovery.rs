//! Machines that no node is known for: each is booted once, reports its hardware, and waits for an operator.
//!
//! ```text
//!            boot script               report of the agent            operator
//!  unknown ──────────────▶ booted ──────────────────────▶ waiting ──┬──▶ approved
//!                             │ a day without a report               └──▶ rejected
//!                             └──▶ forgotten
//! ```
//!
//! An operator can forget a machine; then it is unknown again.

use crate::boot::BootNonce;
use crate::node::Node;
use crate::provision::ProvisionState;
use crate::time::Timestamp;
use mac::Mac;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use uuid::Uuid;

/// For how long a machine that was booted is not booted again.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// For how long a boot loader may fetch the script of its boot again: what it names may not have arrived.
const REPEAT: Duration = Duration::from_secs(5 * 60);

/// What the nonce of such a boot begins with. The rest is the id of the machine and a secret.
const PREFIX: &str = "discovery-";

/// Most machines that are remembered: a decision reads them all.
pub const MOST: usize = 4096;

/// A machine that was booted although no node is known for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiscoveredMachine {
    /// Its id.
    pub id: Uuid,
    /// Count of writes; guards against lost updates. Never on the wire.
    pub version: u64,
    /// How far it is.
    pub state: DiscoveryState,
    /// The MAC address for which the boot script was fetched.
    pub mac: Mac,
    /// All its MAC addresses, as far as they are known.
    pub macs: Vec<Mac>,
    /// The address that fetched the script.
    pub address: IpAddr,
    /// The nonce of its boot.
    pub nonce: BootNonce,
    /// When it was booted.
    pub booted_at: Timestamp,
    /// Until when its agent waits for an operator.
    pub until: Timestamp,
    /// Its agent has shown the nonce: its boot loader needs the script no more.
    #[serde(default)]
    pub heard: bool,
    /// The node that its report made, which an operator may have deleted since.
    #[serde(default)]
    pub node: Option<Uuid>,
    /// When an operator approved or rejected it.
    #[serde(default)]
    pub decided_at: Option<Timestamp>,
}

/// How far a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveryState {
    /// Its boot script was fetched; nothing was reported.
    Booted,
    /// It is a node in `enroll`, and an operator has not decided.
    Waiting,
    /// An operator approved the node.
    Approved,
    /// An operator rejected it: its node is gone, and it is not booted again.
    Rejected,
}

impl DiscoveryState {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Booted => "booted",
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }
}

/// A client asks for the boot script of an unknown MAC address.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownBoot {
    /// The MAC address.
    pub mac: Mac,
    /// The address that asks.
    pub from: IpAddr,
    /// When.
    pub at: Timestamp,
}

/// How many machines are booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscoveryLimits {
    /// How long a machine waits for an operator.
    pub wait: Duration,
    /// Most machines that are booted in a minute.
    pub per_minute: usize,
    /// Most machines that wait, for their report or for an operator.
    pub waiting: usize,
}

/// Why a machine gets no boot script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotBooted {
    /// A node has this MAC address.
    Known,
    /// An operator rejected the machine.
    Rejected,
    /// It was booted before.
    BootedBefore,
    /// Another address has the script of this MAC address.
    AnotherAddress,
    /// [`DiscoveryLimits::per_minute`].
    TooManyInAMinute,
    /// [`DiscoveryLimits::waiting`].
    TooManyWait,
    /// [`MOST`].
    TooManyKnown,
}

impl fmt::Display for NotBooted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known => "a node has this MAC address",
            Self::Rejected => {
                "an operator rejected this machine or deleted its node; `anneal discovery forget` lets it boot again"
            }
            Self::BootedBefore => "it was booted before; `anneal discovery forget` lets it boot again",
            Self::AnotherAddress => "another address fetched the boot script of this MAC address",
            Self::TooManyInAMinute => "discovery.per_minute machines were booted within a minute",
            Self::TooManyWait => "discovery.max_waiting machines wait already",
            Self::TooManyKnown => "as many machines are known as are remembered; forget some",
        })
    }
}

impl DiscoveredMachine {
    /// A machine that is booted now.
    fn booted(boot: &UnknownBoot, limits: &DiscoveryLimits) -> Self {
        let id = Uuid::new_v4();
        let nonce = format!("{PREFIX}{}-{}", id.simple(), BootNonce::fresh().expose());
        Self {
            id,
            version: 1,
            state: DiscoveryState::Booted,
            mac: boot.mac,
            macs: vec![boot.mac],
            address: boot.from,
            nonce: BootNonce::shown(&nonce),
            booted_at: boot.at,
            until: boot.at.after(limits.wait),
            heard: false,
            node: None,
            decided_at: None,
        }
    }

    /// The machine whose nonce this could be; `None`: it is that of an ordinary boot.
    pub fn id_of(nonce: &BootNonce) -> Option<Uuid> {
        let (id, _) = nonce.expose().strip_prefix(PREFIX)?.split_once('-')?;
        Uuid::try_parse(id).ok()
    }

    /// Whether it was booted so long ago, without a report, that it counts as unknown.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.state == DiscoveryState::Booted && now.since(self.booted_at) >= DAY
    }

    /// How long its agent still waits.
    pub fn left(&self, now: Timestamp) -> Duration {
        self.until.since(now)
    }

    /// How far it is, given its node as it stands now. An operator who puts the node to work has approved it, and one who
    /// deletes it has rejected it.
    pub fn state_with(&self, node: Option<&Node>) -> DiscoveryState {
        self.state_given(node.map(|node| node.provision_state))
    }

    fn state_given(&self, node: Option<ProvisionState>) -> DiscoveryState {
        match (self.state, node) {
            (DiscoveryState::Waiting, None) => DiscoveryState::Rejected,
            (DiscoveryState::Waiting, Some(state)) if state != ProvisionState::Enroll => {
                DiscoveryState::Approved
            }
            (state, _) => state,
        }
    }

    /// The machine with the state that [`Self::state_with`] gives it: what a store returns of a stored one, so that a machine
    /// whose node was put to work or deleted neither counts as waiting nor waits.
    #[must_use]
    pub fn with_node_in(self, node: Option<ProvisionState>) -> Self {
        Self { state: self.state_given(node), ..self }
    }

    fn waits(&self, now: Timestamp) -> bool {
        match self.state {
            DiscoveryState::Booted => now < self.until,
            DiscoveryState::Waiting => true,
            DiscoveryState::Approved | DiscoveryState::Rejected => false,
        }
    }
}

/// The machine that a client may boot: one of `known`, whose script it may fetch again, or a new one.
///
/// # Errors
/// It gets no script.
pub fn machine_to_boot(
    known: &[DiscoveredMachine],
    boot: &UnknownBoot,
    limits: &DiscoveryLimits,
) -> Result<DiscoveredMachine, NotBooted> {
    let now = boot.at;
    let mut counted = known.iter().filter(|machine| !machine.is_over(now));
    if let Some(machine) = counted.clone().find(|machine| machine.macs.contains(&boot.mac)) {
        return match machine.state {
            DiscoveryState::Rejected => Err(NotBooted::Rejected),
            DiscoveryState::Booted if !machine.heard && now.since(machine.booted_at) < REPEAT => {
                match machine.address {
                    address if address == boot.from => Ok(machine.clone()),
                    _ => Err(NotBooted::AnotherAddress),
                }
            }
            _ => Err(NotBooted::BootedBefore),
        };
    }
    let minute = Duration::from_secs(60);
    if counted.clone().filter(|machine| now.since(machine.booted_at) < minute).count() >= limits.per_minute {
        return Err(NotBooted::TooManyInAMinute);
    }
    if counted.clone().filter(|machine| machine.waits(now)).count() >= limits.waiting {
        return Err(NotBooted::TooManyWait);
    }
    match counted.nth(MOST - 1) {
        Some(_) => Err(NotBooted::TooManyKnown),
        None => Ok(DiscoveredMachine::booted(boot, limits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: DiscoveryLimits =
        DiscoveryLimits { wait: Duration::from_secs(3600), per_minute: 3, waiting: 5 };
    const START: Timestamp = Timestamp(1_000_000_000);

    fn boot(last: u8, seconds: u64) -> UnknownBoot {
        let at = START.after(Duration::from_secs(seconds));
        UnknownBoot { mac: Mac::new([2, 0, 0, 0, 0, last]), from: [10, 9, 0, last].into(), at }
    }

    fn booted(last: u8, seconds: u64) -> DiscoveredMachine {
        machine_to_boot(&[], &boot(last, seconds), &LIMITS).unwrap()
    }

    fn asks(known: &[DiscoveredMachine], last: u8, seconds: u64) -> Result<DiscoveredMachine, NotBooted> {
        machine_to_boot(known, &boot(last, seconds), &LIMITS)
    }

    #[test]
    fn a_nonce_names_its_machine_and_is_a_secret() {
        let (one, other) = (booted(1, 0), booted(1, 0));
        assert_eq!(DiscoveredMachine::id_of(&one.nonce), Some(one.id));
        assert_ne!(one.nonce, other.nonce);
        let secret = one.nonce.expose().rsplit('-').next().unwrap();
        assert_eq!(secret.len(), 64);
        assert!(one.nonce.expose().len() <= 128, "the API reads no longer one");
        assert!(!format!("{one:?}").contains(secret));
        for ordinary in [BootNonce::fresh().expose(), "", "discovery-", "discovery-x-y", "discovery"] {
            assert_eq!(DiscoveredMachine::id_of(&BootNonce::shown(ordinary)), None, "{ordinary}");
        }
    }

    #[test]
    fn a_boot_loader_may_fetch_its_script_again_for_a_while() {
        let first = booted(1, 0);
        assert_eq!(asks(std::slice::from_ref(&first), 1, 299), Ok(first.clone()));
        assert_eq!(asks(std::slice::from_ref(&first), 1, 300), Err(NotBooted::BootedBefore));
        let elsewhere = UnknownBoot { from: [10, 9, 0, 66].into(), ..boot(1, 1) };
        assert_eq!(
            machine_to_boot(std::slice::from_ref(&first), &elsewhere, &LIMITS),
            Err(NotBooted::AnotherAddress)
        );
        let heard = DiscoveredMachine { heard: true, ..first };
        assert_eq!(asks(&[heard], 1, 1), Err(NotBooted::BootedBefore), "its agent has spoken");
    }

    #[test]
    fn a_machine_is_booted_once_in_a_day_by_whichever_interface() {
        let mut machine = booted(1, 0);
        machine.macs.push(boot(2, 0).mac);
        const DAY_S: u64 = 86_400;
        for last in [1, 2] {
            assert_eq!(
                asks(std::slice::from_ref(&machine), last, DAY_S - 1).map(|machine| machine.id),
                Err(NotBooted::BootedBefore)
            );
            assert_ne!(asks(std::slice::from_ref(&machine), last, DAY_S).unwrap().id, machine.id);
        }
        for (state, refused) in [
            (DiscoveryState::Waiting, NotBooted::BootedBefore),
            (DiscoveryState::Approved, NotBooted::BootedBefore),
            (DiscoveryState::Rejected, NotBooted::Rejected),
        ] {
            let machine = DiscoveredMachine { state, ..machine.clone() };
            for seconds in [1, DAY_S, 400 * DAY_S] {
                assert_eq!(asks(std::slice::from_ref(&machine), 2, seconds), Err(refused), "{state:?}");
            }
        }
    }

    #[test]
    fn what_an_operator_does_to_the_node_decides_too() {
        let waiting = DiscoveredMachine { state: DiscoveryState::Waiting, ..booted(1, 0) };
        let mut node = Node::enrolled(Uuid::new_v4(), "redfish", START);
        assert_eq!(waiting.state_with(Some(&node)), DiscoveryState::Waiting);
        node.provision_state = ProvisionState::Verifying;
        assert_eq!(waiting.state_with(Some(&node)), DiscoveryState::Approved);
        assert_eq!(waiting.state_with(None), DiscoveryState::Rejected);
        assert_eq!(booted(1, 0).state_with(None), DiscoveryState::Booted);
        let approved = DiscoveredMachine { state: DiscoveryState::Approved, ..waiting.clone() };
        assert_eq!(approved.state_with(None), DiscoveryState::Approved);
        assert_eq!(waiting.clone().with_node_in(Some(ProvisionState::Enroll)), waiting);
        assert_eq!(waiting.clone().with_node_in(Some(ProvisionState::Verifying)), approved);
        assert_eq!(waiting.with_node_in(None).state, DiscoveryState::Rejected);
    }

    #[test]
    fn so_many_are_booted_in_a_minute_and_so_many_wait() {
        let mut known: Vec<_> = (1..=3).map(|last| booted(last, 0)).collect();
        assert_eq!(asks(&known, 4, 59), Err(NotBooted::TooManyInAMinute));
        known.push(asks(&known, 4, 60).unwrap());
        known.push(asks(&known, 5, 60).unwrap());
        assert_eq!(asks(&known, 6, 130), Err(NotBooted::TooManyWait));
        known[0].state = DiscoveryState::Waiting;
        // Four have reported nothing in their time; the fifth waits for an operator, however long.
        assert!(asks(&known, 6, 3660).is_ok());
        for machine in &mut known {
            machine.state = DiscoveryState::Waiting;
        }
        assert_eq!(asks(&known, 6, 400_000), Err(NotBooted::TooManyWait));
        known[0].state = DiscoveryState::Approved;
        assert!(asks(&known, 6, 400_000).is_ok());
    }

    #[test]
    fn the_machines_that_are_remembered_are_bounded() {
        let one = DiscoveredMachine { state: DiscoveryState::Rejected, ..booted(1, 0) };
        let known = vec![one; MOST];
        assert_eq!(asks(&known, 2, 100), Err(NotBooted::TooManyKnown));
        assert!(asks(&known[1..], 2, 100).is_ok());
    }
}
