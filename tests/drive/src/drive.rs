//! A drive: its state, and what time does to it.

use crate::ata;
use crate::clock::Clock;
use crate::medium::Medium;
use crate::memory::Memory;
use crate::scsi;
use crate::sense::Sense;
use crate::spec::{Kind, Spec};
use crate::work::{Operation, Outcome};
use std::time::Duration;

/// Bytes of a logical block.
pub const SECTOR: u64 = 512;

const TEST_UNIT_READY: u8 = 0x00;
const REQUEST_SENSE: u8 = 0x03;

/// What a drive answers to a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// SCSI status (SAM-6 5.3.1).
    pub status: u8,
    /// Sense data, empty with status GOOD.
    pub sense: Vec<u8>,
    /// Data for the host, as much as it asked for at most.
    pub data: Vec<u8>,
}

/// What becomes of a command that did not end GOOD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// CHECK CONDITION with sense data in fixed format.
    Check(Sense),
    /// CHECK CONDITION with these bytes of sense data.
    Raw(Vec<u8>),
    /// RESERVATION CONFLICT.
    Reserved,
}

impl From<Sense> for Refusal {
    fn from(sense: Sense) -> Self {
        Refusal::Check(sense)
    }
}

/// A drive with power.
pub struct Drive {
    pub(crate) spec: Spec,
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) memory: Memory,
    pub(crate) ata: ata::State,
    pub(crate) clock: Box<dyn Clock>,
    kept: Box<dyn Medium>,
    /// When the operation that runs began.
    began: Duration,
    /// Operation code of the command before.
    before: u8,
    /// What it said on the console.
    notes: Vec<String>,
}

impl Drive {
    /// Power on. `kept` is at least [`crate::memory::BYTES`] that outlive the power.
    pub fn new(spec: Spec, medium: Box<dyn Medium>, kept: Box<dyn Medium>, clock: Box<dyn Clock>) -> Self {
        let mut memory = Memory::load(&*kept);
        if matches!(memory.running, Some((Operation::Format, _))) {
            // A format that lost its power is begun anew by the host or never.
            (memory.running, memory.outcome) = (None, Some(Outcome::Failed));
        }
        let elapsed = memory.running.map_or(0, |(_, elapsed)| elapsed);
        let began = clock.now().saturating_sub(Duration::from_millis(elapsed.into()));
        let ata = ata::State::power_on(&spec, &memory, medium.size() / SECTOR);
        Drive { spec, medium, memory, ata, clock, kept, began, before: 0, notes: Vec::new() }
    }

    /// Sectors that can be addressed.
    pub fn sectors(&self) -> u64 {
        self.ata.addressable
    }

    /// What it is.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Run a command; `out` is the host's data.
    pub fn execute(&mut self, cdb: &[u8], out: &[u8]) -> Answer {
        self.advance();
        let mut whole = [0; 16];
        let length = cdb.len().min(16);
        whole[..length].copy_from_slice(&cdb[..length]);
        // A first REQUEST SENSE asks what the drive is doing; later ones only poll.
        if whole[0] == REQUEST_SENSE && !matches!(self.before, REQUEST_SENSE | TEST_UNIT_READY) {
            self.asked_what_there_is();
        }
        self.before = whole[0];
        let answer = match scsi::execute(self, &whole, out) {
            Ok(data) => Answer { data, ..Answer::default() },
            Err(Refusal::Check(sense)) => Answer { status: 2, sense: sense.fixed(), data: Vec::new() },
            Err(Refusal::Raw(sense)) => Answer { status: 2, sense, data: Vec::new() },
            Err(Refusal::Reserved) => Answer { status: 0x18, ..Answer::default() },
        };
        self.memory.save(&*self.kept);
        answer
    }

    /// Takes the notes since the last call, for a log.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn note(&mut self, words: impl Into<String>) {
        self.notes.push(words.into());
    }

    pub(crate) fn save(&self) {
        self.memory.save(&*self.kept);
    }

    /// Begin an operation that this host asks for.
    pub(crate) fn begin_ours(&mut self, operation: Operation) {
        if self.spec.busy {
            self.memory.had_its_whim = true;
        }
        self.memory.outcome = None;
        self.begin(operation);
    }

    /// Begin an operation. Everything else waits for its end.
    fn begin(&mut self, operation: Operation) {
        self.note(format!("{operation:?} begins"));
        self.began = self.clock.now();
        self.memory.running = Some((operation, 0));
    }

    /// How far the operation is that runs, in 65536ths.
    pub(crate) fn progress(&self) -> Option<(Operation, u16)> {
        let (operation, elapsed) = self.memory.running?;
        let whole = u64::try_from(self.spec.takes.as_millis()).unwrap_or(u64::MAX).max(1);
        let share = u64::from(elapsed) * 65536 / whole;
        Some((operation, u16::try_from(share).unwrap_or(u16::MAX)))
    }

    /// Of a busy drive, another host begins an operation whenever the drive is asked what it can do, until one of
    /// ours was taken.
    pub(crate) fn asked_what_there_is(&mut self) {
        if self.spec.busy && !self.memory.had_its_whim && self.memory.running.is_none() {
            self.begin(Operation::Overwrite([0x55; 4]));
        }
    }

    /// Whether an erase that was just taken is the one that changes nothing.
    pub(crate) fn lies(&mut self) -> bool {
        self.spec.lies && self.whim()
    }

    /// True once in the drive's life.
    fn whim(&mut self) -> bool {
        !std::mem::replace(&mut self.memory.had_its_whim, true)
    }

    fn advance(&mut self) {
        let Some((operation, _)) = self.memory.running else { return };
        let elapsed = self.clock.now().saturating_sub(self.began);
        if elapsed < self.spec.takes {
            let millis = u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX);
            self.memory.running = Some((operation, millis));
            return;
        }
        self.memory.running = None;
        if self.spec.fails && self.whim() {
            self.memory.outcome = Some(Outcome::Failed);
            self.note(format!("{operation:?} fails"));
            return;
        }
        if !self.lies() {
            operation.apply(&*self.medium, 0..self.medium.size());
        }
        self.memory.outcome = Some(Outcome::Succeeded);
        self.note(format!("{operation:?} ends"));
    }

    /// Whether content can be read and written now.
    pub(crate) fn ready(&self) -> Result<(), Sense> {
        match self.progress() {
            Some((Operation::Format, progress)) => return Err(Sense::formatting(progress)),
            Some((_, progress)) => return Err(Sense::sanitizing(progress)),
            None => {}
        }
        if self.memory.outcome == Some(Outcome::Failed) {
            return Err(Sense::SANITIZE_FAILED);
        }
        Ok(())
    }

    /// As [`Drive::ready`], and the drive gives its content to this host.
    pub(crate) fn open(&self) -> Result<(), Sense> {
        self.ready()?;
        if self.spec.kind == Kind::Ata && self.ata.locked { Err(Sense::LOCKED) } else { Ok(()) }
    }
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive")
            .field("spec", &self.spec)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}
