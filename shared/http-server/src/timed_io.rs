//! A stream whose reads and writes fail when the client takes longer than it may.

use crate::activity::{Activity, Phase};
use crate::timeouts::Timeouts;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Slowest average rate of a body, in bytes per second, once the time for a body is used up. Time in which the server
/// did not read does not count.
const BODY_RATE: u64 = 16 << 10;

/// A stream with [`Timeouts`].
pub struct TimedIo<S> {
    stream: S,
    activity: Arc<Activity>,
    timeouts: Timeouts,
    read: ReadClock,
    read_timer: Timer,
    write_timer: Timer,
}

impl<S> TimedIo<S> {
    /// A connection that waits for the head of its first request.
    pub fn new(stream: S, activity: Arc<Activity>, timeouts: Timeouts) -> Self {
        let read = ReadClock::start(Phase::Head, Instant::now());
        Self { stream, activity, timeouts, read, read_timer: Timer::default(), write_timer: Timer::default() }
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if result.is_ready() {
            self.write_timer.stop();
            return result;
        }
        let deadline = self.write_timer.deadline().unwrap_or_else(|| Instant::now() + self.timeouts.body);
        ready!(self.write_timer.poll(context, deadline));
        Poll::Ready(Err(late("it does not read its answer")))
    }
}

fn late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

/// How long the client has been waited for in one phase.
#[derive(Debug, Clone, Copy)]
struct ReadClock {
    phase: Phase,
    began: Instant,
    /// Since when a read waits.
    pending: Option<Instant>,
    /// How long earlier reads of this phase waited.
    waited: Duration,
    bytes: u64,
}

impl ReadClock {
    fn start(phase: Phase, now: Instant) -> Self {
        Self { phase, began: now, pending: None, waited: Duration::ZERO, bytes: 0 }
    }

    fn received(&mut self, count: u64, now: Instant) {
        self.waited += self.pending.take().map(|since| now - since).unwrap_or_default();
        self.bytes += count;
    }

    /// When the client has used up its time; `None` while it waits for an answer.
    fn deadline(&mut self, timeouts: &Timeouts, now: Instant) -> Option<Instant> {
        let since = *self.pending.get_or_insert(now);
        match self.phase {
            Phase::Head => Some(self.began + timeouts.head),
            Phase::Idle => Some(self.began + timeouts.idle),
            Phase::Answering => None,
            Phase::Body => {
                let budget = timeouts.body + Duration::from_secs(self.bytes / BODY_RATE);
                Some(since + timeouts.body.min(budget.saturating_sub(self.waited)))
            }
        }
    }
}

/// A timer that is only registered while it runs.
#[derive(Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    fn stop(&mut self) {
        self.0 = None;
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.as_ref().map(|sleep| sleep.deadline())
    }

    fn poll(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedIo<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let filled = buffer.filled().len();
        let result = Pin::new(&mut this.stream).poll_read(context, buffer);
        let now = Instant::now();
        if result.is_ready() {
            let count = buffer.filled().len() - filled;
            if count > 0 {
                this.activity.leave(Phase::Idle, Phase::Head);
            }
            this.read.received(u64::try_from(count).unwrap_or(u64::MAX), now);
            this.read_timer.stop();
        }
        let phase = this.activity.phase();
        if phase != this.read.phase {
            this.read = ReadClock::start(phase, now);
        }
        if result.is_ready() {
            return result;
        }
        this.activity.wake_at_next(context.waker());
        match this.read.deadline(&this.timeouts, now) {
            None => {
                this.read_timer.stop();
                Poll::Pending
            }
            Some(deadline) => {
                ready!(this.read_timer.poll(context, deadline));
                Poll::Ready(Err(late("it does not send its request")))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedIo<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.written(context, result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write_vectored(context, buffers);
        this.written(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_flush(context);
        this.written(context, result.map_ok(|()| 0)).map_ok(drop)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_shutdown(context);
        this.written(context, result.map_ok(|()| 0)).map_ok(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_pause_and_may_not_trickle() {
        let second = Duration::from_secs;
        let timeouts = Timeouts { head: second(10), body: second(30), idle: second(60) };
        let start = Instant::now();
        let mut clock = ReadClock::start(Phase::Body, start);
        assert_eq!(clock.deadline(&timeouts, start), Some(start + second(30)));
        // A byte after 29 seconds: one second is left.
        let mut now = start + second(29);
        clock.received(1, now);
        assert_eq!(clock.deadline(&timeouts, now), Some(now + second(1)));
        // Half a mebibyte at once is worth 32 seconds more; the pause is limited to 30 all the same.
        clock.received(512 << 10, now);
        assert_eq!(clock.deadline(&timeouts, now), Some(now + second(30)));
        // The server did not read for an hour; nothing of that is the client's.
        clock.received(0, now);
        now += second(3600);
        assert_eq!(clock.deadline(&timeouts, now), Some(now + second(30)));
    }
}
