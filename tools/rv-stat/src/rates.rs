// SPDX-License-Identifier: GPL-2.0

//! What has happened between two snapshots.

use crate::cli::Section;
use crate::record::Record;
use crate::snapshot::Snapshot;

/// Two snapshots, one after the other.
pub(crate) struct Interval<'a> {
    before: &'a Snapshot,
    /// Its length.
    pub(crate) seconds: f64,
}

/// The counters of a section that have rates.
pub(crate) fn counters(section: Section) -> &'static [&'static str] {
    match section {
        Section::Devices | Section::Jobs => &[],
        Section::Conns => &[
            "post_write",
            "post_write_bytes",
            "post_write_fail",
            "send_write_cqe",
            "send_write_cqe_fail",
            "recv_write_cqe",
            "recv_write_bytes",
            "recv_cqe_fail",
        ],
        Section::Files => &[
            "hit",
            "miss",
            "full",
            "failed",
            "remove",
            "evict",
            "send_write_cqe",
            "send_write_cqe_fail",
            "send_write_bytes",
            "recv_write_cqe",
            "recv_write_bytes",
            "ring_overflows",
        ],
    }
}

/// What makes two records be about the same object.
fn identity(section: Section) -> &'static [&'static str] {
    match section {
        Section::Devices => &["device"],
        Section::Jobs => &["job"],
        Section::Conns => &["conn", "index"],
        Section::Files => &["cache"],
    }
}

impl<'a> Interval<'a> {
    /// The time from one snapshot to the next.
    pub(crate) fn new(before: &'a Snapshot, now: &Snapshot) -> Self {
        Self {
            before,
            seconds: now.taken.duration_since(before.taken).as_secs_f64(),
        }
    }

    /// By how much a counter has grown, for each second. An object that is new has grown from 0.
    pub(crate) fn rate(&self, section: Section, now: &Record, counter: &str) -> f64 {
        let keys = identity(section);
        let same = |record: &&Record| keys.iter().all(|key| record.get(key) == now.get(key));
        let before = self.before.records(section).iter().find(same);
        let grown = now
            .number(counter)
            .saturating_sub(before.map_or(0, |before| before.number(counter)));
        if self.seconds > 0.0 {
            // CAST: Exact below 2^53, and a figure for people above.
            grown as f64 / self.seconds
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Result;
    use crate::snapshot::tests::sample;

    #[test]
    fn rates_are_what_a_counter_has_grown() -> Result<()> {
        let (before, now) = (sample(10)?, sample(30)?);
        let interval = Interval {
            before: &before,
            seconds: 2.0,
        };
        let rate = |at: usize, counter| {
            now.conns
                .get(at)
                .map(|conn| interval.rate(Section::Conns, conn, counter))
        };
        assert_eq!(rate(0, "post_write"), Some(10.0));
        assert_eq!(rate(0, "post_write_bytes"), Some(f64::from(10 << 20)));
        assert_eq!(rate(1, "recv_write_bytes"), Some(0.0));
        let hits = now
            .files
            .first()
            .map(|file| interval.rate(Section::Files, file, "hit"));
        assert_eq!(hits, Some(10.0));
        Ok(())
    }

    #[test]
    fn new_objects_have_grown_from_nothing_and_nothing_shrinks() -> Result<()> {
        let (mut before, now) = (sample(30)?, sample(10)?);
        let interval = Interval {
            before: &before,
            seconds: 1.0,
        };
        let rate = |interval: &Interval<'_>| {
            now.conns
                .first()
                .map(|conn| interval.rate(Section::Conns, conn, "post_write"))
        };
        assert_eq!(rate(&interval), Some(0.0));
        before.conns.clear();
        let interval = Interval {
            before: &before,
            seconds: 1.0,
        };
        assert_eq!(rate(&interval), Some(10.0));
        let interval = Interval {
            before: &before,
            seconds: 0.0,
        };
        assert_eq!(rate(&interval), Some(0.0));
        Ok(())
    }
}
