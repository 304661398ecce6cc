//! Processor time of processes, from `/proc`.

use anyhow::{Context, Result};
use nix::unistd::{SysconfVar, sysconf};
use std::time::Duration;

/// Processor time that a group of processes has used so far, threads included; to a clock tick (10 ms).
///
/// # Errors
/// When `/proc` cannot be read.
pub fn of_group(group: u32) -> Result<Duration> {
    let mut ticks = 0;
    for entry in std::fs::read_dir("/proc").context("/proc")? {
        // A process may end while it is looked at.
        let Ok(stat) = std::fs::read_to_string(entry?.path().join("stat")) else { continue };
        if let Some((its_group, used)) = parse(&stat)
            && its_group == group
        {
            ticks += used;
        }
    }
    in_time(ticks)
}

/// The same of a process, of its children, and of those of its children that have ended.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn of_family(parent: u32) -> Result<Duration> {
    let mut ticks = 0;
    for entry in std::fs::read_dir("/proc").context("/proc")? {
        let Ok(stat) = std::fs::read_to_string(entry?.path().join("stat")) else { continue };
        ticks += in_family(&stat, parent).unwrap_or_default();
    }
    in_time(ticks)
}

/// The same of one process.
///
/// # Errors
/// When there is none with this id.
pub fn of_process(id: u32) -> Result<Duration> {
    let path = format!("/proc/{id}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    in_time(parse(&stat).context(path)?.1)
}

/// The same of the kernel's workers (`kworker/…`), which do the work of loop devices, and that of others.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn of_kernel_workers() -> Result<Duration> {
    let mut ticks = 0;
    for entry in std::fs::read_dir("/proc").context("/proc")? {
        let Ok(stat) = std::fs::read_to_string(entry?.path().join("stat")) else { continue };
        let worker = stat.split_once('(').is_some_and(|(_, rest)| rest.starts_with("kworker/"));
        ticks += parse(&stat).filter(|_| worker).map_or(0, |(_, used)| used);
    }
    in_time(ticks)
}

fn in_time(ticks: u64) -> Result<Duration> {
    let a_second = sysconf(SysconfVar::CLK_TCK)?.and_then(|ticks| u32::try_from(ticks).ok()).unwrap_or(100);
    Ok(Duration::from_secs(ticks) / a_second)
}

/// What a process, from its `/proc/<pid>/stat`, adds to the ticks of the family of `parent`.
fn in_family(stat: &str, parent: u32) -> Option<u64> {
    let (_, used) = parse(stat)?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let is_parent = stat.split(' ').next()?.parse() == Ok(parent);
    if is_parent {
        return Some(used + number(13)? + number(14)?);
    }
    (number(1)? == u64::from(parent)).then_some(used)
}

/// Group and used ticks of one `/proc/<pid>/stat`. The name in parentheses may hold anything.
fn parse(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((fields.get(2)?.parse().ok()?, ticks(11)? + ticks(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_its_ticks_are_read() {
        let stat = "4242 (a ) b) S 1 4200 4200 0 -1 4194560 1 2 3 4 17 25 0 0 20 0 1 0 99 1 1 1";
        assert_eq!(parse(stat), Some((4200, 42)));
        assert_eq!(parse("gone"), None);
    }

    #[test]
    fn a_family_is_a_process_its_children_and_those_that_have_ended() {
        let stat = |id: u32, parent: u32| {
            format!(
                "{id} (postgres) S {parent} {id} 4200 0 -1 4194560 1 2 3 4 17 25 300 1000 20 0 1 0 99 1 1 1"
            )
        };
        assert_eq!(in_family(&stat(7, 1), 7), Some(1342));
        assert_eq!(in_family(&stat(8, 7), 7), Some(42), "what ended below a child is not counted twice");
        assert_eq!(in_family(&stat(9, 8), 7), None);
    }
}
