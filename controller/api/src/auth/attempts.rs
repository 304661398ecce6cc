//! How often passwords are tried from one address. Pure but for the table.
//!
//! Verifying a password takes a CPU for a quarter of a second, right or wrong. The table is in memory on purpose: it limits
//! what one process computes, decides nothing about the identity of a user, and is written by unauthenticated requests.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;
use tokio::time::Instant;

/// Attempts that an address has at once.
pub const BURST: u32 = 20;
/// Time after which an address has one more.
pub const REFILL: Duration = Duration::from_secs(3);
/// Most addresses that are remembered; beyond, all others share one allowance.
const ADDRESSES: usize = 4096;

/// When each address will have its whole allowance again; absent: it has it.
#[derive(Debug, Default)]
pub struct Attempts {
    full_at: BTreeMap<IpAddr, Instant>,
}

impl Attempts {
    /// Take one attempt of this address. `Err`: it has none; the time until it has one.
    pub fn take(&mut self, client: IpAddr, now: Instant) -> Result<(), Duration> {
        let key = self.key(client, now);
        let full_at = self.full_at.get(&key).copied().unwrap_or(now).max(now) + REFILL;
        let over = full_at.duration_since(now).saturating_sub(REFILL * BURST);
        if !over.is_zero() {
            return Err(over);
        }
        self.full_at.insert(key, full_at);
        Ok(())
    }

    /// Give one back: the password was right.
    pub fn give_back(&mut self, client: IpAddr, now: Instant) {
        let key = self.key(client, now);
        if let Some(full_at) = self.full_at.get_mut(&key) {
            *full_at = full_at.checked_sub(REFILL).unwrap_or(now);
        }
    }

    /// Under what an address is remembered: IPv6 by its /64, which one machine has to itself.
    fn key(&mut self, client: IpAddr, now: Instant) -> IpAddr {
        let key = match client.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        };
        if self.full_at.len() >= ADDRESSES && !self.full_at.contains_key(&key) {
            self.full_at.retain(|_, full_at| *full_at > now);
            if self.full_at.len() >= ADDRESSES {
                return Ipv6Addr::UNSPECIFIED.into();
            }
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_a_burst_and_then_one_attempt_at_a_time() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        let client = address("192.0.2.1");
        for _ in 0..BURST {
            assert_eq!(attempts.take(client, start), Ok(()));
        }
        for _ in 0..3 {
            assert_eq!(attempts.take(client, start), Err(REFILL), "refused attempts cost nothing more");
        }
        assert_eq!(attempts.take(address("192.0.2.2"), start), Ok(()), "another address");
        let later = start + REFILL;
        assert_eq!(attempts.take(client, later), Ok(()));
        assert_eq!(attempts.take(client, later), Err(REFILL));
        attempts.give_back(client, later);
        assert_eq!(attempts.take(client, later), Ok(()), "a right password is not counted");
        let much_later = start + REFILL * BURST * 10;
        let whole = (0..100).take_while(|_| attempts.take(client, much_later).is_ok()).count();
        assert_eq!(whole, BURST as usize, "what is saved up is bounded");
    }

    #[test]
    fn an_ipv6_network_is_one_address_and_the_table_is_bounded() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        for host in 0..BURST {
            assert_eq!(attempts.take(address(&format!("2001:db8::{host:x}")), now), Ok(()));
        }
        assert!(attempts.take(address("2001:db8::ffff:1"), now).is_err());
        assert_eq!(attempts.take(address("2001:db8:0:1::1"), now), Ok(()));
        for number in 0..10_000_u32 {
            let _ = attempts.take(Ipv6Addr::from(u128::from(number) << 64 | 1 << 120).into(), now);
        }
        assert!(attempts.full_at.len() <= ADDRESSES + 1, "{}", attempts.full_at.len());
        assert!(attempts.take(address("192.0.2.77"), now).is_err(), "newcomers share what is left");
        assert_eq!(attempts.take(address("192.0.2.77"), now + REFILL * BURST * 2), Ok(()));
    }
}
