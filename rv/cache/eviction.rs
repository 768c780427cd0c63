// SPDX-License-Identifier: GPL-2.0

//! EVICT: entries leave the cache because the process asks for it.
//!
//! Only idle entries leave. Each is taken out under the store's lock and deregistered without it,
//! before the process gets its answer. What becomes idle while an eviction is under way may stay:
//! an eviction ends after a number of steps that is known when it begins, however busy the cache
//! is.

use super::{
    entry::EntryRef,
    range::Range,
    store::Store, //
};
use kernel::prelude::*;

/// Which entries leave.
#[derive(Clone, Copy)]
pub(crate) enum Selection {
    /// The first idle one for all of the range and this access.
    Exact {
        /// The address of the range.
        addr: u64,
        /// Its length in bytes.
        len: u64,
        /// The access, as REG_MEM was given it.
        access: u32,
    },
    /// All idle ones that have an address in the range.
    Range {
        /// The address of the range.
        addr: u64,
        /// Its length in bytes.
        len: u64,
    },
    /// The idle ones whose last use is longest ago, until both goals are reached; at least one.
    Amount {
        /// Bytes to remove.
        bytes: u64,
        /// Entries to remove.
        count: u32,
    },
}

/// What has left.
#[derive(Clone, Copy, Default)]
pub(crate) struct Evicted {
    /// Bytes; of [`Selection::Exact`] those asked for.
    pub(crate) bytes: u64,
    /// Entries.
    pub(crate) count: u32,
}

impl Evicted {
    fn add(&mut self, len: u64) {
        self.bytes = self.bytes.saturating_add(len);
        self.count = self.count.saturating_add(1);
    }
}

impl Store {
    /// Carries an EVICT out.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `ENXIO` if the store is closed; `EINVAL` for a range that goes beyond the last address;
    /// `ENOENT` if nothing was there to leave, unless all of a range were asked for.
    pub(super) fn evict(&self, selection: Selection) -> Result<Evicted> {
        match selection {
            Selection::Exact { addr, len, access } => {
                let range = Range::new(addr, len).ok_or(EINVAL)?;
                self.evict_exact(&range, access)
            }
            Selection::Range { addr, len } => {
                let range = Range::new(addr, len).ok_or(EINVAL)?;
                self.evict_range(&range)
            }
            Selection::Amount { bytes, count } => self.evict_amount(bytes, count),
        }
    }

    fn evict_exact(&self, range: &Range, access: u32) -> Result<Evicted> {
        let entry = {
            let mut state = self.lock().lock();
            state.check_open()?;
            state.evict_covering(range, access).ok_or(ENOENT)?
        };
        deregister(entry);
        Ok(Evicted {
            bytes: range.len(),
            count: 1,
        })
    }

    fn evict_range(&self, range: &Range) -> Result<Evicted> {
        let mut evicted = Evicted::default();
        // Younger ones may stay.
        let youngest = self.new_handle();
        loop {
            let batch = {
                let mut state = self.lock().lock();
                state.check_open()?;
                state.evict_overlapping(range, youngest)
            };
            let mut empty = true;
            for entry in batch.into_iter().flatten() {
                empty = false;
                evicted.add(entry.range.len());
                deregister(entry);
            }
            if empty {
                return Ok(evicted);
            }
        }
    }

    fn evict_amount(&self, bytes: u64, count: u32) -> Result<Evicted> {
        let mut evicted = Evicted::default();
        let mut there = self.lock().lock().idle_count();
        while there > 0 {
            there -= 1;
            let entry = {
                let mut state = self.lock().lock();
                state.check_open()?;
                state.evict_oldest()
            };
            let Some(entry) = entry else { break };
            evicted.add(entry.range.len());
            deregister(entry);
            if evicted.bytes >= bytes && evicted.count >= count {
                break;
            }
        }
        match evicted.count {
            // Closed stores have no entries.
            0 => self.lock().lock().check_open().and(Err(ENOENT)),
            _ => Ok(evicted),
        }
    }
}

/// Deregisters an entry that has left the store: this is the last reference.
fn deregister(entry: EntryRef) {
    entry.discard();
    drop(entry);
}
