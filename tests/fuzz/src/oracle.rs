//! A drive whose every answer comes from the fuzzer, and what all targets over drives have in common.

use block::drive::{Drive, Work};
use block::fault::Fault;
use block::mmc::Command;
use block::nvme::{Completion, NvmeCommand};
use block::scsi::Reply;
use block::transport::{Data, Transport};
use block::{Probe, Watch};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes of the input, taken one after the other.
#[derive(Debug)]
pub struct Tape<'a>(pub &'a [u8]);

impl<'a> Tape<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next two bytes, little endian.
    pub fn word(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte()?, self.byte()?]))
    }

    /// Up to `most` bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A piece: its length in one byte, in units of eight bytes, then as much of it as there is.
    pub fn piece(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?) * 8;
        Some(self.bytes(length))
    }
}

/// A drive that says what the fuzzer says, and is silent when that is over.
pub struct Oracle<'a> {
    tape: Mutex<Tape<'a>>,
    /// Data that the drive returned, with the command that asked for it.
    returned: Mutex<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl<'a> Oracle<'a> {
    /// Answers from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Oracle { tape: Mutex::new(Tape(bytes)), returned: Mutex::default() }
    }

    /// What the drive returned for the last command that `is` accepts, given its bytes; `None` without such a command.
    pub fn last_returned(&self, is: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        returned.iter().rev().find(|(asked, _)| is(asked)).map(|(_, data)| data.clone())
    }

    fn fill(&self, tape: &mut Tape<'a>, asked: Vec<u8>, data: &mut [u8]) {
        let piece = tape.piece().unwrap_or_default();
        for (to, from) in data.iter_mut().zip(piece) {
            *to = *from;
        }
        // ATA data is only looked at with a good checksum, which no fuzzer guesses.
        if data.len() == 512 && piece.first().is_some_and(|first| first & 1 == 0) {
            data[510] = 0xa5;
            data[511] = data[..511].iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
        }
        self.returned.lock().unwrap_or_else(PoisonError::into_inner).push((asked, data.to_owned()));
    }
}

fn silent() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

impl Transport for Oracle<'_> {
    fn nvme(&self, command: &NvmeCommand, data: &mut [u8], _: Duration) -> io::Result<Completion> {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let status = match tape.byte().ok_or_else(silent)? {
            0xff => return Err(silent()),
            0xf0.. => tape.word().ok_or_else(silent)?,
            _ => 0,
        };
        let asked = [command.opcode.to_le_bytes().to_vec(), command.cdw10.to_le_bytes().to_vec()].concat();
        self.fill(&mut tape, asked, data);
        Ok(Completion { status })
    }

    fn scsi(&self, cdb: &[u8], data: Data<'_>, _: Duration) -> io::Result<Reply> {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let (status, host) = match tape.byte().ok_or_else(silent)? {
            0xff => return Err(silent()),
            0xf8.. => (0, tape.word().ok_or_else(silent)?),
            0x80.. => (tape.byte().ok_or_else(silent)?, 0),
            _ => (0, 0),
        };
        let sense = if tape.byte().is_some_and(|byte| byte & 1 == 1) {
            tape.piece().unwrap_or_default().to_vec()
        } else {
            Vec::new()
        };
        let transferred = match data {
            Data::None => 0,
            Data::Out(data) => data.len(),
            Data::In(data) => {
                self.fill(&mut tape, cdb.to_vec(), data);
                match tape.byte() {
                    Some(short) if short & 0xf0 == 0xf0 => data.len() * usize::from(short & 0xf) / 16,
                    _ => data.len(),
                }
            }
        };
        Ok(Reply { status, host, sense, transferred })
    }

    fn mmc(&self, commands: &[Command], data: &mut [u8]) -> io::Result<Vec<u32>> {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statuses = Vec::new();
        for command in commands {
            statuses.push(match tape.byte().ok_or_else(silent)? {
                0xff => return Err(silent()),
                0xf0.. => u32::from(tape.word().ok_or_else(silent)?) << 12,
                _ => 0x900,
            });
            if command.length > 0 {
                self.fill(&mut tape, command.opcode.to_le_bytes().to_vec(), data);
            }
        }
        Ok(statuses)
    }

    fn pause(&self, _: Duration) {}
}

/// Runs one of the drive-side methods on the drive.
pub fn work(oracle: &Oracle<'_>, run: impl FnOnce(&Work<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
    work_of(oracle, &Probe::default(), run)
}

/// As [`work`], on a drive that said this.
pub fn work_of(
    oracle: &Oracle<'_>,
    probe: &Probe,
    run: impl FnOnce(&Work<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let drive = Drive { transport: oracle, probe };
    let watch: &dyn Watch = &();
    run(&Work { drive, report: &|_| {}, watch, estimate: Duration::from_secs(60) })
}
