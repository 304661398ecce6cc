//! What agents do in the step `write_image` where images are measured: all fetch theirs at once, with the client of the real
//! agent, and compare every byte.

use anyhow::{Result, anyhow, ensure};
use hwm_generic::source_of;
use image_source::{Bytes, Head, Receiver, Source, SourceError, fetch};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier as BlockingBarrier};
use tokio::sync::Barrier;
use tokio::task::spawn_blocking;

/// The rounds in which all agents fetch at the same time.
pub struct Fetches {
    /// What must come.
    pub image: Arc<Vec<u8>>,
    rounds: usize,
    /// Where the agents and the measurement meet: when all are there, and before and after each round.
    gate: Barrier,
    /// Where they meet twice when each agent has half of the image.
    half: Option<BlockingBarrier>,
    broken: AtomicUsize,
}

impl Fetches {
    /// So many rounds of so many agents.
    pub fn new(image: Arc<Vec<u8>>, agents: usize, rounds: usize) -> Self {
        Self { image, rounds, gate: Barrier::new(agents + 1), half: None, broken: AtomicUsize::new(0) }
    }

    /// One round of so many agents that wait when they have half of the image.
    pub fn by_halves(image: Arc<Vec<u8>>, agents: usize) -> Self {
        Self { half: Some(BlockingBarrier::new(agents + 1)), ..Self::new(image, agents, 1) }
    }

    /// Waits until all agents have half of the image; a second time it lets them go on. Blocks.
    pub fn meet_at_half(&self) {
        if let Some(half) = &self.half {
            half.wait();
        }
    }

    /// Fetches in which a try failed.
    pub fn broken(&self) -> usize {
        self.broken.load(Ordering::Relaxed)
    }

    /// Waits until all agents are at the next place where they meet.
    pub async fn meet(&self) {
        self.gate.wait().await;
    }

    /// What one agent does: all rounds, also when one fails, for which the others would wait.
    ///
    /// # Errors
    /// The first: the image is not fetched, or is another one.
    pub async fn take_part(self: &Arc<Self>, image_info: &Value) -> Result<()> {
        let source = source_of(image_info);
        let mut result = Ok(());
        self.meet().await;
        for _ in 0..self.rounds {
            self.meet().await;
            let fetched = match &source {
                Ok(source) => self.fetch(source.clone()).await,
                Err(error) => Err(anyhow!("{error}")),
            };
            result = result.and(fetched);
            self.meet().await;
        }
        result
    }

    /// Fetches the image once.
    ///
    /// # Errors
    /// It is not fetched, or is another one.
    pub async fn fetch(self: &Arc<Self>, source: Source) -> Result<()> {
        let fetches = self.clone();
        let fetched = spawn_blocking(move || {
            let mut compare = Compare { fetches: &fetches, at: 0, is_broken: false };
            let fetched = fetch(&source, &mut compare);
            let (at, length) = (compare.at, fetches.image.len());
            fetches.broken.fetch_add(compare.is_broken.into(), Ordering::Relaxed);
            fetched?;
            ensure!(at == length, "{at} bytes instead of {length}");
            Ok(())
        });
        fetched.await?
    }
}

/// Compares what arrives with the image.
struct Compare<'a> {
    fetches: &'a Fetches,
    at: usize,
    is_broken: bool,
}

impl Receiver for Compare<'_> {
    type Error = SourceError;

    fn head(&mut self, _: &Head) -> Result<(), SourceError> {
        Ok(())
    }

    fn bytes(&mut self, bytes: Bytes) -> Result<(), SourceError> {
        let (image, begin, end) = (&self.fetches.image, self.at, self.at + bytes.len());
        if image.get(begin..end) != Some(&bytes[..]) {
            return Err(SourceError::Internal(format!("bytes {begin} to {end} are not those of the image")));
        }
        self.at = end;
        if (begin..end).contains(&(image.len() / 2)) {
            self.fetches.meet_at_half();
            self.fetches.meet_at_half();
        }
        Ok(())
    }

    fn note(&mut self, problem: &str) {
        self.is_broken = true;
        eprintln!("anneal-fleet: {problem}");
    }

    fn cancelled(&self) -> bool {
        false
    }
}
