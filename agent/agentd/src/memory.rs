//! How much memory the agent has needed.

/// The largest resident size of this process so far in KiB: `VmHWM` of `/proc/self/status` (proc(5)).
/// `None` when `/proc` is not there.
pub fn peak_kib() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// How much memory this machine could give now, in KiB: `MemAvailable` of `/proc/meminfo` (proc(5)).
pub fn available_kib() -> Option<u64> {
    number(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

fn parse(status: &str) -> Option<u64> {
    number(status, "VmHWM:")
}

fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read() {
        assert_eq!(parse("Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    4712 kB\n"), Some(4712));
        assert_eq!(parse("Name:\tx\n"), None);
        assert!(peak_kib().is_some_and(|kib| kib > 0));
        assert!(available_kib().is_some_and(|kib| kib > 0));
    }
}
