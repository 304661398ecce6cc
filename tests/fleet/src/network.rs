//! Where the simulated nodes are, and what they are called.

use std::net::{IpAddr, Ipv4Addr};
use uuid::Uuid;

/// Nodes that a [`Network`] has addresses for.
pub const MOST_NODES: u32 = 1 << 20;

/// A block of addresses: the node with number 0 has the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: Ipv4Addr,
}

impl Network {
    /// Addresses of loopback, from 127.64.0.1: every Linux machine answers to them.
    pub const LOOPBACK: Self = Self { first: Ipv4Addr::new(127, 64, 0, 1) };

    /// Addresses from 10.64.0.1, of a network namespace where 10.64.0.0/10 is local.
    pub const NAMESPACE: Self = Self { first: Ipv4Addr::new(10, 64, 0, 1) };

    /// The address of a node.
    pub fn address(self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() + number)
    }

    /// The number of the node with this address.
    pub fn number(self, address: IpAddr) -> Option<u32> {
        let IpAddr::V4(address) = address else { return None };
        address.to_bits().checked_sub(self.first.to_bits()).filter(|number| *number < MOST_NODES)
    }

    /// Whether a client may speak to the nodes. The listeners are bound to every address of the machine, so on loopback
    /// no client from outside is answered.
    pub fn admits(self, peer: IpAddr) -> bool {
        peer.is_loopback() || self == Self::NAMESPACE
    }
}

/// The MAC address of the node's only interface.
pub fn mac(number: u32) -> String {
    let [_, high, middle, low] = number.to_be_bytes();
    format!("52:54:0f:{high:02x}:{middle:02x}:{low:02x}")
}

/// The UUID that the node is enrolled with.
pub fn uuid(number: u32) -> Uuid {
    Uuid::from_u128(0xf1ee_0000_0000_4000_8000_0000_0000_0000 | u128::from(number))
}

/// The number of the node with this UUID.
pub fn number_of(uuid: &str) -> Option<u32> {
    let uuid: Uuid = uuid.parse().ok()?;
    let number = u32::try_from(uuid.as_u128() & u128::from(u32::MAX)).ok()?;
    (self::uuid(number) == uuid).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_an_address_of_its_own() {
        let net = Network::LOOPBACK;
        assert_eq!((net.address(0), net.address(300)), ([127, 64, 0, 1].into(), [127, 64, 1, 45].into()));
        for number in [0, 300, MOST_NODES - 1] {
            assert_eq!(net.number(net.address(number).into()), Some(number));
            assert_eq!(number_of(&uuid(number).to_string()), Some(number));
        }
        assert_eq!(net.number([127, 0, 0, 1].into()), None);
        assert_eq!(mac(0x01_02_03), "52:54:0f:01:02:03");
        assert_eq!(number_of("11111111-0000-4000-8000-000000000001"), None);
    }

    #[test]
    fn on_loopback_only_loopback_is_answered() {
        let [near, far] = [[127, 0, 0, 9], [192, 0, 2, 1]].map(IpAddr::from);
        assert!(Network::LOOPBACK.admits(near) && !Network::LOOPBACK.admits(far));
        assert!(Network::NAMESPACE.admits(far));
    }
}
