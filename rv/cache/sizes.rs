// SPDX-License-Identifier: GPL-2.0

//! How large a pool of regions for fast registration is.
//!
//! Needs nothing but `core`, so that the host tests can include it.

/// The fewest regions that a pool has.
const MIN_BATCH: u32 = 64;
/// The most, a limit of our own.
const MAX_BATCH: u32 = 4096;

/// The sizes of a pool.
///
/// # Invariants
///
/// `0 < low_mark < batch`, and `list_len` is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    batch: u32,
    list_len: u32,
    low_mark: u32,
}

impl Sizes {
    /// The sizes by the module parameters `fr_batch_size` and `fr_pool_wm_lo`, for regions of
    /// `list_len` pages on a device that can list up to `limit`. `None` if there is to be no pool.
    pub(crate) fn new(batch: u32, low_mark: u32, list_len: u32, limit: u32) -> Option<Self> {
        if batch == 0 || list_len == 0 || list_len > limit {
            return None;
        }
        let batch = batch.clamp(MIN_BATCH, MAX_BATCH);
        let low_mark = if low_mark == 0 || low_mark >= batch {
            batch / 4
        } else {
            low_mark
        };
        // INVARIANT: Checked above; a quarter of the batch is at least 16.
        Some(Self {
            batch,
            list_len,
            low_mark,
        })
    }

    /// The most regions that are kept ready, and how many there are after the first filling.
    pub(crate) fn batch(&self) -> usize {
        // CAST: Small.
        self.batch as usize
    }

    /// Pages that each region can list.
    pub(crate) fn list_len(&self) -> u32 {
        self.list_len
    }

    /// Returns whether a pool that has `ready` regions left is to be filled up.
    pub(crate) fn is_low(&self, ready: usize) -> bool {
        // CAST: Small.
        ready <= self.low_mark as usize
    }

    /// How many regions a later filling leaves ready.
    pub(crate) fn refilled(&self) -> usize {
        // CAST: Small.
        self.low_mark as usize + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(batch: u32, low_mark: u32) -> (usize, usize) {
        let sizes = Sizes::new(batch, low_mark, 1024, 1024).unwrap();
        (sizes.batch(), sizes.refilled() - 1)
    }

    #[test]
    fn no_pool() {
        assert_eq!(Sizes::new(0, 64, 1024, 1024), None);
        assert_eq!(Sizes::new(256, 64, 1025, 1024), None);
        assert_eq!(Sizes::new(256, 64, 1024, 0), None);
        assert_eq!(Sizes::new(256, 64, 0, 1024), None);
    }

    #[test]
    fn small_pools_have_64() {
        assert_eq!(sizes(1, 8), (64, 8));
        assert_eq!(sizes(63, 8), (64, 8));
        assert_eq!(sizes(64, 8), (64, 8));
        assert_eq!(sizes(65, 8), (65, 8));
        assert_eq!(sizes(u32::MAX, 8), (4096, 8));
    }

    #[test]
    fn low_mark_is_a_quarter_if_it_makes_no_sense() {
        assert_eq!(sizes(256, 0), (256, 64));
        assert_eq!(sizes(256, 257), (256, 64));
        assert_eq!(sizes(256, u32::MAX), (256, 64));
        assert_eq!(sizes(1, 64), (64, 16));
        assert_eq!(sizes(256, 255), (256, 255));
    }

    #[test]
    fn low_means_at_the_mark() {
        let sizes = Sizes::new(256, 64, 1024, 1024).unwrap();
        assert!(sizes.is_low(0));
        assert!(sizes.is_low(64));
        assert!(!sizes.is_low(65));
        assert_eq!(sizes.refilled(), 65);
    }
}
