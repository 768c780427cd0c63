// SPDX-License-Identifier: GPL-2.0

//! Numbers of writes, as far as an immediate can carry them.
//!
//! The tag of an immediate is the low part of the number of a write. The receiver lends memory for
//! at most [`Window::size`] writes at a time, far less than tags there are, so it can tell the
//! whole number: it is the one with that tag that is not behind the oldest write still missing. With
//! a power of two of slots, the low bits of the tag are the slot and the high bits its generation;
//! a late or doubled write shows as one that is not awaited.

use std::collections::VecDeque;

/// The writes that may be under way, and which of them have arrived.
#[derive(Debug)]
pub(crate) struct Window {
    /// The oldest write that has not arrived.
    base: u64,
    /// Whether `base`, `base + 1`, ... have arrived.
    arrived: VecDeque<bool>,
    /// Number of writes that may be under way.
    size: u64,
}

impl Window {
    /// Makes a window of `size` writes.
    pub(crate) fn new(size: u64) -> Self {
        Self {
            base: 0,
            arrived: VecDeque::new(),
            size,
        }
    }

    /// Returns how many writes from the first on have all arrived.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Notes a write by its tag, and returns its number; `None` if no such write is awaited.
    pub(crate) fn arrive(&mut self, tag: u32, mask: u32) -> Option<u64> {
        let ahead = u64::from(tag.wrapping_sub(low(self.base)) & mask);
        if ahead >= self.size {
            return None;
        }
        let place = usize::try_from(ahead).ok()?;
        while self.arrived.len() <= place {
            self.arrived.push_back(false);
        }
        let mark = self.arrived.get_mut(place)?;
        if std::mem::replace(mark, true) {
            return None;
        }
        self.base.checked_add(ahead)
    }

    /// Takes the oldest write off if it has arrived, and returns its number.
    pub(crate) fn advance(&mut self) -> Option<u64> {
        if self.arrived.front() != Some(&true) {
            return None;
        }
        self.arrived.pop_front();
        let number = self.base;
        self.base += 1;
        Some(number)
    }
}

/// Returns the low 32 bits, of which a tag takes what it has room for.
pub(crate) fn low(number: u64) -> u32 {
    // CAST: The cut is wanted.
    (number & u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MASK: u32 = 0x7f_ffff;

    #[test]
    fn in_order() {
        let mut window = Window::new(4);
        for number in 0..10 {
            assert_eq!(window.arrive(low(number), MASK), Some(number));
            assert_eq!(window.advance(), Some(number));
            assert_eq!(window.advance(), None);
        }
    }

    #[test]
    fn out_of_order_over_several_queue_pairs() {
        let mut window = Window::new(4);
        assert_eq!(window.arrive(2, MASK), Some(2));
        assert_eq!(window.arrive(1, MASK), Some(1));
        assert_eq!(window.advance(), None);
        assert_eq!(window.arrive(0, MASK), Some(0));
        let done: Vec<_> = std::iter::from_fn(|| window.advance()).collect();
        assert_eq!(done, [0, 1, 2]);
        assert_eq!(window.base(), 3);
    }

    #[test]
    fn doubled_late_and_early_writes_are_not_awaited() {
        let mut window = Window::new(4);
        assert_eq!(window.arrive(0, MASK), Some(0));
        assert_eq!(window.arrive(0, MASK), None);
        assert_eq!(window.advance(), Some(0));
        assert_eq!(window.arrive(0, MASK), None);
        assert_eq!(window.arrive(5, MASK), None);
        assert_eq!(window.arrive(4, MASK), Some(4));
    }

    #[test]
    fn tags_wrap() {
        let mut window = Window::new(4);
        window.base = u64::from(MASK);
        assert_eq!(window.arrive(0, MASK), Some(u64::from(MASK) + 1));
        assert_eq!(window.arrive(MASK, MASK), Some(u64::from(MASK)));
        assert_eq!(window.advance(), Some(u64::from(MASK)));
        assert_eq!(window.advance(), Some(u64::from(MASK) + 1));
    }

    proptest! {
        #[test]
        fn any_order_within_the_window(
            swaps in proptest::collection::vec((0_usize..16, 0_usize..16), 0..50),
            start in 0_u64..1 << 40,
        ) {
            let mut order: Vec<u64> = (start..start + 16).collect();
            for (a, b) in swaps {
                order.swap(a, b);
            }
            let mut window = Window::new(16);
            window.base = start;
            for number in order {
                prop_assert_eq!(window.arrive(low(number), MASK), Some(number));
            }
            let done: Vec<_> = std::iter::from_fn(|| window.advance()).collect();
            prop_assert_eq!(done, (start..start + 16).collect::<Vec<_>>());
        }
    }
}
