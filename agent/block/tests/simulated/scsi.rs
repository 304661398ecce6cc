//! A SAS disk with SANITIZE and FORMAT UNIT.

use block::fake::FakeDisk;
use block::scsi::Reply;
use block::transport::{Data, Transport};
use std::io;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Debug, Default)]
pub struct State {
    /// Additional sense code and qualifier while something runs: 04h/1Bh, 04h/04h.
    pub running: Option<(u8, u8)>,
    /// The last operation failed.
    pub failed: bool,
    steps: u16,
    pub attention: bool,
    pub commands: Vec<Vec<u8>>,
}

pub struct ScsiDisk<'a> {
    pub disk: &'a FakeDisk,
    /// The operation fails half-way.
    pub fails: bool,
    /// The operation is taken, and nothing happens.
    pub lies: bool,
    /// It is over before the first question.
    pub quick: bool,
    pub state: Mutex<State>,
    pub registered_keys: u8,
}

impl<'a> ScsiDisk<'a> {
    pub fn new(disk: &'a FakeDisk) -> Self {
        ScsiDisk {
            disk,
            fails: false,
            lies: false,
            quick: false,
            state: Mutex::default(),
            registered_keys: 0,
        }
    }
}

fn check(key: u8, code: (u8, u8), progress: u16) -> Reply {
    let [high, low] = progress.to_be_bytes();
    let sense = vec![0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code.0, code.1, 0, 0x80, high, low];
    Reply { status: 2, sense, ..Reply::default() }
}

impl ScsiDisk<'_> {
    fn begin(&self, state: &mut State, cdb: &[u8], data: &Data<'_>) -> Reply {
        if state.running.is_some() {
            return check(2, (0x04, 0x1b), 0);
        }
        match (cdb[0], data) {
            (0x48, Data::Out(parameters)) => {
                assert_eq!((cdb[1], cdb[8], *parameters), (0x81, 8, &[1, 0, 0, 4, 0, 0, 0, 0][..]));
            }
            (0x48, _) => assert!(cdb[1] == 0x82 || cdb[1] == 0x83),
            (_, Data::Out(parameters)) => {
                assert_eq!((cdb[1], parameters[1] & 0x02, parameters.len()), (0x10, 2, 12));
            }
            _ => panic!("a format without parameters"),
        }
        (state.running, state.steps, state.failed) =
            (Some((0x04, if cdb[0] == 0x48 { 0x1b } else { 4 })), 0, false);
        state.commands.push(cdb.to_vec());
        if self.quick {
            state.steps = 3;
            self.step(state);
        }
        Reply::default()
    }

    fn step(&self, state: &mut State) {
        let Some(running) = state.running else { return };
        state.steps += 1;
        if state.steps < 4 {
            return;
        }
        (state.running, state.attention) = (None, true);
        if self.fails && running == (0x04, 0x1b) {
            state.failed = true;
        } else if !self.lies {
            let crypto = state.commands.last().is_some_and(|cdb| cdb[1] == 0x83);
            self.disk.fill(if crypto { 0x3c } else { 0 }, 0..1 << 20).unwrap();
        }
    }
}

impl Transport for ScsiDisk<'_> {
    fn scsi(&self, cdb: &[u8], mut data: Data<'_>, _: Duration) -> io::Result<Reply> {
        let mut state = self.state.lock().unwrap();
        if state.attention && cdb[0] != 0x03 {
            state.attention = false;
            return Ok(check(6, (0x29, 0), 0));
        }
        let mut answer = |bytes: &[u8]| {
            let Data::In(buffer) = &mut data else { panic!("no room") };
            let length = bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&bytes[..length]);
            Reply { transferred: length, ..Reply::default() }
        };
        Ok(match cdb[0] {
            0x03 => {
                let reply = match state.running {
                    Some(code) => check(2, code, state.steps * 16000),
                    None if state.failed => check(3, (0x31, 0x03), 0),
                    None => check(0, (0, 0), 0),
                };
                self.step(&mut state);
                answer(&reply.sense)
            }
            0x00 => match state.running {
                Some(code) => check(2, code, 0),
                None if state.failed => check(3, (0x31, 0x03), 0),
                None => Reply::default(),
            },
            0x04 | 0x48 => self.begin(&mut state, cdb, &data),
            0xa3 => answer(&[0, if matches!(cdb[3], 0x48 | 0x04 | 0x93) { 3 } else { 1 }, 0, 10]),
            0x5a => answer(&[0, 6, 0, 0, 0, 0, 0, 0]),
            0x9e => answer(&[0; 32]),
            0x12 => answer(&[0, 0xb2, 0, 4, 0, 0x84, 0, 0]),
            0x5e if cdb[1] == 0 => answer(&[0, 0, 0, 1, 0, 0, 0, 8 * self.registered_keys]),
            0x5e => answer(&[0; 8]),
            _ => check(5, (0x20, 0), 0),
        })
    }

    fn pause(&self, _: Duration) {}
}
