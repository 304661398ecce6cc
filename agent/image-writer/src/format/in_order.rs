//! Content in the order of the file, of which compressed clusters are unpacked at the same time.

use super::Sink;
use super::cluster::Unpacker;
use super::qcow2::Packing;
use crate::error::ImageError;
use crate::pool::Pool;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Content that waits at most, unless each decoder needs more than its share for one cluster.
const WAITING: usize = 1 << 20;
/// Smaller clusters are not worth the way to another thread.
const SMALLEST: usize = 16 << 10;

type Unpacked = Result<Vec<u8>, String>;

struct Job {
    packed: Vec<u8>,
    to: SyncSender<Unpacked>,
}

/// What comes to the sink next.
enum Waiting {
    Data(u64, Vec<u8>),
    Zero(u64, u64),
    /// A cluster that is being unpacked, of which so many bytes are on the disk.
    Packed(u64, usize, Receiver<Unpacked>),
}

/// Gives a sink the content in the order in which it is named.
pub(super) struct InOrder<'a> {
    sink: &'a mut dyn Sink,
    cluster: usize,
    own: Unpacker,
    decoders: Option<Pool<Job>>,
    waiting: VecDeque<Waiting>,
    /// How many may wait.
    most: usize,
}

impl<'a> InOrder<'a> {
    /// Of clusters of so many bytes, with so many decoders.
    pub(super) fn new(
        sink: &'a mut dyn Sink,
        packing: Packing,
        cluster: usize,
        decoders: usize,
    ) -> Result<Self, ImageError> {
        let most = (WAITING / cluster).max(decoders);
        let failed = |problem: String| ImageError::Internal(format!("a decoder: {problem}"));
        let own = Unpacker::new(packing).map_err(failed)?;
        let decoders = (decoders > 1 && cluster >= SMALLEST).then(|| {
            Pool::new(decoders, most, || {
                let mut own = Unpacker::new(packing);
                move |job: Job| {
                    let own = own.as_mut().map_err(|problem| problem.clone());
                    // The receiver is gone if the writer failed meanwhile.
                    let _ = job.to.send(own.and_then(|own| own.unpack(&job.packed, cluster)));
                }
            })
        });
        let decoders = decoders.transpose().map_err(|error| failed(error.to_string()))?;
        Ok(InOrder { sink, cluster, own, decoders, waiting: VecDeque::new(), most })
    }

    /// The image has so many bytes.
    pub(super) fn size(&mut self, bytes: u64) -> Result<(), ImageError> {
        self.sink.size(bytes, self.cluster)
    }

    /// Bytes as they are.
    pub(super) fn data(&mut self, guest: u64, bytes: &[u8]) -> Result<(), ImageError> {
        if self.waiting.is_empty() {
            return self.sink.data(guest, bytes);
        }
        self.wait_for(Waiting::Data(guest, bytes.to_vec()))
    }

    /// Zeroes.
    pub(super) fn zero(&mut self, guest: u64, length: u64) -> Result<(), ImageError> {
        if self.waiting.is_empty() {
            return self.sink.zero(guest, length);
        }
        self.wait_for(Waiting::Zero(guest, length))
    }

    /// A compressed cluster, of which `length` bytes are on the disk.
    pub(super) fn packed(&mut self, guest: u64, length: usize, packed: Vec<u8>) -> Result<(), ImageError> {
        let Some(decoders) = &self.decoders else {
            let unpacked = self.own.unpack(&packed, self.cluster).map_err(corrupt)?;
            return self.sink.data(guest, &unpacked[..length]);
        };
        let (to, unpacked) = sync_channel(1);
        if !decoders.give(Job { packed, to }) {
            return Err(ImageError::Internal("the decoders stopped".to_owned()));
        }
        self.wait_for(Waiting::Packed(guest, length, unpacked))
    }

    /// All that waits.
    pub(super) fn finish(&mut self) -> Result<(), ImageError> {
        while let Some(first) = self.waiting.pop_front() {
            self.give(first)?;
        }
        Ok(())
    }

    fn wait_for(&mut self, next: Waiting) -> Result<(), ImageError> {
        self.waiting.push_back(next);
        if self.waiting.len() <= self.most {
            return Ok(());
        }
        self.waiting.pop_front().map_or(Ok(()), |first| self.give(first))
    }

    fn give(&mut self, first: Waiting) -> Result<(), ImageError> {
        match first {
            Waiting::Data(guest, bytes) => self.sink.data(guest, &bytes),
            Waiting::Zero(guest, length) => self.sink.zero(guest, length),
            Waiting::Packed(guest, length, unpacked) => {
                let unpacked = unpacked.recv().map_err(|_| corrupt("its decoder stopped".to_owned()))?;
                self.sink.data(guest, &unpacked.map_err(corrupt)?[..length])
            }
        }
    }
}

fn corrupt(problem: String) -> ImageError {
    super::qcow2::corrupt(&format!("a compressed cluster: {problem}"))
}
