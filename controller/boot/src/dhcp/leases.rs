//! Which client has which address: in memory only.
//!
//! A node is offered the same address each time (its MAC chooses where the search begins), and a client
//! that comes with an address after our restart keeps it if it is free: so nothing need be stored.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::config::Pool;
use crate::Mac;

/// An offer holds the address for this long.
const OFFER: Duration = Duration::from_secs(60);
/// An address that a client found in use is not given out for this long.
const DECLINED: Duration = Duration::from_secs(600);

/// The leases of a running service, for those who ask which address a client has.
#[derive(Debug, Clone, Default)]
pub struct SharedLeases(Arc<Mutex<Leases>>);

impl SharedLeases {
    /// The address that this client has now, if it got one here.
    pub fn address_of(&self, mac: Mac) -> Option<Ipv4Addr> {
        let leases = self.lock();
        let lease = leases.by_mac.get(&mac).filter(|lease| lease.until > Instant::now());
        lease.map(|lease| lease.address)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Leases> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leases and offers of one pool.
#[derive(Debug, Default)]
pub struct Leases {
    by_mac: HashMap<Mac, Lease>,
    holder: HashMap<Ipv4Addr, Mac>,
    declined: HashMap<Ipv4Addr, Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    address: Ipv4Addr,
    until: Instant,
}

impl Leases {
    /// An address for an offer: the one the client has, else the one it asks for, else the first free
    /// from its own place on. `None` when the pool is exhausted.
    pub(super) fn offer(
        &mut self,
        pool: &Pool,
        reserved: &[Ipv4Addr],
        mac: Mac,
        wish: Option<Ipv4Addr>,
        now: Instant,
    ) -> Option<Ipv4Addr> {
        if let Some(lease) = self.by_mac.get(&mac).copied()
            && self.is_free(pool, reserved, lease.address, mac, now)
        {
            self.hold(mac, lease.address, lease.until.max(now + OFFER));
            return Some(lease.address);
        }
        let first = pool.first.to_bits();
        let size = pool.last.to_bits() - first + 1;
        let start = hash(mac) % size;
        let candidates = (0..size).map(|n| Ipv4Addr::from_bits(first + (start + n) % size));
        let address =
            wish.into_iter().chain(candidates).find(|a| self.is_free(pool, reserved, *a, mac, now))?;
        self.hold(mac, address, now + OFFER);
        Some(address)
    }

    /// Grants `address` if the client may have it; renews it if the client has it already.
    pub(super) fn grant(
        &mut self,
        pool: &Pool,
        reserved: &[Ipv4Addr],
        mac: Mac,
        address: Ipv4Addr,
        now: Instant,
    ) -> bool {
        let free = self.is_free(pool, reserved, address, mac, now);
        if free {
            self.hold(mac, address, now + pool.lease);
        }
        free
    }

    /// The client chose another server's offer, or gives its address back.
    pub(super) fn release(&mut self, mac: Mac) {
        if let Some(lease) = self.by_mac.remove(&mac) {
            self.holder.remove(&lease.address);
        }
    }

    /// The client found its address in use by a host that does not use this server.
    pub(super) fn decline(&mut self, mac: Mac, address: Ipv4Addr, now: Instant) {
        if self.by_mac.get(&mac).is_some_and(|lease| lease.address == address) {
            self.release(mac);
            self.declined.insert(address, now + DECLINED);
        }
    }

    fn is_free(&self, pool: &Pool, reserved: &[Ipv4Addr], address: Ipv4Addr, mac: Mac, now: Instant) -> bool {
        let held = self.holder.get(&address).is_some_and(|holder| {
            *holder != mac && self.by_mac.get(holder).is_some_and(|lease| lease.until > now)
        });
        let declined = self.declined.get(&address).is_some_and(|until| *until > now);
        pool.contains(address) && !reserved.contains(&address) && !held && !declined
    }

    fn hold(&mut self, mac: Mac, address: Ipv4Addr, until: Instant) {
        if let Some(before) = self.holder.insert(address, mac).filter(|before| *before != mac) {
            self.by_mac.remove(&before);
        }
        let old = self.by_mac.insert(mac, Lease { address, until });
        if let Some(old) = old.filter(|old| old.address != address) {
            self.holder.remove(&old.address);
        }
    }
}

/// FNV-1a: the same in every process, unlike the standard library's.
fn hash(mac: Mac) -> u32 {
    mac.octets()
        .into_iter()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn pool(last: u8) -> Pool {
        Pool {
            first: Ipv4Addr::new(10, 9, 0, 10),
            last: Ipv4Addr::new(10, 9, 0, last),
            prefix: 24,
            router: None,
            dns: Vec::new(),
            lease: Duration::from_secs(3600),
        }
    }

    #[test]
    fn the_same_node_the_same_address_also_after_a_restart() {
        let (now, mac) = (Instant::now(), Mac::new([2, 0, 0, 0, 0, 1]));
        let address = Leases::default().offer(&pool(99), &[], mac, None, now).unwrap();
        let mut leases = Leases::default();
        assert_eq!(leases.offer(&pool(99), &[], mac, None, now), Some(address));
        assert!(leases.grant(&pool(99), &[], mac, address, now));
        assert!(!leases.grant(&pool(99), &[], Mac::new([2, 0, 0, 0, 0, 2]), address, now));
        let later = now + Duration::from_secs(3601);
        assert!(leases.grant(&pool(99), &[], Mac::new([2, 0, 0, 0, 0, 2]), address, later), "expired");
    }

    /// Firmware that was reset asks anew (DHCPDISCOVER) while the ramdisk of the same node still uses the address.
    #[test]
    fn a_discover_does_not_shorten_a_lease() {
        let (now, mac, other) = (Instant::now(), Mac::new([2, 0, 0, 0, 0, 1]), Mac::new([2, 0, 0, 0, 0, 2]));
        let mut leases = Leases::default();
        let address = leases.offer(&pool(99), &[], mac, None, now).unwrap();
        assert!(leases.grant(&pool(99), &[], mac, address, now));
        assert_eq!(leases.offer(&pool(99), &[], mac, None, now), Some(address));
        let after_the_offer = now + OFFER + Duration::from_secs(1);
        assert!(!leases.grant(&pool(99), &[], other, address, after_the_offer));
        assert_ne!(leases.offer(&pool(99), &[], other, Some(address), after_the_offer), Some(address));
    }

    #[test]
    fn the_address_of_a_client_is_known_while_its_lease_lasts() {
        let (now, mac) = (Instant::now(), Mac::new([2, 0, 0, 0, 0, 1]));
        let shared = SharedLeases::default();
        assert_eq!(shared.address_of(mac), None);
        let address = shared.lock().offer(&pool(99), &[], mac, None, now);
        assert!(address.is_some() && shared.address_of(mac) == address);
        assert_eq!(shared.address_of(Mac::new([2, 0, 0, 0, 0, 2])), None);
        shared.lock().release(mac);
        assert_eq!(shared.address_of(mac), None);
    }

    #[test]
    fn no_address_twice_none_reserved_or_declined_and_none_when_exhausted() {
        let (now, pool) = (Instant::now(), pool(13));
        let reserved = [Ipv4Addr::new(10, 9, 0, 11)];
        let mut leases = Leases::default();
        let mut given = HashSet::new();
        for n in 0..3 {
            let address = leases.offer(&pool, &reserved, Mac::new([2, 0, 0, 0, 0, n]), None, now).unwrap();
            assert!(given.insert(address) && address != reserved[0]);
        }
        let late = Mac::new([2, 0, 0, 0, 0, 9]);
        assert_eq!(leases.offer(&pool, &reserved, late, None, now), None);
        let first = leases.by_mac[&Mac::new([2, 0, 0, 0, 0, 0])].address;
        leases.decline(late, first, now);
        assert_eq!(leases.offer(&pool, &reserved, late, None, now), None, "not its address to decline");
        leases.decline(Mac::new([2, 0, 0, 0, 0, 0]), first, now);
        assert_eq!(leases.offer(&pool, &reserved, late, Some(first), now), None);
        leases.release(Mac::new([2, 0, 0, 0, 0, 1]));
        assert!(leases.offer(&pool, &reserved, late, None, now).is_some());
    }
}
