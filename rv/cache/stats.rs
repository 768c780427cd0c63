// SPDX-License-Identifier: GPL-2.0

//! What a cache counts.
//!
//! Needs nothing but `core`, so that the host tests can include it.

/// The counters of one cache, as GET_CACHE_STATS returns them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Stats {
    /// Bytes of all entries, and the most there were.
    pub(crate) cache_size: u64,
    pub(crate) max_cache_size: u64,
    /// The limit, in MiB.
    pub(crate) limit_cache_size: u32,
    /// Entries, and the most there were.
    pub(crate) count: u32,
    pub(crate) max_count: u32,
    /// Entries that somebody holds a reference to, and the most there were.
    pub(crate) inuse: u32,
    pub(crate) max_inuse: u32,
    /// Bytes of those, and the most there were.
    pub(crate) inuse_bytes: u64,
    pub(crate) max_inuse_bytes: u64,
    /// The most references to one entry.
    pub(crate) max_refcount: u32,
    /// REG_MEMs that found an entry.
    pub(crate) hit: u64,
    /// REG_MEMs that made one.
    pub(crate) miss: u64,
    /// REG_MEMs that failed since the cache was full.
    pub(crate) full: u64,
    /// REG_MEMs that failed since there was no memory or the region could not be registered.
    pub(crate) failed: u64,
    /// Idle entries removed since their memory changed, and those removed at close.
    pub(crate) remove: u64,
    /// Entries removed for the limit or on demand, and at their last release since their memory
    /// had changed.
    pub(crate) evict: u64,
}

impl Stats {
    /// Returns whether another `len` bytes are within the limit.
    pub(crate) fn has_room(&self, len: u64) -> bool {
        let limit = u64::from(self.limit_cache_size) << 20;
        self.cache_size
            .checked_add(len)
            .is_some_and(|size| size <= limit)
    }

    /// An entry of `len` bytes came. It is idle until `used`.
    pub(crate) fn came(&mut self, len: u64) {
        self.cache_size += len;
        self.max_cache_size = self.max_cache_size.max(self.cache_size);
        self.count += 1;
        self.max_count = self.max_count.max(self.count);
    }

    /// An idle entry of `len` bytes left.
    pub(crate) fn left(&mut self, len: u64) {
        self.cache_size -= len;
        self.count -= 1;
    }

    /// An idle entry of `len` bytes came into use.
    pub(crate) fn used(&mut self, len: u64) {
        self.inuse += 1;
        self.max_inuse = self.max_inuse.max(self.inuse);
        self.inuse_bytes += len;
        self.max_inuse_bytes = self.max_inuse_bytes.max(self.inuse_bytes);
    }

    /// An entry of `len` bytes became idle.
    pub(crate) fn unused(&mut self, len: u64) {
        self.inuse -= 1;
        self.inuse_bytes -= len;
    }

    /// An entry has `count` references.
    pub(crate) fn referenced(&mut self, count: u32) {
        self.max_refcount = self.max_refcount.max(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_stay() {
        let mut stats = Stats::default();
        stats.came(100);
        stats.used(100);
        stats.came(50);
        stats.unused(100);
        stats.left(100);
        assert_eq!((stats.cache_size, stats.max_cache_size), (50, 150));
        assert_eq!((stats.count, stats.max_count), (1, 2));
        assert_eq!((stats.inuse, stats.max_inuse), (0, 1));
        assert_eq!((stats.inuse_bytes, stats.max_inuse_bytes), (0, 100));
        stats.referenced(3);
        stats.referenced(2);
        assert_eq!(stats.max_refcount, 3);
    }

    #[test]
    fn room_ends_exactly_at_the_limit() {
        let mut stats = Stats {
            limit_cache_size: 1,
            ..Stats::default()
        };
        assert!(stats.has_room(1 << 20));
        assert!(!stats.has_room((1 << 20) + 1));
        assert!(!stats.has_room(u64::MAX));
        stats.came(4096);
        assert!(stats.has_room((1 << 20) - 4096));
        assert!(!stats.has_room(1 << 20));
        stats.limit_cache_size = u32::MAX;
        assert!(stats.has_room(u64::from(u32::MAX) << 19));
        assert!(!stats.has_room(u64::MAX));
    }
}
