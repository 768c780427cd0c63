// SPDX-License-Identifier: GPL-2.0

//! How the bytes of a transfer are cut into writes.

use serde::{
    Deserialize,
    Serialize, //
};

use crate::failure::{
    Failure,
    Result, //
};

/// Memory of a block starts at a page.
const PAGE: u64 = 4096;

/// A message of some bytes, sent a number of times, in writes of at most `block` bytes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Plan {
    /// Bytes of the message; a file is one message.
    pub(crate) message: u64,
    /// How often it is sent.
    pub(crate) iterations: u64,
    /// Most bytes of one write.
    pub(crate) block: u64,
}

impl Plan {
    /// Checks that the numbers make sense, also when a peer sent them.
    pub(crate) fn check(&self) -> Result<()> {
        if self.block == 0 {
            return Err(Failure::Usage("the block size must not be 0".into()));
        }
        let fits = |n: Option<u64>| n.is_some_and(|n| n < u64::MAX / 4);
        let sum = self.message.checked_mul(self.iterations);
        if fits(sum)
            && fits(self.per_message().checked_mul(self.iterations))
            && fits(Some(self.block))
        {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{} times {} bytes are too much to count",
            self.iterations, self.message
        )))
    }

    /// Returns the same transfer in blocks of at most `limit` bytes, and not larger than needed.
    pub(crate) fn limit_block(mut self, limit: u64) -> Self {
        self.block = self.block.min(limit).min(self.message.max(1)).max(1);
        self
    }

    /// Returns the number of writes that a message takes.
    fn per_message(&self) -> u64 {
        self.message.div_ceil(self.block)
    }

    /// Returns the number of writes.
    pub(crate) fn writes(&self) -> u64 {
        self.per_message().saturating_mul(self.iterations)
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.message.saturating_mul(self.iterations)
    }

    /// Returns where in the message the write of that number starts.
    pub(crate) fn position(&self, number: u64) -> u64 {
        match self.per_message() {
            0 => 0,
            per_message => (number % per_message).saturating_mul(self.block),
        }
    }

    /// Returns the length of the write of that number.
    pub(crate) fn length(&self, number: u64) -> u64 {
        let rest = self.message.saturating_sub(self.position(number));
        rest.min(self.block)
    }

    /// Returns the distance between two blocks in memory.
    pub(crate) fn stride(&self) -> u64 {
        self.block.next_multiple_of(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(message: u64, iterations: u64, block: u64) -> Plan {
        Plan {
            message,
            iterations,
            block,
        }
    }

    #[test]
    fn a_file_is_cut_into_blocks() {
        let plan = plan(2500, 1, 1000);
        assert_eq!((plan.writes(), plan.bytes()), (3, 2500));
        let cut: Vec<_> = (0..3).map(|n| (plan.position(n), plan.length(n))).collect();
        assert_eq!(cut, [(0, 1000), (1000, 1000), (2000, 500)]);
        assert_eq!(plan.stride(), 4096);
    }

    #[test]
    fn messages_are_repeated() {
        let plan = plan(1500, 2, 1000);
        assert_eq!((plan.writes(), plan.bytes()), (4, 3000));
        let cut: Vec<_> = (0..4).map(|n| plan.length(n)).collect();
        assert_eq!(cut, [1000, 500, 1000, 500]);
    }

    #[test]
    fn an_empty_file_needs_no_write() {
        let plan = plan(0, 1, 1 << 20).limit_block(1 << 21);
        assert!(plan.check().is_ok());
        assert_eq!((plan.writes(), plan.bytes(), plan.length(0)), (0, 0, 0));
    }

    #[test]
    fn blocks_are_limited() {
        assert_eq!(
            plan(1 << 30, 1, 4 << 20).limit_block(2 << 20).block,
            2 << 20
        );
        assert_eq!(plan(4096, 9, 1 << 20).limit_block(2 << 20).block, 4096);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(plan(1, 1, 0).check().is_err());
        assert!(plan(u64::MAX, 2, 1).check().is_err());
        assert!(plan(1, u64::MAX, 1).check().is_err());
        assert!(plan(1, 1, u64::MAX).check().is_err());
    }

    proptest! {
        #[test]
        fn writes_cover_the_message(message in 0_u64..100_000, iterations in 1_u64..4, block in 1_u64..5_000) {
            let plan = plan(message, iterations, block);
            plan.check().unwrap();
            let mut end = 0;
            let mut sum = 0;
            for number in 0..plan.writes() {
                if plan.position(number) == 0 {
                    end = 0;
                }
                prop_assert_eq!(plan.position(number), end);
                prop_assert!(plan.length(number) > 0 && plan.length(number) <= block);
                end += plan.length(number);
                sum += plan.length(number);
            }
            prop_assert_eq!(sum, plan.bytes());
        }
    }
}
