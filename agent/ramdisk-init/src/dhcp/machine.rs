//! The client's states (RFC 2131 section 4.4), with time passed in.

use super::message::{Answer, Kind, Query};
use crate::netlink::Address;
use crate::resolver::NameServers;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Requests that are not answered before the client begins anew.
const REQUESTS: u32 = 4;
/// Longest pause between discovers: a switch port may block for half a minute (spanning tree).
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Shortest pause between renewals (RFC 2131, 4.4.5).
const RENEW_PAUSE: Duration = Duration::from_secs(60);
/// A server that names no time means this.
const DEFAULT_LEASE: u32 = 3600;
/// Shorter ones would keep us busy with renewals alone.
const SHORTEST_LEASE: u32 = 60;

/// What a server has granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Address and prefix.
    pub address: Address<Ipv4Addr>,
    /// Default router.
    pub router: Option<Ipv4Addr>,
    /// Name servers.
    pub dns: NameServers<Ipv4Addr>,
    /// MTU, when the server gives one that makes sense (576 to 9216).
    pub mtu: Option<u16>,
    /// The DHCP server that granted it.
    pub server: Ipv4Addr,
    /// Seconds; `u32::MAX` is without end (RFC 2131, 3.3).
    pub seconds: u32,
    t1: u32,
    t2: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Selecting { tries: u32 },
    Requesting { address: Ipv4Addr, server: Ipv4Addr, tries: u32 },
    Holding { lease: Lease, since: Duration },
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// A message to send, and where to (port 67).
    pub send: Option<(Vec<u8>, Ipv4Addr)>,
    /// When to call [`Machine::tick`] next, in the machine's time.
    pub wake: Duration,
}

/// One client on one interface. Time is a duration since any fixed moment, never going back.
#[derive(Debug)]
pub struct Machine {
    mac: [u8; 6],
    xid: u32,
    began: Duration,
    state: State,
}

impl Machine {
    /// A client that holds nothing. `xid` must be random.
    pub fn new(mac: [u8; 6], xid: u32, now: Duration) -> Self {
        Self { mac, xid, began: now, state: State::Selecting { tries: 0 } }
    }

    /// Time has come for something.
    pub fn tick(&mut self, now: Duration) -> Output {
        match self.state {
            State::Selecting { tries } => {
                self.state = State::Selecting { tries: tries.saturating_add(1) };
                let query = self.query(now, Kind::Discover, Ipv4Addr::UNSPECIFIED, None);
                broadcast(query, now + pause(tries))
            }
            State::Requesting { tries, .. } if tries >= REQUESTS => {
                self.state = State::Selecting { tries: 0 };
                self.tick(now)
            }
            State::Requesting { address, server, tries } => {
                self.state = State::Requesting { address, server, tries: tries + 1 };
                let query = self.query(now, Kind::Request, Ipv4Addr::UNSPECIFIED, Some((address, server)));
                broadcast(query, now + pause(tries))
            }
            State::Holding { lease, since } => self.hold(now, lease, since),
        }
    }

    fn hold(&mut self, now: Duration, lease: Lease, since: Duration) -> Output {
        let at = |seconds: u32| since + Duration::from_secs(seconds.into());
        let (t1, t2, end) = (at(lease.t1), at(lease.t2), at(lease.seconds));
        if lease.seconds == u32::MAX || now < t1 {
            let wake = if lease.seconds == u32::MAX { now + Duration::from_secs(86_400) } else { t1 };
            return Output { send: None, wake };
        }
        if now >= end {
            // The address stays on the interface until there is another: a machine in the middle of
            // an erase is better reachable at an old address than nowhere.
            self.state = State::Selecting { tries: 0 };
            return self.tick(now);
        }
        let query = self.query(now, Kind::Request, lease.address.ip, None);
        let (to, limit) = if now < t2 { (lease.server, t2) } else { (Ipv4Addr::BROADCAST, end) };
        let wake = (now + RENEW_PAUSE.max((limit - now) / 2)).min(limit);
        Output { send: Some((query, to)), wake }
    }

    /// A datagram came. The lease, when one is granted or renewed; and whether
    /// [`Machine::tick`] is due at once.
    pub fn receive(&mut self, now: Duration, datagram: &[u8]) -> (Option<Lease>, bool) {
        let Some(answer) = Answer::decode(datagram) else { return (None, false) };
        if answer.xid != self.xid || answer.mac != self.mac {
            return (None, false);
        }
        match (self.state, answer.kind) {
            (State::Selecting { .. }, Kind::Offer) => {
                // A proxy-DHCP server offers no address; it is of no use to us.
                let Some(server) = answer.server.filter(|_| usable(answer.yiaddr)) else {
                    return (None, false);
                };
                self.state = State::Requesting { address: answer.yiaddr, server, tries: 0 };
                (None, true)
            }
            (State::Requesting { server, .. }, Kind::Ack) => match lease(&answer, server) {
                Some(lease) => {
                    self.state = State::Holding { lease, since: now };
                    (Some(lease), true)
                }
                None => (None, false),
            },
            (State::Holding { lease: old, since }, Kind::Ack)
                if now >= since + Duration::from_secs(old.t1.into()) =>
            {
                match lease(&answer, old.server).filter(|fresh| fresh.address.ip == old.address.ip) {
                    Some(fresh) => {
                        self.state = State::Holding { lease: fresh, since: now };
                        (Some(fresh), true)
                    }
                    None => (None, false),
                }
            }
            (State::Requesting { server, .. }, Kind::Nak)
                if answer.server.is_none_or(|from| from == server) =>
            {
                self.state = State::Selecting { tries: 0 };
                (None, true)
            }
            (State::Holding { lease, since }, Kind::Nak)
                if now >= since + Duration::from_secs(lease.t1.into()) =>
            {
                self.state = State::Selecting { tries: 0 };
                (None, true)
            }
            _ => (None, false),
        }
    }

    fn query(
        &self,
        now: Duration,
        kind: Kind,
        ciaddr: Ipv4Addr,
        offer: Option<(Ipv4Addr, Ipv4Addr)>,
    ) -> Vec<u8> {
        let seconds = u16::try_from((now - self.began).as_secs()).unwrap_or(u16::MAX);
        Query { kind, xid: self.xid, seconds, mac: self.mac, ciaddr, offer }.encode()
    }
}

fn broadcast(query: Vec<u8>, wake: Duration) -> Output {
    Output { send: Some((query, Ipv4Addr::BROADCAST)), wake }
}

/// 1, 2, 4, then 8 s.
fn pause(tries: u32) -> Duration {
    Duration::from_secs(1_u64 << tries.min(3)).min(LONGEST_PAUSE)
}

fn usable(address: Ipv4Addr) -> bool {
    !address.is_unspecified() && !address.is_broadcast() && !address.is_multicast() && !address.is_loopback()
}

fn lease(answer: &Answer, server: Ipv4Addr) -> Option<Lease> {
    let ip = Some(answer.yiaddr).filter(|&address| usable(address))?;
    if answer.server.is_some_and(|from| from != server) {
        return None;
    }
    let seconds = answer.lease.unwrap_or(DEFAULT_LEASE).max(SHORTEST_LEASE);
    let part = |share: u64| u32::try_from(u64::from(seconds) * share / 1000).unwrap_or(seconds);
    // RFC 2131, 4.4.5: half and seven eighths, unless the server says otherwise.
    let t2 = answer.t2.unwrap_or_else(|| part(875)).clamp(1, seconds);
    let t1 = answer.t1.unwrap_or_else(|| part(500)).clamp(1, t2);
    Some(Lease {
        address: Address { ip, prefix: prefix(answer.mask, ip) },
        router: answer.router.filter(|&router| usable(router)),
        dns: answer.dns.map(|server| server.filter(|&server| usable(server))),
        mtu: answer.mtu.filter(|mtu| (576..=9216).contains(mtu)),
        server,
        seconds,
        t1,
        t2,
    })
}

/// Length of a mask; without a proper one, that of the address's old class.
fn prefix(mask: Option<Ipv4Addr>, ip: Ipv4Addr) -> u8 {
    let proper = |mask: &Ipv4Addr| {
        let bits = u32::from(*mask);
        bits.leading_ones() + bits.trailing_zeros() == 32 && bits != 0
    };
    let length = match mask.filter(proper) {
        Some(mask) => u32::from(mask).leading_ones(),
        None => match ip.octets()[0] {
            0..128 => 8,
            128..192 => 16,
            _ => 24,
        },
    };
    u8::try_from(length).unwrap_or(32)
}

#[cfg(test)]
mod tests {
    use super::super::message::reply;
    use super::*;
    use proptest::prelude::*;

    const MAC: [u8; 6] = [0x52, 0x54, 0, 1, 2, 3];
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
    const YOURS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
    const OFFER: u8 = 2;
    const ACK: u8 = 5;
    const NAK: u8 = 6;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn from_server(kind: u8, lease: u32) -> Vec<u8> {
        let mut options = vec![54, 4];
        options.extend(SERVER.octets());
        options.extend([1, 4, 255, 255, 255, 0, 3, 4]);
        options.extend(SERVER.octets());
        // A name server that can be one, between two that cannot.
        options.extend([6, 12, 255, 255, 255, 255, 10, 0, 2, 3, 127, 0, 0, 1]);
        options.extend([51, 4]);
        options.extend(lease.to_be_bytes());
        reply(kind, 7, MAC, YOURS, &options)
    }

    fn bound(lease: u32) -> Machine {
        let mut machine = Machine::new(MAC, 7, at(0));
        machine.tick(at(0));
        assert_eq!(machine.receive(at(1), &from_server(OFFER, lease)), (None, true));
        let request = machine.tick(at(1)).send.expect("a request").0;
        assert_eq!(request[240..243], [53, 1, 3]);
        let (granted, due) = machine.receive(at(2), &from_server(ACK, lease));
        let granted = granted.expect("a lease");
        assert!(due);
        assert_eq!((granted.address.ip, granted.address.prefix), (YOURS, 24));
        assert_eq!(granted.router, Some(SERVER));
        assert_eq!(granted.dns, [None, Some(Ipv4Addr::new(10, 0, 2, 3)), None]);
        machine
    }

    #[test]
    fn a_lease_is_won_renewed_rebound_and_lost() {
        let mut machine = bound(1000);
        assert_eq!(machine.tick(at(2)), Output { send: None, wake: at(502) });
        let renewing = machine.tick(at(502));
        assert_eq!(renewing.send.expect("renews").1, SERVER);
        assert!(renewing.wake > at(502) && renewing.wake <= at(877));
        let rebinding = machine.tick(at(877));
        assert_eq!(rebinding.send.expect("rebinds").1, Ipv4Addr::BROADCAST);
        let (renewed, _) = machine.receive(at(900), &from_server(ACK, 1000));
        assert!(renewed.is_some());
        assert_eq!(machine.tick(at(900)).wake, at(1400));
        let lost = machine.tick(at(1900)).send.expect("begins anew").0;
        assert_eq!(lost[240..243], [53, 1, 1]);
    }

    #[test]
    fn strangers_and_proxies_are_ignored() {
        let mut machine = Machine::new(MAC, 7, at(0));
        machine.tick(at(0));
        let mut options = vec![54, 4];
        options.extend(SERVER.octets());
        let proxy = reply(OFFER, 7, MAC, Ipv4Addr::UNSPECIFIED, &options);
        assert_eq!(machine.receive(at(1), &proxy), (None, false));
        assert_eq!(machine.receive(at(1), &reply(OFFER, 8, MAC, YOURS, &options)), (None, false));
        assert_eq!(machine.receive(at(1), &reply(OFFER, 7, [0; 6], YOURS, &options)), (None, false));
        // An acknowledgement without a request.
        assert_eq!(machine.receive(at(1), &from_server(ACK, 60)), (None, false));
    }

    #[test]
    fn silence_and_refusal_begin_anew() {
        let mut machine = Machine::new(MAC, 7, at(0));
        let pauses: Vec<u64> = (0..6).map(|_| machine.tick(at(0)).wake.as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 8, 8]);
        machine.receive(at(1), &from_server(OFFER, 60));
        machine.tick(at(1));
        assert_eq!(machine.receive(at(2), &from_server(NAK, 60)), (None, true));
        assert_eq!(machine.tick(at(2)).send.expect("discovers").0[242], 1);
    }

    #[test]
    fn masks_that_are_none_fall_back_to_the_class() {
        let length = |mask: [u8; 4]| prefix(Some(mask.into()), YOURS);
        assert_eq!(length([255, 255, 254, 0]), 23);
        assert_eq!(length([255, 255, 255, 255]), 32);
        assert_eq!(length([255, 0, 255, 0]), 8);
        assert_eq!(length([0, 0, 0, 0]), 8);
        assert_eq!(prefix(None, Ipv4Addr::new(192, 168, 1, 1)), 24);
    }

    proptest! {
        /// Whatever comes whenever: no panic, and time always goes on.
        #[test]
        fn the_machine_never_stops(events in proptest::collection::vec((0..5_u8, 0..2000_u64, any::<u32>()), 0..80)) {
            let mut machine = Machine::new(MAC, 7, at(0));
            let mut now = at(0);
            for (what, seconds, lease) in events {
                now += at(seconds);
                match what {
                    0 => drop(machine.receive(now, &from_server(OFFER, lease))),
                    1 => drop(machine.receive(now, &from_server(ACK, lease))),
                    2 => drop(machine.receive(now, &from_server(NAK, lease))),
                    3 => drop(machine.receive(now, &lease.to_be_bytes())),
                    _ => {}
                }
                prop_assert!(machine.tick(now).wake > now);
            }
        }
    }
}
