//! An NVMe controller with Sanitize.

use block::fake::FakeDisk;
use block::nvme::{Completion, NvmeCommand, Queue};
use block::transport::Transport;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

/// How a controller misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whim {
    None,
    /// The command is taken and nothing happens; the log stays as it was.
    DoesNothing,
    /// The command is taken, the log says so, and the medium stays as it was.
    Lies,
    /// The operation fails half-way.
    Fails,
    /// Progress never moves.
    Stuck,
    /// It is over before its first status is read.
    Quick,
}

pub struct State {
    pub status: u16,
    pub progress: u16,
    pub command: u32,
    pub steps: u16,
    pub begun: Vec<u32>,
    pub waited: Duration,
}

pub struct NvmeDrive<'a> {
    pub disk: &'a FakeDisk,
    pub whim: Whim,
    pub state: Mutex<State>,
    /// SANICAP.
    pub sanicap: u8,
}

impl<'a> NvmeDrive<'a> {
    pub fn new(disk: &'a FakeDisk, whim: Whim, status: u16, command: u32) -> Self {
        let (begun, waited) = (Vec::new(), Duration::ZERO);
        let state = State { status, progress: 0xffff, command, steps: 0, begun, waited };
        NvmeDrive { disk, whim, state: Mutex::new(state), sanicap: 7 }
    }

    fn erase(&self, command: u32) {
        let fill = if command & 7 == 4 { 0xa5 } else { 0 };
        self.disk.fill(fill, 0..1 << 20).unwrap();
    }

    /// One step of whatever runs.
    fn step(&self, state: &mut State) {
        if state.status & 7 != 2 || self.whim == Whim::Stuck {
            return;
        }
        state.steps += 1;
        state.progress = state.steps.saturating_mul(16000);
        if self.whim == Whim::Fails && state.steps == 2 {
            state.status = 3;
        } else if state.steps == 4 {
            if self.whim != Whim::Lies {
                self.erase(state.command);
            }
            (state.status, state.progress) = (0x101, 0xffff);
        }
    }
}

impl Transport for NvmeDrive<'_> {
    fn nvme(&self, command: &NvmeCommand, data: &mut [u8], _: Duration) -> io::Result<Completion> {
        let mut state = self.state.lock().unwrap();
        let entry = command.entry();
        let cdw10 = u32::from_le_bytes(entry[40..44].try_into().unwrap());
        assert_eq!(command.queue, Queue::Admin);
        match entry[0] {
            0x02 if cdw10 & 0xff == 0x81 => {
                data.fill(0);
                data[0..2].copy_from_slice(&state.progress.to_le_bytes());
                data[2..4].copy_from_slice(&state.status.to_le_bytes());
                data[4..8].copy_from_slice(&state.command.to_le_bytes());
                data[8..20].fill(0xff);
                self.step(&mut state);
            }
            0x06 => {
                data.fill(0);
                match cdw10 & 0xff {
                    0x01 => data[328] = self.sanicap,
                    0x02 => data[0] = 1,
                    _ => {}
                }
            }
            0x84 if state.status & 7 == 2 => return Ok(Completion { status: 0x1d }),
            0x84 => {
                assert_eq!(data.len(), 0);
                state.begun.push(cdw10);
                if self.whim == Whim::DoesNothing {
                    return Ok(Completion::default());
                }
                (state.command, state.steps, state.progress, state.status) = (cdw10, 0, 0, 2);
                if self.whim == Whim::Quick {
                    self.erase(cdw10);
                    (state.status, state.progress) = (0x101, 0xffff);
                }
            }
            _ => return Ok(Completion { status: 0x4001 }),
        }
        Ok(Completion::default())
    }

    fn pause(&self, duration: Duration) {
        self.state.lock().unwrap().waited += duration;
    }
}
