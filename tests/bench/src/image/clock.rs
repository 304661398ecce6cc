//! Time by the clock, and processor time of all that takes part: a process, the server, the kernel's workers.

use crate::cpu;
use crate::erase::ours::Took;
use anyhow::Result;
use std::time::{Duration, Instant};

/// The processes that take part.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// The server.
    pub server: u32,
}

impl Clock {
    /// What `work` takes, by this process, its children that have ended, the server, and the kernel's workers, which copy
    /// for a loop device.
    ///
    /// # Errors
    /// When `work` fails.
    pub fn measure<T>(self, work: impl FnOnce() -> Result<T>) -> Result<(T, Took)> {
        let (begun, before) = (Instant::now(), self.used()?);
        let done = work()?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok((done, Took { seconds, cpu_s: self.used()?.saturating_sub(before).as_secs_f64() }))
    }

    fn used(self) -> Result<Duration> {
        use nix::sys::resource::{UsageWho, getrusage};
        let mut all = cpu::of_process(self.server)? + cpu::of_kernel_workers()?;
        for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
            let usage = getrusage(who)?;
            for time in [usage.user_time(), usage.system_time()] {
                all += Duration::from_micros(u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec())?);
            }
        }
        Ok(all)
    }
}
