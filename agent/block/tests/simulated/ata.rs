//! A SATA drive behind libata's translation: security feature set and SANITIZE DEVICE.

use super::silent;
use block::fake::FakeDisk;
use block::scsi::Reply;
use block::transport::{Data, Transport};
use std::io;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct State {
    /// User password, when one is set.
    pub password: Option<[u8; 32]>,
    pub locked: bool,
    pub frozen: bool,
    pub wrong: u32,
    prepared: bool,
    /// COUNT of SANITIZE STATUS EXT.
    pub status: u16,
    /// It gives the reason of a failure in LBA 7:0 instead.
    pub failed: bool,
    steps: u16,
    operation: u16,
    /// Sectors given back, and what is still hidden by HPA, DCO and AMAC.
    pub revealed: u64,
    pub hidden: [u64; 3],
    /// Every command that arrived.
    pub commands: Vec<u8>,
}

/// How a drive misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whim {
    None,
    /// SECURITY ERASE UNIT is aborted.
    RefusesErase,
    /// SECURITY ERASE UNIT reports success and does nothing, not even to the password.
    ErasesNothing,
    /// A password cannot be taken off again.
    KeepsPassword,
    /// Sanitize is taken, and the status of before is shown.
    SanitizesNothing,
    /// Sanitize fails half-way.
    SanitizeFails,
}

pub struct AtaDrive<'a> {
    pub disk: &'a FakeDisk,
    pub whim: Whim,
    pub state: Mutex<State>,
    /// After so many commands nothing arrives any more: the agent has died.
    pub dies_after: Option<usize>,
}

const SECTORS: u64 = 2048;

impl<'a> AtaDrive<'a> {
    pub fn new(disk: &'a FakeDisk, whim: Whim) -> Self {
        AtaDrive { disk, whim, state: Mutex::default(), dies_after: None }
    }

    /// Hides sectors behind HPA, DCO and AMAC.
    pub fn hiding(self, hidden: [u64; 3]) -> Self {
        self.state.lock().unwrap().hidden = hidden;
        self
    }

    fn identify(&self, state: &State) -> [u8; 512] {
        let mut data = [0u8; 512];
        let mut put =
            |word: usize, value: u16| data[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
        put(59, 0xf000);
        put(60, u16::try_from(SECTORS + state.revealed).unwrap());
        put(83, 0x4000 | u16::from(state.hidden[1] > 0 || state.revealed > 0) << 11);
        put(119, 0x4000 | u16::from(state.hidden[2] > 0) << 8);
        put(82, 1 << 10 | 1 << 1);
        put(89, 1);
        put(90, 1);
        let bits =
            [(0, true), (1, state.password.is_some()), (2, state.locked), (3, state.frozen), (5, true)];
        put(128, bits.iter().fold(0, |word, &(bit, set)| word | u16::from(set) << bit));
        data[510] = 0xa5;
        data[511] = 0u8.wrapping_sub(data.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
        data
    }

    /// `Ok((count, lba))` of the registers, or `Err((error, lba))` of an aborted command.
    #[expect(clippy::too_many_lines, reason = "one arm for each command, as the standard lists them")]
    fn run(&self, state: &mut State, cdb: &[u8], data: Data<'_>) -> Result<(u16, u64), (u8, u64)> {
        const ABORTED: (u8, u64) = (0x04, 0);
        let prepared = std::mem::take(&mut state.prepared);
        let secret = |data: &Data<'_>| -> (u8, [u8; 32]) {
            let Data::Out(bytes) = data else { panic!("no data") };
            assert_eq!((bytes.len(), cdb[2] & 0x0f, cdb[6]), (512, 0x06, 1));
            (bytes[0], bytes[2..34].try_into().unwrap())
        };
        let code = cdb[14];
        let lba = u64::from_be_bytes([0, 0, cdb[11], cdb[9], cdb[7], cdb[12], cdb[10], cdb[8]]);
        if (0xf1..=0xf6).contains(&code) && state.frozen {
            return Err(ABORTED);
        }
        match code {
            0xec => {
                let Data::In(buffer) = data else { panic!("no room") };
                buffer.copy_from_slice(&self.identify(state));
                Ok((0, 0))
            }
            0x27 => Ok((0, SECTORS - 1 + state.revealed + state.hidden[0])),
            0x37 => {
                let native = SECTORS - 1 + state.revealed + state.hidden[0];
                let before = state.commands[state.commands.len() - 2];
                if before != 0x27 || lba != native || cdb[6] != 1 || state.frozen {
                    return Err((0x10, 0));
                }
                state.revealed += std::mem::take(&mut state.hidden[0]);
                Ok((0, lba))
            }
            0x78 if cdb[4] == 0 => Ok((0, SECTORS - 1 + state.revealed + state.hidden[2])),
            0x78 => {
                if cdb[4] != 1 || lba != SECTORS - 1 + state.revealed + state.hidden[2] {
                    return Err(ABORTED);
                }
                state.revealed += std::mem::take(&mut state.hidden[2]);
                Ok((0, lba))
            }
            0xb1 if cdb[4] == 0xc2 => {
                let Data::In(buffer) = data else { panic!("no room") };
                let last = SECTORS - 1 + state.revealed + state.hidden[0] + state.hidden[1];
                buffer[6..14].copy_from_slice(&last.to_le_bytes());
                buffer[510] = 0xa5;
                buffer[511] = 0u8.wrapping_sub(buffer.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
                Ok((0, 0))
            }
            0xb1 => {
                if cdb[4] != 0xc0 || state.hidden[0] > 0 || state.frozen {
                    return Err(ABORTED);
                }
                state.revealed += std::mem::take(&mut state.hidden[1]);
                Ok((0, 0))
            }
            0xf1 => {
                if state.locked {
                    return Err(ABORTED);
                }
                let (identifier, password) = secret(&data);
                assert_eq!(identifier & 1, 0, "the user's, not the master's");
                state.password = Some(password);
                Ok((0, 0))
            }
            0xf2 => {
                let (_, password) = secret(&data);
                if state.wrong >= 5 || state.password != Some(password) {
                    state.wrong += 1;
                    return Err(ABORTED);
                }
                state.locked = false;
                Ok((0, 0))
            }
            0xf3 => {
                state.prepared = true;
                Ok((0, 0))
            }
            0xf4 => {
                let (mode, password) = secret(&data);
                if !prepared || state.password != Some(password) || self.whim == Whim::RefusesErase {
                    return Err(ABORTED);
                }
                if self.whim != Whim::ErasesNothing {
                    self.disk.fill(if mode & 2 != 0 { 0xff } else { 0 }, 0..SECTORS * 512).unwrap();
                    (state.password, state.locked) = (None, false);
                    if self.whim == Whim::KeepsPassword {
                        state.password = Some(password);
                    }
                }
                Ok((0, 0))
            }
            0xf6 => {
                let (_, password) = secret(&data);
                if state.locked || state.password != Some(password) || self.whim == Whim::KeepsPassword {
                    return Err(ABORTED);
                }
                state.password = None;
                Ok((0, 0))
            }
            0xb4 => self.sanitize(state, u16::from_be_bytes([cdb[3], cdb[4]]), cdb),
            _ => Err(ABORTED),
        }
    }

    fn sanitize(&self, state: &mut State, feature: u16, cdb: &[u8]) -> Result<(u16, u64), (u8, u64)> {
        let lba = u64::from_be_bytes([0, 0, cdb[11], cdb[9], cdb[7], cdb[12], cdb[10], cdb[8]]);
        assert_eq!(cdb[1] & 1, 1, "a 48-bit command");
        let key = match feature {
            0x0000 => {
                if state.status & 0x4000 != 0 {
                    state.steps += 1;
                    if self.whim == Whim::SanitizeFails && state.steps == 2 {
                        (state.status, state.failed) = (0, true);
                    } else if state.steps == 4 {
                        self.disk
                            .fill(if state.operation == 0x11 { 0x5a } else { 0 }, 0..SECTORS * 512)
                            .unwrap();
                        state.status = 0x8000;
                    }
                }
                return match state.failed {
                    true if cdb[6] & 1 == 0 => Err((0x04, 1)),
                    _ => Ok((state.status, u64::from(state.steps) * 16000)),
                };
            }
            0x0011 => 0x4372_7970,
            0x0012 => 0x426b_4572,
            0x0014 => 0x4f57_0000_0000,
            _ => return Err((0x04, 2)),
        };
        if lba != key || state.frozen {
            return Err((0x04, if state.frozen { 3 } else { 2 }));
        }
        if self.whim == Whim::SanitizesNothing {
            return Ok((state.status, 0));
        }
        (state.failed, state.status, state.steps, state.operation) = (false, 0x4000, 0, feature);
        Ok((state.status, 0))
    }
}

impl Transport for AtaDrive<'_> {
    fn scsi(&self, cdb: &[u8], data: Data<'_>, _: Duration) -> io::Result<Reply> {
        let mut state = self.state.lock().unwrap();
        if self.dies_after.is_some_and(|limit| state.commands.len() >= limit) {
            return Err(silent());
        }
        assert_eq!((cdb[0], cdb.len()), (0x85, 16));
        state.commands.push(cdb[14]);
        let transferred = if matches!(data, Data::In(_)) { 512 } else { 0 };
        assert_eq!(
            cdb[2] & 0x20 != 0,
            matches!(data, Data::None),
            "registers are asked for without data alone"
        );
        let (error, status, count, lba) = match self.run(&mut state, cdb, data) {
            Ok((count, lba)) => (0, 0x50, count, lba),
            Err((error, lba)) => (error, 0x51, 0, lba),
        };
        if cdb[2] & 0x20 == 0 && error == 0 {
            return Ok(Reply { transferred, ..Reply::default() });
        }
        let ([c1, c0], [_, _, l5, l4, l3, l2, l1, l0]) = (count.to_be_bytes(), lba.to_be_bytes());
        let key = if error == 0 { 1 } else { 0xb };
        let mut sense = vec![0x72, key, 0, if error == 0 { 0x1d } else { 0 }, 0, 0, 0, 14];
        sense.extend([0x09, 12, cdb[1] & 1, error, c1, c0, l3, l0, l4, l1, l5, l2, 0x40, status]);
        Ok(Reply { status: 2, sense, transferred, ..Reply::default() })
    }

    fn pause(&self, _: Duration) {}
}
