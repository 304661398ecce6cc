//! Which images give way to a new one: pure.

use crate::cache::Entry;
use std::collections::HashSet;

/// How much there is, and how much there may be, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    /// Most of the cache.
    pub(crate) limit: u64,
    /// What arrives now and is to arrive: reserved.
    pub(crate) reserved: u64,
    /// What of the reserved is written.
    pub(crate) arriving: u64,
    /// Free on the file system.
    pub(crate) free: u64,
    /// To be left free.
    pub(crate) floor: u64,
}

/// The names to remove, least recently used first, so that what is reserved fits; never one of `used`.
///
/// # Errors
/// It does not fit even so: why.
pub(crate) fn evicted(
    mut entries: Vec<Entry>,
    used: &HashSet<String>,
    space: Space,
) -> Result<Vec<String>, String> {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    entries.sort_by_key(|entry| entry.used);
    let mut kept: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut free = space.free;
    let to_come = space.reserved.saturating_sub(space.arriving);
    let mut removed = Vec::new();
    let mut candidates = entries.into_iter().filter(|entry| !used.contains(&entry.name));
    loop {
        let too_much = kept.saturating_add(space.reserved) > space.limit;
        let too_full = free < to_come.saturating_add(space.floor);
        if !too_much && !too_full {
            return Ok(removed);
        }
        let Some(entry) = candidates.next() else {
            return Err(if too_much {
                format!(
                    "the image cache has no room: {} MiB are needed and runs use {} of {} MiB ([images] cache_max_mib)",
                    mib(space.reserved),
                    mib(kept),
                    mib(space.limit)
                )
            } else {
                format!(
                    "the file system of the image cache is too full: {} MiB are needed, {} are free, {} stay free \
                     ([images] cache_min_free_mib)",
                    mib(to_come),
                    mib(free),
                    mib(space.floor)
                )
            });
        };
        kept -= entry.bytes;
        free = free.saturating_add(entry.bytes);
        removed.push(entry.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    const MIB: u64 = 1 << 20;

    fn entry(name: &str, mib: u64, used: u64) -> Entry {
        let used = SystemTime::UNIX_EPOCH + Duration::from_secs(used);
        Entry { name: name.to_owned(), bytes: mib * MIB, used }
    }

    fn space(limit: u64, reserved: u64, free: u64, floor: u64) -> Space {
        let mib = |bytes: u64| bytes * MIB;
        Space { limit: mib(limit), reserved: mib(reserved), arriving: 0, free: mib(free), floor: mib(floor) }
    }

    #[test]
    fn the_least_recently_used_goes_first_and_what_a_run_uses_never() {
        let entries =
            || vec![entry("new", 10, 30), entry("old", 10, 10), entry("used", 10, 5), entry("mid", 10, 20)];
        let used = HashSet::from(["used".to_owned()]);
        let of = |space| evicted(entries(), &used, space);
        assert_eq!(of(space(50, 10, 99, 0)), Ok(vec![]));
        assert_eq!(of(space(40, 10, 99, 0)), Ok(vec!["old".to_owned()]));
        assert_eq!(of(space(30, 15, 99, 0)), Ok(vec!["old".into(), "mid".into(), "new".into()]));
        assert!(of(space(19, 10, 99, 0)).unwrap_err().contains("cache_max_mib"));
        assert!(evicted(vec![], &used, space(5, 10, 99, 0)).unwrap_err().contains("cache_max_mib"));
    }

    #[test]
    fn the_floor_of_free_space_is_respected() {
        let entries = || vec![entry("a", 10, 1), entry("b", 10, 2)];
        let none = HashSet::new();
        let of = |free| evicted(entries(), &none, space(999, 10, free, 5));
        assert_eq!(of(15), Ok(vec![]));
        assert_eq!(of(14), Ok(vec!["a".to_owned()]));
        assert_eq!(of(0), Ok(vec!["a".to_owned(), "b".to_owned()]));
        let full = evicted(vec![], &none, space(999, 10, 14, 5)).unwrap_err();
        assert!(full.contains("cache_min_free_mib"), "{full}");
        // What has arrived already is no longer free, and no longer to come.
        let half = Space { arriving: 8 * MIB, ..space(999, 10, 7, 5) };
        assert_eq!(evicted(entries(), &none, half), Ok(vec![]));
    }
}
