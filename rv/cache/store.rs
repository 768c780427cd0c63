// SPDX-License-Identifier: GPL-2.0

//! Where the entries of a cache are, and the rules by which they come and go.
//!
//! The one lock protects everything: the tree, the lists, the counters, and what changes in
//! entries. It is taken in the mmu notifier, so under it nothing is allocated, nothing sleeps and
//! no entry is dropped; functions that remove entries return them, to be dropped by the caller
//! after it has released the lock.

use super::{
    domain::{
        Key,
        Region, //
    },
    entry::{
        Entry,
        EntryRef,
        Local, //
    },
    lru::Lists,
    range::Range,
    stats::Stats,
    Registered, //
};
use crate::trace;
use kernel::{
    impl_has_work,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        LockedBy,
        SpinLock, //
    },
    workqueue::{
        new_work,
        Work,
        WorkItem, //
    }, //
};
use rdma::{
    interval_tree::Tree,
    notifier::{
        FollowUp,
        Sequence,
        Watched, //
    },
    workqueue::WorkqueueRef, //
};

/// The entries of a cache. Entries hold references to it, so it is emptied by [`Store::close`].
#[pin_data]
pub(super) struct Store {
    #[pin]
    state: SpinLock<State>,
    /// Names the store in traces and tables.
    id: u64,
    next_handle: Atomic<u64>,
    /// Drops the dead entries.
    #[pin]
    burial: Work<Store>,
    queue: WorkqueueRef,
}

/// Gives each store its name.
static NEXT_ID: Atomic<u64> = Atomic::new(1);

impl_has_work! {
    impl HasWork<Self> for Store { self.burial }
}

/// What the lock protects.
pub(super) struct State {
    open: bool,
    tree: Tree<Watched<Entry>>,
    pub(super) lists: Lists,
    stats: Stats,
}

/// Which entries a look-up finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those whose memory has not changed.
    Current,
    /// All.
    Any,
}

/// Who holds a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// A REG_MEM without its DEREG_MEM.
    User,
    /// An RDMA WRITE under way.
    Write,
}

/// Entries that leave together.
pub(super) type Batch = [Option<EntryRef>; 32];

/// What became of a new region.
pub(super) enum Insertion {
    /// It, or one that somebody else made at the same time, is in the store.
    Done(Registered),
    /// The memory changed while it was made: it is not in the store.
    Outdated,
}

impl Store {
    /// Creates an empty store for `limit_mib` MiB, which uses `queue` to drop entries.
    pub(super) fn new(limit_mib: u32, queue: WorkqueueRef) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_spinlock!(State {
                    open: true,
                    tree: Tree::new(),
                    lists: Lists::default(),
                    stats: Stats {
                        limit_cache_size: limit_mib,
                        ..Stats::default()
                    },
                }),
                id: NEXT_ID.fetch_add(1, Relaxed),
                next_handle: Atomic::new(1),
                burial <- new_work!("rv::cache::Store::burial"),
                queue,
            }),
            GFP_KERNEL,
        )
    }

    /// The name of the store: no other one has or had it.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn lock(&self) -> &SpinLock<State> {
        &self.state
    }

    pub(super) fn locked_by(&self, local: Local) -> LockedBy<Local, State> {
        LockedBy::new(&self.state, local)
    }

    pub(super) fn new_handle(&self) -> u64 {
        self.next_handle.fetch_add(1, Relaxed)
    }

    pub(super) fn stats(&self) -> Stats {
        self.state.lock().stats
    }

    /// Counts a registration that failed.
    pub(super) fn count_failed(&self) {
        self.state.lock().stats.failed += 1;
    }

    /// Looks for an entry that a REG_MEM can use, and adds a reference of the user to it.
    ///
    /// # Errors
    ///
    /// `ENXIO` if the store is closed, `EOVERFLOW` if the entry has too many references.
    pub(super) fn hit(
        &self,
        range: &Range,
        addr: u64,
        access: u32,
        domain: Key,
    ) -> Result<Option<Registered>> {
        let mut state = self.state.lock();
        state.check_open()?;
        match state.find(range, access, domain, Which::Current) {
            Some(entry) => state.hit(&entry, addr).map(Some),
            None => Ok(None),
        }
    }

    /// Puts a new entry with its region in the store, with one reference of the user, unless its
    /// memory has changed since `seen`.
    ///
    /// An entry in use whose memory has changed does not stand in the way of a new one for the same
    /// range: that is the one which a buffer at this address gets from now on.
    ///
    /// # Context
    ///
    /// Sleeps, if idle entries must be deregistered to make room.
    ///
    /// # Errors
    ///
    /// `ENXIO` if the store is closed; `ENOMEM` if it is full of entries in use; `EOVERFLOW` as for
    /// [`Store::hit`].
    pub(super) fn insert(
        &self,
        entry: &EntryRef,
        addr: u64,
        region: Region,
        seen: Sequence,
    ) -> Result<Insertion> {
        loop {
            let evicted = {
                let mut state = self.state.lock();
                state.check_open()?;
                if entry.is_outdated(seen, &state) {
                    return Ok(Insertion::Outdated);
                }
                // Another thread was faster.
                let twin = state.find(&entry.range, entry.access, entry.domain, Which::Current);
                if let Some(other) = twin {
                    return state.hit(&other, addr).map(Insertion::Done);
                }
                if state.stats.has_room(entry.range.len()) {
                    entry.set_region(region);
                    return state.insert(entry, addr).map(Insertion::Done);
                }
                state.evict_oldest()
            };
            if evicted.is_none() {
                self.state.lock().stats.full += 1;
                return Err(ENOMEM);
            }
        }
    }

    /// Looks for an entry that an RDMA WRITE can read from, and adds a reference to it.
    ///
    /// If the memory of one has changed and another one is for its present pages, that is found.
    ///
    /// # Errors
    ///
    /// `ENXIO` if the store is closed, `EINVAL` if there is none, `EOVERFLOW` as for
    /// [`Store::hit`].
    pub(super) fn acquire_for_write(&self, range: &Range, access: u32) -> Result<EntryRef> {
        let mut state = self.state.lock();
        state.check_open()?;
        let entry = state
            .find(range, access, Key::Kernel, Which::Current)
            .or_else(|| state.find(range, access, Key::Kernel, Which::Any))
            .ok_or(EINVAL)?;
        state.acquire(&entry, Holder::Write)?;
        Ok(entry)
    }

    /// Drops a reference of the user to the entry that `handle` names and that is for `access` and
    /// all of `range`.
    ///
    /// # Context
    ///
    /// Sleeps, if the entry must go.
    ///
    /// # Errors
    ///
    /// `ENXIO` if the store is closed, `EINVAL` if there is no such entry.
    pub(super) fn release_of_user(&self, range: &Range, access: u32, handle: u64) -> Result {
        let gone = {
            let mut state = self.state.lock();
            state.check_open()?;
            let entry = state.find_of_user(range, access, handle).ok_or(EINVAL)?;
            state.release(&entry, Holder::User)
        };
        drop(gone);
        Ok(())
    }

    /// Drops the reference that [`Store::acquire_for_write`] added.
    ///
    /// # Context
    ///
    /// Sleeps, if the entry must go.
    pub(super) fn release_of_write(&self, entry: EntryRef) {
        let gone = {
            let mut state = self.state.lock();
            let gone = state.release(&entry, Holder::Write);
            if state.tree.contains(&entry) {
                // Under the lock: whoever removes the idle entry next has the last reference.
                drop(entry);
                return;
            }
            gone
        };
        drop((gone, entry));
    }

    /// Has the dead entries dropped by the work queue.
    ///
    /// # Context
    ///
    /// Any.
    pub(super) fn bury(this: &Arc<Self>) {
        // If it is queued already, it has not begun to look for them.
        let _ = this.queue.queue().enqueue(this.clone());
    }

    fn drop_dead(&self) {
        loop {
            let dead = self.state.lock().take_dead();
            if dead.is_none() {
                break;
            }
        }
    }

    /// Removes all entries, and lets no new ones in. Those that RDMA WRITEs still hold go with
    /// their last reference.
    ///
    /// # Context
    ///
    /// Sleeps.
    pub(super) fn close(&self) {
        loop {
            let entry = {
                let mut state = self.state.lock();
                state.open = false;
                state.close_first()
            };
            if entry.is_none() {
                break;
            }
        }
        self.drop_dead();
    }
}

impl WorkItem for Store {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.drop_dead();
    }
}

impl State {
    /// # Errors
    ///
    /// `ENXIO` if the store is closed.
    pub(super) fn check_open(&self) -> Result {
        if self.open {
            Ok(())
        } else {
            Err(ENXIO)
        }
    }

    /// Finds the entry with the lowest start that is for `access` and all of `range` in `domain`.
    fn find(&self, range: &Range, access: u32, domain: Key, which: Which) -> Option<EntryRef> {
        // What covers a range contains its first address.
        self.tree
            .overlapping(range.start(), range.start())
            .find(|entry| {
                entry.is_for(range, access)
                    && entry.domain == domain
                    && (which == Which::Any || !entry.local.access(self).freeing)
            })
            .map(EntryRef::from)
    }

    fn find_of_user(&self, range: &Range, access: u32, handle: u64) -> Option<EntryRef> {
        self.tree
            .overlapping(range.start(), range.start())
            .find(|entry| {
                entry.handle == handle
                    && entry.is_for(range, access)
                    && entry.local.access(self).user_refs > 0
            })
            .map(EntryRef::from)
    }

    /// Finds an entry that is known by reference, if it is in the store.
    fn find_self(&self, entry: &Entry) -> Option<EntryRef> {
        self.tree
            .overlapping(entry.range.start(), entry.range.start())
            .find(|other| other.handle == entry.handle)
            .map(EntryRef::from)
    }

    /// A REG_MEM has found `entry`.
    fn hit(&mut self, entry: &EntryRef, addr: u64) -> Result<Registered> {
        let registered = entry.registered(addr).ok_or(EIO)?;
        self.acquire(entry, Holder::User)?;
        self.stats.hit += 1;
        entry.trace(trace::cache_hit, entry.local.access(self).refs);
        Ok(registered)
    }

    /// Puts an entry that has its region in the tree.
    fn insert(&mut self, entry: &EntryRef, addr: u64) -> Result<Registered> {
        let registered = entry.registered(addr).ok_or(EIO)?;
        self.tree.insert(entry.clone()).map_err(|_| EIO)?;
        self.stats.came(entry.range.len());
        self.stats.miss += 1;
        // It has no reference yet, as if it were idle.
        self.make_idle(entry);
        self.acquire(entry, Holder::User)?;
        entry.trace(trace::cache_insert, 1);
        Ok(registered)
    }

    /// Adds a reference to an entry in the store.
    fn acquire(&mut self, entry: &EntryRef, holder: Holder) -> Result {
        let local = entry.local.access_mut(self);
        let refs = local.refs.checked_add(1).ok_or(EOVERFLOW)?;
        local.refs = refs;
        if holder == Holder::User {
            local.user_refs += 1;
        }
        self.stats.referenced(refs);
        if refs == 1 {
            self.unlink_idle(entry);
            self.stats.used(entry.range.len());
        }
        Ok(())
    }

    /// Takes a reference from an entry. Returns the entry if it is gone from the store by this.
    fn release(&mut self, entry: &EntryRef, holder: Holder) -> Option<EntryRef> {
        let local = entry.local.access_mut(self);
        local.refs -= 1;
        if holder == Holder::User {
            local.user_refs -= 1;
        }
        // After `close` it is not in the store any more, and its memory belongs to its holders.
        if local.refs > 0 || !self.tree.contains(entry) {
            return None;
        }
        self.stats.unused(entry.range.len());
        if !entry.local.access(self).freeing {
            self.make_idle(entry);
            return None;
        }
        self.stats.evict += 1;
        entry.trace(trace::cache_evict, 0);
        self.forget(entry)
    }

    /// Takes an entry out of the tree, and of the counters.
    fn forget(&mut self, entry: &EntryRef) -> Option<EntryRef> {
        self.stats.left(entry.range.len());
        self.tree.remove(entry)
    }

    /// The memory of `entry` changes.
    pub(super) fn invalidate(&mut self, entry: &Entry) -> FollowUp {
        let Some(entry) = self.find_self(entry) else {
            return FollowUp::No;
        };
        let local = entry.local.access_mut(self);
        entry.trace(trace::cache_invalidate, local.refs);
        if local.refs > 0 {
            local.freeing = true;
            return FollowUp::No;
        }
        self.unlink_idle(&entry);
        self.stats.remove += 1;
        match self.forget(&entry) {
            Some(entry) => self.make_dead(entry),
            None => return FollowUp::No,
        }
        FollowUp::Needed
    }

    /// Removes an idle entry.
    fn evict(&mut self, entry: &EntryRef) -> Option<EntryRef> {
        self.unlink_idle(entry);
        self.stats.evict += 1;
        entry.trace(trace::cache_evict, 0);
        self.forget(entry)
    }

    /// Removes the idle entry whose last use is longest ago.
    pub(super) fn evict_oldest(&mut self) -> Option<EntryRef> {
        let entry = self.oldest_idle()?;
        self.evict(&entry)
    }

    /// Removes the idle entry with the lowest start that is for `access` and all of `range`.
    pub(super) fn evict_covering(&mut self, range: &Range, access: u32) -> Option<EntryRef> {
        let entry = self
            .tree
            .overlapping(range.start(), range.start())
            .find(|entry| entry.is_for(range, access) && entry.local.access(self).refs == 0)
            .map(EntryRef::from)?;
        self.evict(&entry)
    }

    /// Removes some of the idle entries with an address in `range` that are older than the handle
    /// `youngest`. None is left if it returns none.
    pub(super) fn evict_overlapping(&mut self, range: &Range, youngest: u64) -> Batch {
        let mut batch = Batch::default();
        if range.is_empty() {
            return batch;
        }
        let found = self
            .tree
            .overlapping(range.start(), range.last())
            .filter(|entry| entry.handle < youngest && entry.local.access(self).refs == 0)
            .map(EntryRef::from);
        for (place, entry) in batch.iter_mut().zip(found) {
            *place = Some(entry);
        }
        for place in batch.iter_mut() {
            // In exchange for the store's reference, so that no last one is dropped here.
            *place = place.take().and_then(|entry| self.evict(&entry));
        }
        batch
    }

    /// The number of idle entries.
    pub(super) fn idle_count(&self) -> u32 {
        self.stats.count - self.stats.inuse
    }

    /// Removes the first entry, in use or not, and the user's references to it.
    fn close_first(&mut self) -> Option<EntryRef> {
        let entry = self.tree.first().map(EntryRef::from)?;
        let local = entry.local.access_mut(self);
        entry.trace(trace::cache_remove, local.refs);
        let in_use = local.refs > 0;
        local.refs -= core::mem::take(&mut local.user_refs);
        if in_use {
            self.stats.unused(entry.range.len());
        } else {
            self.unlink_idle(&entry);
        }
        self.stats.remove += 1;
        self.forget(&entry)
    }
}
