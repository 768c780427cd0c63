// SPDX-License-Identifier: GPL-2.0

//! Waiting for a ring that wakes nobody.

use std::thread;
use std::time::{
    Duration,
    Instant, //
};

use crate::failure::{
    Failure,
    Result, //
};

/// How often the processor is only offered to others before sleeping starts.
const YIELDS: u32 = 4;
/// The first sleep.
const SHORTEST: Duration = Duration::from_micros(20);
/// Sleeps double up to this.
const LONGEST: Duration = Duration::from_millis(1);

/// Polling that starts quick and becomes kind to others.
///
/// The kernel's side of a transfer runs in threads that need the processor: on a machine with one,
/// a busy loop here would take half of it away.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    rounds: u32,
}

impl Backoff {
    /// Something happened: be quick again.
    pub(crate) fn reset(&mut self) {
        self.rounds = 0;
    }

    /// Nothing happened: wait, a bit longer each time.
    pub(crate) fn wait(&mut self) {
        match self.next() {
            None => thread::yield_now(),
            Some(time) => thread::sleep(time),
        }
    }

    /// Returns how long to sleep now.
    fn next(&mut self) -> Option<Duration> {
        let round = self.rounds;
        self.rounds = round.saturating_add(1);
        let doublings = round.checked_sub(YIELDS)?.min(16);
        Some((SHORTEST * (1 << doublings)).min(LONGEST))
    }
}

/// A bound on the time in which nothing happens.
#[derive(Debug)]
pub(crate) struct Deadline {
    limit: Duration,
    last: Instant,
}

impl Deadline {
    /// Starts the clock.
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            last: Instant::now(),
        }
    }

    /// Something happened.
    pub(crate) fn reset(&mut self) {
        self.last = Instant::now();
    }

    /// Returns the time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.last.elapsed())
    }

    /// Fails when it took too long to `do` something.
    pub(crate) fn check(&self, what: &str) -> Result<()> {
        if !self.left().is_zero() {
            return Ok(());
        }
        Err(Failure::Timeout(format!(
            "timeout: {what} for {} s (--timeout sets the limit)",
            self.limit.as_secs()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yields_then_longer_and_longer_sleeps() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..20).map(|_| backoff.next()).collect();
        assert!(waits[..4].iter().all(Option::is_none));
        assert_eq!(waits[4], Some(SHORTEST));
        assert_eq!(waits[5], Some(SHORTEST * 2));
        assert_eq!(waits[19], Some(LONGEST));
        backoff.reset();
        assert_eq!(backoff.next(), None);
    }

    #[test]
    fn never_overflows() {
        let mut backoff = Backoff { rounds: u32::MAX };
        assert_eq!(backoff.next(), Some(LONGEST));
        assert_eq!(backoff.next(), Some(LONGEST));
    }

    #[test]
    fn deadline() {
        let deadline = Deadline::new(Duration::ZERO);
        let failure = deadline.check("no answer").unwrap_err();
        assert_eq!(failure.code(), 5);
        assert!(Deadline::new(Duration::from_secs(60)).check("").is_ok());
    }
}
