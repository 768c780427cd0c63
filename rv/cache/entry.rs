// SPDX-License-Identifier: GPL-2.0

//! An entry of the cache: a memory region over a range of the process's memory.

use super::{
    domain::{
        Key,
        Region, //
    },
    range::Range,
    store::{
        State,
        Store, //
    },
    Registered, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        LockedBy,
        SetOnce,
        SpinLock, //
    }, //
};
use rdma::{
    interval_tree::Node,
    mm::MmRef,
    mr::Mr,
    notifier::{
        FollowUp,
        Reason,
        Target,
        Watched, //
    }, //
};

/// A reference to an entry. Dropping the last one waits for a change of the memory that is under
/// way and deregisters the region: it must not happen under the store's lock, nor in the notifier.
pub(super) type EntryRef = Arc<Node<Watched<Entry>>>;

/// A memory region, and what it was made for.
///
/// An entry exists, and its notifier is inserted, before its region is registered: see
/// [`rdma::notifier`]. Only with a region it gets into the store.
pub(super) struct Entry {
    pub(super) range: Range,
    /// As the user gave it.
    pub(super) access: u32,
    /// The protection domain of the region.
    pub(super) domain: Key,
    /// Names the entry among all that its cache ever had. Never 0.
    pub(super) handle: u64,
    /// The address of the first byte, in terms of the device.
    pub(super) iova: u64,
    store: Arc<Store>,
    region: SetOnce<Region>,
    pub(super) local: LockedBy<Local, State>,
}

/// What changes in the life of an entry, under the store's lock.
#[derive(Default)]
pub(super) struct Local {
    /// References of users and of RDMA WRITEs under way.
    pub(super) refs: u32,
    /// Those of users.
    pub(super) user_refs: u32,
    /// The memory has changed while the entry was in use: nobody gets it any more, and it goes with
    /// its last reference.
    pub(super) freeing: bool,
    /// Neighbours in the list that the entry is in, see `lru.rs`.
    pub(super) newer: Option<EntryRef>,
    pub(super) older: Option<EntryRef>,
}

impl Entry {
    /// Creates an entry without a region, and watches over its range.
    ///
    /// # Context
    ///
    /// Sleeps. In a task of the process that `mm` belongs to.
    ///
    /// # Errors
    ///
    /// `EFAULT` for an empty range; else those of [`Watched::new`].
    pub(super) fn new(
        store: &Arc<Store>,
        mm: &MmRef,
        range: Range,
        access: u32,
        domain: Key,
    ) -> Result<EntryRef> {
        if range.is_empty() {
            return Err(EFAULT);
        }
        let handle = store.new_handle();
        let entry = Self {
            range,
            access,
            domain,
            handle,
            iova: domain.iova(handle, range.start()),
            store: store.clone(),
            region: SetOnce::new(),
            local: store.locked_by(Local::default()),
        };
        Arc::pin_init(
            Node::new(
                range.start(),
                range.last(),
                Watched::new(mm, range.start(), range.len(), entry),
            ),
            GFP_KERNEL,
        )
    }

    /// Gives the entry its region.
    pub(super) fn set_region(&self, region: Region) {
        self.region.populate(region);
    }

    /// The region, if it is in the kernel's protection domain. Every entry in the store has one
    /// there or elsewhere.
    pub(super) fn mr(&self) -> Option<&Mr> {
        self.region.as_ref().and_then(Region::of_kernel)
    }

    /// Has the region deregistered with the last reference, and not used again.
    pub(super) fn discard(&self) {
        if let Some(region) = self.region.as_ref() {
            region.discard();
        }
    }

    /// Returns whether the entry is for `access` and all of `range`.
    pub(super) fn is_for(&self, range: &Range, access: u32) -> bool {
        self.access == access && self.range.covers(range)
    }

    /// What a user who asked for `addr` is told.
    pub(super) fn registered(&self, addr: u64) -> Option<Registered> {
        self.region.as_ref().map(|region| Registered {
            handle: self.handle,
            iova: self
                .iova
                .wrapping_add(addr.wrapping_sub(self.range.start())),
            lkey: region.lkey(),
            rkey: region.rkey(),
        })
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Traces something that happens to the entry, which has so many references.
    #[inline(always)]
    pub(super) fn trace(&self, event: impl FnOnce(u64, u64, u64, u64, u32, u32), refs: u32) {
        let range = &self.range;
        event(
            self.store.id(),
            self.handle,
            range.start(),
            range.len(),
            self.access,
            refs,
        );
    }
}

impl Target for Entry {
    type Shared = State;

    fn shared(&self) -> &SpinLock<State> {
        self.store.lock()
    }

    fn invalidate(&self, state: &mut State, _reason: Reason) -> FollowUp {
        state.invalidate(self)
    }

    fn follow_up(&self) {
        Store::bury(&self.store);
    }
}
