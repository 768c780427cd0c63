// SPDX-License-Identifier: GPL-2.0

//! The event ring: written by the kernel, read by one thread.
//!
//! The kernel owns `tail`, the reader `head`; both run from 0 to n-1. Equal means empty.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{
    AtomicU32,
    AtomicU64,
    Ordering, //
};

use crate::abi;
use crate::error::{
    Error,
    Result, //
};
use crate::event::{
    self,
    Event, //
};
use crate::mapping::Mapping;

// CAST: Offsets and sizes of at most 64.
const HEADER: usize = abi::RVC_RING_HEADER_SIZE as usize;
const HEAD: usize = abi::RVC_RING_HEAD as usize;
const TAIL: usize = abi::RVC_RING_TAIL as usize;
const OVERFLOW: usize = abi::RVC_RING_OVERFLOW_CNT as usize;

// The length to map is the one the macro of the header gives.
const _: () = assert!(length(1) == abi::RVC_RING_ALLOC_LEN_1 as usize);
const _: () = assert!(length(192) == abi::RVC_RING_ALLOC_LEN_192 as usize);
const _: () = assert!(length(10000) == abi::RVC_RING_ALLOC_LEN_10000 as usize);

/// Bytes of a ring of `entries` entries.
const fn length(entries: u32) -> usize {
    // CAST: At most 10000.
    HEADER + event::SIZE * entries as usize
}

/// The reading end of the event ring of an attachment.
///
/// # Invariants
///
/// `mapping` has `length(entries)` bytes, and `head` is below `entries`.
#[derive(Debug)]
pub struct Ring {
    mapping: Mapping,
    entries: u32,
    /// Next entry to read; the shared word is only a copy for the kernel.
    head: u32,
}

impl Ring {
    /// Maps the ring of `fd`, which was attached with `entries` entries, not 0.
    pub(crate) fn map(fd: BorrowedFd<'_>, entries: u32) -> Result<Self> {
        let mapping = Mapping::shared("the event ring", length(entries), fd)?;
        // INVARIANT: Mapped with that length; `entries` is not 0.
        Ok(Self {
            mapping,
            entries,
            head: 0,
        })
    }

    /// Takes the next event, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::RingOverflow`] when the kernel had to drop events, which no program can make up
    /// for; [`Error::RingDamaged`] when somebody scribbled over the ring.
    pub fn poll(&mut self) -> Result<Option<Event>> {
        // ORDERING: Pairs with the kernel's release of `tail` after it wrote the entry.
        let tail = self.word(TAIL).load(Ordering::Acquire);
        if tail == self.head {
            return self.check_overflow().map(|()| None);
        }
        if tail >= self.entries {
            return Err(Error::RingDamaged {
                tail,
                entries: self.entries,
            });
        }
        let event = Event::parse(&self.entry());
        let next = self.head + 1;
        // INVARIANT: Wraps before it reaches `entries`.
        self.head = if next == self.entries { 0 } else { next };
        // ORDERING: Pairs with the kernel's look at `head` before it writes that entry again.
        self.word(HEAD).store(self.head, Ordering::Release);
        Ok(Some(event))
    }

    /// Fails if events were lost.
    fn check_overflow(&self) -> Result<()> {
        let start = self.mapping.start().as_ptr().wrapping_add(OVERFLOW);
        // SAFETY: Inside the header, 8-aligned since the mapping is page-aligned, and only
        // accessed atomically.
        let count = unsafe { AtomicU64::from_ptr(start.cast()) };
        match count.load(Ordering::Relaxed) {
            0 => Ok(()),
            lost => Err(Error::RingOverflow(lost)),
        }
    }

    /// Returns a word of the header.
    fn word(&self, offset: usize) -> &AtomicU32 {
        let start = self.mapping.start().as_ptr().wrapping_add(offset);
        // SAFETY: Inside the header, 4-aligned, mapped as long as `self`, and only accessed
        // atomically.
        unsafe { AtomicU32::from_ptr(start.cast()) }
    }

    /// Copies the entry at `head`.
    fn entry(&self) -> [u8; event::SIZE] {
        // CAST: Below 10000.
        let offset = HEADER + event::SIZE * self.head as usize;
        let from = self.mapping.start().as_ptr().wrapping_add(offset);
        let mut bytes = [0; event::SIZE];
        // SAFETY: `head` is below `entries`, so the entry is inside the mapping; the kernel does
        // not write it while it lies between head and tail.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring in plain memory, and what the kernel would do to it.
    struct Fake {
        ring: Ring,
        tail: u32,
    }

    impl Fake {
        fn new(entries: u32) -> Self {
            let mapping = Mapping::anonymous("a test ring", length(entries)).unwrap();
            Self {
                ring: Ring {
                    mapping,
                    entries,
                    head: 0,
                },
                tail: 0,
            }
        }

        fn produce(&mut self, wr_id: u64) {
            let at = HEADER + event::SIZE * self.tail as usize + 9;
            let to = self.ring.mapping.start().as_ptr().wrapping_add(at);
            let bytes = wr_id.to_ne_bytes();
            // SAFETY: Inside the mapping, which only this thread uses.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, 8) };
            self.tail = (self.tail + 1) % self.ring.entries;
            self.ring.word(TAIL).store(self.tail, Ordering::Release);
        }

        fn consume(&mut self) -> Option<u64> {
            match self.ring.poll().unwrap() {
                Some(Event::Sent { wr_id, .. }) => Some(wr_id),
                Some(other) => panic!("{other:?}"),
                None => None,
            }
        }
    }

    #[test]
    fn events_come_in_order_and_wrap() {
        let mut fake = Fake::new(4);
        assert_eq!(fake.consume(), None);
        for round in 0..10 {
            fake.produce(round);
            fake.produce(round + 100);
            assert_eq!(fake.consume(), Some(round));
            assert_eq!(fake.consume(), Some(round + 100));
            assert_eq!(fake.consume(), None);
        }
        assert_eq!(fake.ring.word(HEAD).load(Ordering::Relaxed), 0);
    }

    #[test]
    fn overflow_is_an_error() {
        let mut fake = Fake::new(4);
        fake.ring.word(OVERFLOW).store(3, Ordering::Relaxed);
        let error = fake.ring.poll().unwrap_err();
        assert!(matches!(error, Error::RingOverflow(3)), "{error}");
    }

    #[test]
    fn damage_is_an_error() {
        let mut fake = Fake::new(4);
        fake.ring.word(TAIL).store(4, Ordering::Relaxed);
        let error = fake.ring.poll().unwrap_err();
        assert!(
            matches!(
                error,
                Error::RingDamaged {
                    tail: 4,
                    entries: 4
                }
            ),
            "{error}"
        );
    }
}
