//! DHCP messages (RFC 2131 section 2) and the options we know (RFC 2132).

use crate::resolver::{NAME_SERVERS, NameServers};
use std::net::Ipv4Addr;

const FIXED: usize = 236;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Some relays drop shorter ones (BOOTP's minimum, RFC 951).
const MIN_LENGTH: usize = 300;
const BOOTREQUEST: u8 = 1;
const BOOTREPLY: u8 = 2;
const ETHERNET: u8 = 1;

const OPT_PAD: u8 = 0;
const OPT_MASK: u8 = 1;
const OPT_ROUTER: u8 = 3;
const OPT_DNS: u8 = 6;
const OPT_MTU: u8 = 26;
const OPT_REQUESTED: u8 = 50;
const OPT_LEASE: u8 = 51;
const OPT_TYPE: u8 = 53;
const OPT_SERVER: u8 = 54;
const OPT_PARAMETERS: u8 = 55;
const OPT_MAX_SIZE: u8 = 57;
const OPT_T1: u8 = 58;
const OPT_T2: u8 = 59;
const OPT_VENDOR_CLASS: u8 = 60;
const OPT_CLIENT_ID: u8 = 61;
const OPT_END: u8 = 255;

/// Type of a message (RFC 2132, 9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Client looks for servers.
    Discover,
    /// A server offers.
    Offer,
    /// The client takes an offer, or renews.
    Request,
    /// The server agrees.
    Ack,
    /// The server does not.
    Nak,
}

/// What we send.
#[derive(Debug, Clone, Copy)]
pub struct Query {
    /// Discover or Request.
    pub kind: Kind,
    /// Transaction.
    pub xid: u32,
    /// Seconds since the client began.
    pub seconds: u16,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Our address when we hold one, else unspecified.
    pub ciaddr: Ipv4Addr,
    /// The offer to take: address and server.
    pub offer: Option<(Ipv4Addr, Ipv4Addr)>,
}

/// What a server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Offer, Ack or Nak.
    pub kind: Kind,
    /// Transaction.
    pub xid: u32,
    /// To whom.
    pub mac: [u8; 6],
    /// Your address; unspecified from a proxy-DHCP server.
    pub yiaddr: Ipv4Addr,
    /// Server identifier.
    pub server: Option<Ipv4Addr>,
    /// Subnet mask.
    pub mask: Option<Ipv4Addr>,
    /// First router.
    pub router: Option<Ipv4Addr>,
    /// The first name servers; none where the option is malformed.
    pub dns: NameServers<Ipv4Addr>,
    /// MTU.
    pub mtu: Option<u16>,
    /// Seconds of lease, T1 and T2.
    pub lease: Option<u32>,
    /// Renewal.
    pub t1: Option<u32>,
    /// Rebinding.
    pub t2: Option<u32>,
}

impl Query {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![BOOTREQUEST, ETHERNET, 6, 0];
        bytes.extend(self.xid.to_be_bytes());
        bytes.extend(self.seconds.to_be_bytes());
        // Before we hold an address, only a broadcast can reach us through a plain socket.
        let broadcast = if self.ciaddr.is_unspecified() { 0x8000_u16 } else { 0 };
        bytes.extend(broadcast.to_be_bytes());
        bytes.extend(self.ciaddr.octets());
        bytes.resize(28, 0);
        bytes.extend(self.mac);
        bytes.resize(FIXED, 0);
        bytes.extend(COOKIE);
        bytes.extend([OPT_TYPE, 1, if self.kind == Kind::Discover { 1 } else { 3 }]);
        // iPXE's client identifier, so that a server gives us the address it gave to it.
        bytes.extend([OPT_CLIENT_ID, 7, ETHERNET]);
        bytes.extend(self.mac);
        bytes.extend([OPT_MAX_SIZE, 2, 5, 220]);
        bytes.extend([OPT_VENDOR_CLASS, 12]);
        bytes.extend(b"anneal-agent");
        bytes.extend([OPT_PARAMETERS, 7, OPT_MASK, OPT_ROUTER, OPT_DNS, OPT_MTU, OPT_LEASE, OPT_T1, OPT_T2]);
        if let Some((address, server)) = self.offer {
            bytes.extend([OPT_REQUESTED, 4]);
            bytes.extend(address.octets());
            bytes.extend([OPT_SERVER, 4]);
            bytes.extend(server.octets());
        }
        bytes.push(OPT_END);
        bytes.resize(bytes.len().max(MIN_LENGTH), 0);
        bytes
    }
}

impl Answer {
    /// From a datagram; `None` for anything that is not a well-formed answer.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let fixed = bytes.get(..FIXED)?;
        if fixed[..3] != [BOOTREPLY, ETHERNET, 6] || bytes.get(FIXED..FIXED + 4)? != COOKIE {
            return None;
        }
        let mut kind = None;
        let mut answer = Self {
            kind: Kind::Nak,
            xid: u32::from_be_bytes(fixed[4..8].try_into().ok()?),
            mac: fixed[28..34].try_into().ok()?,
            yiaddr: address(&fixed[16..20])?,
            server: None,
            mask: None,
            router: None,
            dns: [None; NAME_SERVERS],
            mtu: None,
            lease: None,
            t1: None,
            t2: None,
        };
        let mut rest = &bytes[FIXED + 4..];
        while let [code, tail @ ..] = rest {
            match *code {
                OPT_END => break,
                OPT_PAD => rest = tail,
                code => {
                    let (length, tail) = tail.split_first()?;
                    let value = tail.get(..usize::from(*length))?;
                    rest = &tail[usize::from(*length)..];
                    match code {
                        OPT_TYPE => kind = reply_kind(value),
                        OPT_SERVER => answer.server = address(value),
                        OPT_MASK => answer.mask = address(value),
                        OPT_ROUTER => answer.router = value.get(..4).and_then(address),
                        OPT_DNS => answer.dns = addresses(value),
                        OPT_MTU => answer.mtu = value.try_into().ok().map(u16::from_be_bytes),
                        OPT_LEASE => answer.lease = value.try_into().ok().map(u32::from_be_bytes),
                        OPT_T1 => answer.t1 = value.try_into().ok().map(u32::from_be_bytes),
                        OPT_T2 => answer.t2 = value.try_into().ok().map(u32::from_be_bytes),
                        _ => {}
                    }
                }
            }
        }
        answer.kind = kind?;
        Some(answer)
    }
}

fn reply_kind(value: &[u8]) -> Option<Kind> {
    match value {
        [2] => Some(Kind::Offer),
        [5] => Some(Kind::Ack),
        [6] => Some(Kind::Nak),
        _ => None,
    }
}

fn address(bytes: &[u8]) -> Option<Ipv4Addr> {
    <[u8; 4]>::try_from(bytes).ok().map(Ipv4Addr::from)
}

/// A list of addresses (RFC 2132, 3.8); none where it does not end with a whole one.
fn addresses(bytes: &[u8]) -> NameServers<Ipv4Addr> {
    let (whole, rest) = bytes.as_chunks::<4>();
    let mut found = [None; NAME_SERVERS];
    if rest.is_empty() {
        found.iter_mut().zip(whole).for_each(|(place, address)| *place = Some(Ipv4Addr::from(*address)));
    }
    found
}

/// Answers, for tests.
#[cfg(test)]
pub fn reply(kind: u8, xid: u32, mac: [u8; 6], yiaddr: Ipv4Addr, options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![BOOTREPLY, ETHERNET, 6, 0];
    bytes.extend(xid.to_be_bytes());
    bytes.resize(16, 0);
    bytes.extend(yiaddr.octets());
    bytes.resize(28, 0);
    bytes.extend(mac);
    bytes.resize(FIXED, 0);
    bytes.extend(COOKIE);
    bytes.extend([OPT_TYPE, 1, kind]);
    bytes.extend(options);
    bytes.push(OPT_END);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAC: [u8; 6] = [0x52, 0x54, 0, 1, 2, 3];

    #[test]
    fn a_discover_has_the_layout_of_rfc_2131() {
        let query = Query {
            kind: Kind::Discover,
            xid: 0x0102_0304,
            seconds: 5,
            mac: MAC,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            offer: None,
        };
        let bytes = query.encode();
        assert_eq!(bytes.len(), MIN_LENGTH);
        assert_eq!(bytes[..12], [1, 1, 6, 0, 1, 2, 3, 4, 0, 5, 0x80, 0]);
        assert_eq!(bytes[28..34], MAC);
        assert_eq!(bytes[236..243], [99, 130, 83, 99, 53, 1, 1]);
    }

    #[test]
    fn an_offer_is_read() {
        let yours = Ipv4Addr::new(10, 0, 2, 15);
        let options = [
            &[1, 4, 255, 255, 255, 0][..],
            &[3, 8, 10, 0, 2, 2, 10, 0, 2, 3],
            &[0, 54, 4, 10, 0, 2, 2],
            &[51, 4, 0, 0, 1, 0],
        ];
        let answer = Answer::decode(&reply(2, 7, MAC, yours, &options.concat())).expect("an offer");
        assert_eq!((answer.kind, answer.yiaddr, answer.mac), (Kind::Offer, yours, MAC));
        assert_eq!(answer.router, Some(Ipv4Addr::new(10, 0, 2, 2)));
        assert_eq!((answer.lease, answer.t1), (Some(256), None));
    }

    #[test]
    fn name_servers_are_whole_addresses_or_none() {
        let dns = |option: &[u8]| {
            let answer = Answer::decode(&reply(5, 7, MAC, Ipv4Addr::new(10, 0, 2, 15), option))?;
            Some(answer.dns.into_iter().flatten().map(|server| server.octets()[3]).collect::<Vec<_>>())
        };
        assert_eq!(dns(&[6, 4, 10, 0, 0, 2]), Some(vec![2]));
        assert_eq!(dns(&[6, 8, 10, 0, 0, 2, 10, 0, 0, 3]), Some(vec![2, 3]));
        let five: Vec<u8> = [6, 20].into_iter().chain((1..=5).flat_map(|last| [10, 0, 0, last])).collect();
        assert_eq!(dns(&five), Some(vec![1, 2, 3]));
        for malformed in
            [&[6, 0][..], &[6, 3, 10, 0, 0], &[6, 5, 10, 0, 0, 2, 10], &[6, 7, 10, 0, 0, 2, 10, 0, 0]]
        {
            assert_eq!(dns(malformed), Some(vec![]), "{malformed:?}");
        }
        assert_eq!(dns(&[6, 200, 10, 0, 0, 2]), None, "longer than the message");
    }

    proptest! {
        /// Whatever is on the wire, nothing panics, and no cut message is taken for a whole one.
        #[test]
        fn nonsense_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600), cut in 0..250_usize) {
            Answer::decode(&bytes);
            let mut glued = reply(2, 7, MAC, Ipv4Addr::LOCALHOST, &bytes);
            Answer::decode(&glued);
            glued.truncate(cut.min(242));
            prop_assert_eq!(Answer::decode(&glued), None);
        }
    }
}
