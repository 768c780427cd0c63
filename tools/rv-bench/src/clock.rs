// SPDX-License-Identifier: GPL-2.0

//! Times of single calls, without the time that reading the clock takes.

use std::time::Instant;

/// Nanoseconds of a number of calls of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    values: Vec<f64>,
}

/// Reads the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What two readings with nothing between them take.
    overhead: f64,
}

impl Clock {
    /// Measures the clock itself.
    pub(crate) fn calibrate() -> Self {
        let mut samples = Samples::default();
        let raw = Self { overhead: 0.0 };
        for _ in 0..1001 {
            samples.add(raw.time(|| ()).1);
        }
        Self {
            overhead: samples.median(),
        }
    }

    /// Runs something, and returns its nanoseconds.
    pub(crate) fn time<T>(self, what: impl FnOnce() -> T) -> (T, f64) {
        let start = Instant::now();
        let result = what();
        let nanoseconds = start.elapsed().as_secs_f64() * 1e9;
        (result, (nanoseconds - self.overhead).max(0.0))
    }
}

impl Samples {
    /// Adds a time.
    pub(crate) fn add(&mut self, nanoseconds: f64) {
        self.values.push(nanoseconds);
    }

    /// Returns the value in the middle; 0 if there is none.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(1, 2)
    }

    /// Returns the value that `part` of `whole` values are below.
    pub(crate) fn quantile(&self, part: usize, whole: usize) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (sorted.len().saturating_sub(1) * part).div_ceil(whole.max(1));
        sorted.get(place).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples {
            values: values.into(),
        }
    }

    #[test]
    fn quantiles() {
        let samples = samples(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(samples.median(), 3.0);
        assert_eq!(samples.quantile(1, 4), 2.0);
        assert_eq!(samples.quantile(3, 4), 4.0);
        assert_eq!(samples.quantile(0, 1), 1.0);
    }

    #[test]
    fn nothing_measured() {
        assert_eq!(samples(&[]).median(), 0.0);
    }

    #[test]
    fn time_is_never_negative() {
        let clock = Clock { overhead: 1e12 };
        assert_eq!(clock.time(|| 7), (7, 0.0));
        assert!(Clock::calibrate().overhead >= 0.0);
    }
}
