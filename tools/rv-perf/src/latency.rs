// SPDX-License-Identifier: GPL-2.0

//! How long writes take, from the post to the event that says they are done.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{
    json,
    Value, //
};

use crate::failure::{
    Failure,
    Result, //
};

/// Digits that are kept of a time.
const DIGITS: u8 = 3;
/// The longest time that is told from longer ones: an hour.
const LONGEST_NANOS: u64 = 3_600_000_000_000;

/// The times of all writes of a transfer, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Latency(Histogram<u64>);

impl Latency {
    /// Starts with none.
    pub(crate) fn new() -> Result<Self> {
        Histogram::new_with_max(LONGEST_NANOS, DIGITS)
            .map(Self)
            .map_err(|error| Failure::Local(format!("cannot measure times: {error}")))
    }

    /// Adds the time of one write.
    pub(crate) fn add(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanos);
    }

    /// Returns the figures, in microseconds; `null` if there was no write.
    pub(crate) fn to_json(&self) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        json!({
            "min": micros(self.0.min()),
            "median": micros(self.0.value_at_quantile(0.5)),
            "p99": micros(self.0.value_at_quantile(0.99)),
            "max": micros(self.0.max()),
        })
    }

    /// Returns the figures in one line.
    pub(crate) fn to_text(&self) -> String {
        format!(
            "post to event: {:.1} us median, {:.1} smallest, {:.1} at 99 %, {:.1} largest\n",
            micros(self.0.value_at_quantile(0.5)),
            micros(self.0.min()),
            micros(self.0.value_at_quantile(0.99)),
            micros(self.0.max()),
        )
    }
}

/// Nanoseconds in microseconds.
fn micros(nanos: u64) -> f64 {
    // CAST: Some digits of a measured time do not matter.
    nanos as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let mut latency = Latency::new().unwrap();
        assert_eq!(latency.to_json(), Value::Null);
        for time in 1..=100 {
            latency.add(Duration::from_micros(time * 10));
        }
        let figures = latency.to_json();
        let about = |name: &str, wanted: f64| {
            let value = figures[name].as_f64().unwrap();
            assert!((value / wanted - 1.0).abs() < 0.01, "{name} is {value}");
        };
        about("min", 10.0);
        about("median", 500.0);
        about("p99", 990.0);
        about("max", 1000.0);
        assert!(latency.to_text().contains("us median"));
    }

    #[test]
    fn a_time_beyond_all_bounds_is_kept() {
        let mut latency = Latency::new().unwrap();
        latency.add(Duration::MAX);
        assert!(latency.to_json()["max"].as_f64().unwrap() >= 3.6e9);
    }
}
