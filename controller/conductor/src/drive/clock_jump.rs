//! The machine's clock was set: by an operator, by NTP after a start with a wrong clock, or by a virtual machine that was
//! moved. Durations go on as they were: stored instants move with the clock.

use super::Workers;
use super::conductor::Conductor;
use std::time::Duration;

/// A smaller difference is the correction of a clock that runs too fast or too slow.
const JUMP: Duration = Duration::from_secs(2);

/// What to do about a difference between the machine's clock and ours, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Response {
    /// There is none.
    Nothing,
    /// Go on at the time of the machine.
    Follow(i64),
    /// The same, after what is stored was moved.
    Shift(i64),
}

/// The response to a difference.
pub(super) fn response(difference: i64) -> Response {
    match difference {
        0 => Response::Nothing,
        small if u128::from(small.unsigned_abs()) < JUMP.as_micros() => Response::Follow(small),
        jump => Response::Shift(jump),
    }
}

impl Conductor {
    /// Follow the machine's clock. After a jump, passes in progress are waited for first: they compute with the time
    /// before it, which goes on until everything is moved.
    pub(super) async fn follow_clock(&self, workers: &mut Workers) {
        match response(self.clock.jump()) {
            Response::Nothing => {}
            Response::Follow(by) => self.clock.follow(by),
            Response::Shift(_) => {
                while workers.tasks.join_next().await.is_some() {}
                // It may have been set again meanwhile.
                let by = self.clock.jump();
                if let Err(error) = self.store.shift_clock(by).await {
                    return tracing::error!(error = %error.chain(), "cannot move what is stored with the clock; trying again");
                }
                self.clock.follow(by);
                self.listen_from(by);
                let seconds = by / 1_000_000;
                tracing::warn!(seconds, "the machine's clock was set; deadlines have moved with it");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_is_followed_and_a_jump_moves_what_is_stored() {
        for (difference, expected) in [
            (0, Response::Nothing),
            (-1, Response::Follow(-1)),
            (1_999_999, Response::Follow(1_999_999)),
            (2_000_000, Response::Shift(2_000_000)),
            (-31 * 60_000_000, Response::Shift(-31 * 60_000_000)),
            (i64::MIN, Response::Shift(i64::MIN)),
        ] {
            assert_eq!(response(difference), expected);
        }
    }
}
