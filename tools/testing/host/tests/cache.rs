// SPDX-License-Identifier: GPL-2.0

//! The parts of the MR cache that need no kernel: `rv/cache/{range,sizes,stats}.rs`. Their own
//! unit tests run here too.

#![allow(dead_code, reason = "the modules are written for another crate")]

#[path = "../../../../rv/cache/range.rs"]
mod range;
#[path = "../../../../rv/cache/sizes.rs"]
mod sizes;
#[path = "../../../../rv/cache/stats.rs"]
mod stats;

use proptest::prelude::*;
use range::{device_address, Range, PAGE};

proptest! {
    /// Rounding as unbounded integers say it.
    #[test]
    fn rounding_is_exact(start: u64, len: u64) {
        let end = u128::from(start) + u128::from(len);
        let page = u128::from(PAGE);
        let first = u128::from(start) / page * page;
        let past = end.div_ceil(page) * page;
        match Range::rounded(start, len) {
            Some(range) => {
                prop_assert_eq!(u128::from(range.start()), first);
                prop_assert_eq!(u128::from(range.len()), past - first);
            }
            None => prop_assert!(past > u128::from(u64::MAX)),
        }
    }

    #[test]
    fn a_rounded_range_covers_what_it_was_made_for(start: u64, len in 0_u64..1 << 40) {
        if let (Some(rounded), Some(exact)) = (Range::rounded(start, len), Range::new(start, len)) {
            prop_assert!(rounded.covers(&exact));
            prop_assert!(rounded.covers(&rounded));
        }
    }

    #[test]
    fn device_address_is_never_zero_and_keeps_the_page_offset(handle: u64, start: u64) {
        let address = device_address(handle, start);
        prop_assert!(address != 0);
        prop_assert_eq!(address % PAGE, start % PAGE);
    }
}
