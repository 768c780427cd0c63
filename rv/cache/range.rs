// SPDX-License-Identifier: GPL-2.0

//! Ranges of user addresses, and how they look to the device.
//!
//! Needs nothing but `core`, so that the host tests can include it.

/// The size of a page. The parent module compares it with the kernel's.
pub(crate) const PAGE: u64 = 4096;

/// A range of addresses.
///
/// # Invariants
///
/// `start + len` does not overflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    start: u64,
    len: u64,
}

impl Range {
    /// The `len` bytes at `start`. `None` if they go beyond the last address.
    pub(crate) fn new(start: u64, len: u64) -> Option<Self> {
        // INVARIANT: Just checked.
        start.checked_add(len).map(|_| Self { start, len })
    }

    /// The pages in which the `len` bytes at `start` lie. `None` if those go beyond the last
    /// address.
    ///
    /// No bytes at the start of a page lie in no page; no bytes inside a page lie in that page.
    pub(crate) fn rounded(start: u64, len: u64) -> Option<Self> {
        let first = start & !(PAGE - 1);
        let end = start.checked_add(len)?.checked_next_multiple_of(PAGE)?;
        // INVARIANT: The end was computed without overflow.
        Some(Self {
            start: first,
            len: end - first,
        })
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The address behind the last one.
    pub(crate) fn end(&self) -> u64 {
        // No overflow by the type invariant.
        self.start.wrapping_add(self.len)
    }

    /// The last address, which must exist: for the empty range it is the first.
    pub(crate) fn last(&self) -> u64 {
        self.start.wrapping_add(self.len.saturating_sub(1))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of whole pages.
    pub(crate) fn pages(&self) -> u64 {
        self.len / PAGE
    }

    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }
}

/// The address under which the device knows the first byte of a region.
///
/// It is never 0, and regions of one cache have different ones: a peer that uses the key of a
/// region that is gone, and perhaps given to another one by now, misses that one. The low half is
/// that of the user address, so that the device can use large pages where the memory has them.
pub(crate) fn device_address(handle: u64, start: u64) -> u64 {
    const HIGH_HALVES: u64 = (1 << 31) - 1;

    ((handle % HIGH_HALVES + 1) << 32) | (start & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, len: u64) -> Range {
        Range { start, len }
    }

    fn rounded(start: u64, len: u64) -> Option<(u64, u64)> {
        Range::rounded(start, len).map(|range| (range.start(), range.len()))
    }

    #[test]
    fn rounding_adds_what_completes_the_pages() {
        assert_eq!(rounded(0x1000, 0x1000), Some((0x1000, 0x1000)));
        assert_eq!(rounded(0x1001, 1), Some((0x1000, 0x1000)));
        assert_eq!(rounded(0x1fff, 1), Some((0x1000, 0x1000)));
        assert_eq!(rounded(0x1fff, 2), Some((0x1000, 0x2000)));
        assert_eq!(rounded(0x1001, 0x1000), Some((0x1000, 0x2000)));
    }

    #[test]
    fn nothing_lies_in_no_page_at_its_start_and_in_one_inside_it() {
        assert_eq!(rounded(0x1000, 0), Some((0x1000, 0)));
        assert_eq!(rounded(0x1064, 0), Some((0x1000, 0x1000)));
        assert_eq!(rounded(0, 0), Some((0, 0)));
    }

    #[test]
    fn rounding_does_not_wrap() {
        assert_eq!(rounded(u64::MAX, 1), None);
        assert_eq!(rounded(u64::MAX, 0), None);
        assert_eq!(rounded(1, u64::MAX), None);
        assert_eq!(rounded(0x1000, u64::MAX), None);
        assert_eq!(rounded(0u64.wrapping_sub(PAGE), PAGE), None);
        assert_eq!(
            rounded(0u64.wrapping_sub(2 * PAGE), PAGE),
            Some((0u64.wrapping_sub(2 * PAGE), PAGE))
        );
        assert_eq!(rounded(0u64.wrapping_sub(2 * PAGE), PAGE + 1), None);
    }

    #[test]
    fn a_rounded_range_covers_what_was_rounded() {
        for start in (0x0ff0..0x2010).step_by(7) {
            for len in (0..0x3000).step_by(13) {
                let pages = Range::rounded(start, len);
                assert!(pages.is_some_and(|pages| pages.covers(&range(start, len))
                    && pages.start() % PAGE == 0
                    && pages.len() == pages.pages() * PAGE
                    && pages.len() < len + 2 * PAGE));
            }
        }
    }

    #[test]
    fn covering_includes_both_ends() {
        let covers = |start, len| range(10, 10).covers(&range(start, len));
        assert!(covers(10, 10));
        assert!(covers(15, 5));
        assert!(covers(20, 0));
        assert!(!covers(9, 2));
        assert!(!covers(15, 6));
        assert!(!covers(21, 0));
    }

    #[test]
    fn a_range_ends_at_the_last_address_at_most() {
        assert_eq!(Range::new(u64::MAX, 0), Some(range(u64::MAX, 0)));
        assert_eq!(Range::new(u64::MAX, 1), None);
        assert_eq!(Range::new(1, u64::MAX), None);
    }

    #[test]
    fn last_is_the_last_byte() {
        assert_eq!(range(10, 10).last(), 19);
        assert_eq!(range(10, 1).last(), 10);
        assert_eq!(range(10, 0).last(), 10);
        assert_eq!(range(0, 0).last(), 0);
    }

    #[test]
    fn device_addresses_keep_the_low_half_and_are_not_zero() {
        for handle in [0, 1, 2, (1 << 31) - 2, (1 << 31) - 1, 1 << 31, u64::MAX] {
            for start in [0, PAGE, 0xffff_f000, 0x7fff_dead_b000, u64::MAX - 4095] {
                let iova = device_address(handle, start);
                assert_eq!(iova & 0xffff_ffff, start & 0xffff_ffff);
                assert!(iova >= 1 << 32);
                // Room for the largest region.
                assert!(iova.checked_add(1 << 62).is_some());
            }
        }
        assert_ne!(device_address(1, PAGE), device_address(2, PAGE));
    }
}
