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

/// How often the processor is only offered to others, where events come fast.
const YIELDS: u32 = 32;
/// The shortest sleep; where events come faster than this, there is none at first.
const SHORTEST: Duration = Duration::from_micros(20);
/// The longest sleep.
const LONGEST: Duration = Duration::from_millis(10);

/// After so long without an event it is time to see whether the peer is still there.
const LONG: Duration = Duration::from_millis(5);

/// Polling that is quick where events come fast, and kind to others where they do not.
///
/// The kernel's side of a transfer runs in threads that need the processor: on a machine with one,
/// a busy loop here would take half of it away, and each look costs a wake-up. So the first sleep is
/// half of the usual time between events, and those that follow are short parts of it.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// Waits since something happened.
    rounds: u32,
    /// Time slept since then.
    slept: Duration,
    /// Time slept between two events, lately.
    usual: Duration,
    /// Never sleep.
    busy: bool,
}

impl Backoff {
    /// Polling without a pause, if `busy`.
    pub(crate) fn new(busy: bool) -> Self {
        Self {
            busy,
            ..Self::default()
        }
    }

    /// Something happened.
    pub(crate) fn reset(&mut self) {
        if self.rounds == 0 {
            // One of several that came together: it tells nothing about the time between.
            return;
        }
        self.usual = (self.usual * 3 + self.slept) / 4;
        self.slept = Duration::ZERO;
        self.rounds = 0;
    }

    /// Tells whether nothing has happened for so long that the peer may be in trouble.
    pub(crate) fn is_long(&self) -> bool {
        self.slept >= LONG
    }

    /// Nothing happened: wait.
    pub(crate) fn wait(&mut self) {
        if self.busy {
            std::hint::spin_loop();
            return;
        }
        match self.next() {
            None => thread::yield_now(),
            Some(time) => thread::sleep(time),
        }
    }

    /// Returns how long to sleep now.
    fn next(&mut self) -> Option<Duration> {
        let round = self.rounds;
        self.rounds = round.saturating_add(1);
        let time = match round {
            _ if self.usual >= SHORTEST * 2 && round == 0 => self.usual / 2,
            _ if self.usual >= SHORTEST * 2 => (self.usual / 8).max(self.slept / 4),
            // Nothing is known, or events come fast: sleep longer and longer after some looks.
            _ if round < YIELDS => return None,
            _ => self.slept / 2,
        };
        let time = time.clamp(SHORTEST, LONGEST);
        self.slept = self.slept.saturating_add(time);
        Some(time)
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

    /// Lets an event come after so many waits, and returns the time slept.
    fn event_after(backoff: &mut Backoff, waits: u32) -> Duration {
        let slept = (0..waits).filter_map(|_| backoff.next()).sum();
        backoff.reset();
        slept
    }

    #[test]
    fn fast_events_are_awaited_awake() {
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            assert_eq!(event_after(&mut backoff, 5), Duration::ZERO);
        }
    }

    #[test]
    fn sleeps_become_longer_up_to_a_bound() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..80).map(|_| backoff.next()).collect();
        assert!(waits[..32].iter().all(Option::is_none));
        assert_eq!(waits[32], Some(SHORTEST));
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(waits[79], Some(LONGEST));
        assert!(backoff.is_long());
        backoff.reset();
        assert!(!backoff.is_long());
    }

    #[test]
    fn slow_events_are_looked_for_a_few_times_each() {
        let gap = Duration::from_micros(3300);
        let mut backoff = Backoff::default();
        let mut looks = 0;
        for _ in 0..50 {
            looks = 0;
            while backoff.slept < gap {
                backoff.next();
                looks += 1;
            }
            backoff.reset();
        }
        assert!((2..=6).contains(&looks), "{looks}");
        assert!(backoff.usual < gap * 2);
    }

    #[test]
    fn never_overflows() {
        let mut backoff = Backoff {
            rounds: u32::MAX,
            slept: Duration::MAX,
            ..Backoff::default()
        };
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
