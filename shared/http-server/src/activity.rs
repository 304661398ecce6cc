//! What a connection waits for.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::time::Instant;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The TLS handshake or the head of a request.
    Head = 0,
    /// The body of a request.
    Body = 1,
    /// The controller's own answer, or the client that receives it.
    Answering = 2,
    /// The next request.
    Idle = 3,
}

/// The phase of one connection, shared by its socket, the bodies of its requests and [`crate::Places`].
pub struct Activity {
    began: Instant,
    phase: AtomicU8,
    /// Milliseconds from `began` to the start of the phase.
    since: AtomicU64,
    /// Wakes the connection at the start of the next phase.
    waker: Mutex<Option<Waker>>,
}

impl Activity {
    /// A new connection, which waits for a handshake or a head.
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            phase: AtomicU8::new(Phase::Head as u8),
            since: AtomicU64::new(0),
            waker: Mutex::default(),
        }
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Head,
            1 => Phase::Body,
            2 => Phase::Answering,
            _ => Phase::Idle,
        }
    }

    /// Start a phase.
    pub fn enter(&self, phase: Phase) {
        self.note();
        self.phase.store(phase as u8, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wake the connection when the next phase is entered: hyper does not read again by itself once an answer is sent.
    pub fn wake_at_next(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    /// Start the phase `next` if the current one is `expected`.
    pub fn leave(&self, expected: Phase, next: Phase) {
        let changed =
            self.phase.compare_exchange(expected as u8, next as u8, Ordering::AcqRel, Ordering::Acquire);
        if changed.is_ok() {
            self.note();
        }
    }

    /// Since when the connection waits for its client; `None` while the client waits for an answer.
    pub fn waiting_since(&self) -> Option<Instant> {
        let since = self.began + std::time::Duration::from_millis(self.since.load(Ordering::Relaxed));
        (self.phase() != Phase::Answering).then_some(since)
    }

    fn note(&self) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since.store(elapsed, Ordering::Relaxed);
    }
}
