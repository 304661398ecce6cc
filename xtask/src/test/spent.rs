//! What a child took of the processors, which the kernel knows until its parent has waited for it.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fs_err as fs;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// `USER_HZ` of Linux: ticks in a second.
const TICKS: u64 = 100;

/// What a part of a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// From its start to its end.
    pub time: Duration,
    /// Of the processors, with children that it waited for. `None`: unknown.
    pub processor: Option<Duration>,
}

/// Waits for a child that began at this moment.
pub fn until_end(child: &mut Child, begun: Instant) -> Result<(ExitStatus, Spent)> {
    let pid = i32::try_from(child.id()).context("the number of a process")?;
    waitid(Id::Pid(Pid::from_raw(pid)), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    let processor = of_stat(&fs::read_to_string(format!("/proc/{pid}/stat"))?);
    Ok((child.wait()?, Spent { time: begun.elapsed(), processor }))
}

/// `utime`, `stime`, `cutime` and `cstime` of `/proc/PID/stat` (proc_pid_stat(5)), fields 14 to 17. The name in field 2 may have
/// spaces and parentheses.
fn of_stat(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let times: Vec<u64> =
        rest.split_whitespace().skip(11).take(4).map(str::parse).collect::<Result<_, _>>().ok()?;
    (times.len() == 4).then(|| Duration::from_millis(times.iter().sum::<u64>() * 1000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 9 0 0 150 50 20 30 20 0 1 0 5 6 7";
        assert_eq!(of_stat(stat), Some(Duration::from_millis(2500)));
        assert_eq!(of_stat("7 (a) S 1"), None);
    }

    #[test]
    fn what_a_child_and_its_children_took_is_known() {
        let begun = Instant::now();
        let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; exit 3";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let (status, spent) = until_end(&mut child, begun).unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(spent.processor > Some(Duration::ZERO) && spent.time > Duration::ZERO, "{spent:?}");
    }
}
