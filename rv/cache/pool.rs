// SPDX-License-Identifier: GPL-2.0

//! Regions for fast registration, kept ready: allocating one is a command to the firmware of many
//! devices, listing pages in one is not.
//!
//! A pool is empty until the first fast registration, and is filled by the work queue: ATTACH costs
//! nothing, and a cache that registers directly never has any. From then on the work queue keeps
//! some ready. A region that is no longer needed comes back by way of the queue pair, which makes
//! its keys invalid; only then are its pages unpinned.
//!
//! A registration for which nothing is ready, or whose pages are more than a region of the pool
//! lists, makes a region of its own. So it does if the pool cannot be filled, which ends the pool.

use super::sizes::Sizes;
use kernel::{
    impl_has_work,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    workqueue::{
        new_work,
        Work,
        WorkItem, //
    }, //
};
use rdma::{
    mr::{
        FreeMr,
        Mr, //
    },
    pd::Pd,
    workqueue::WorkqueueRef, //
};

/// Invalidations that can be under way at the same time. Beyond that, regions are deregistered.
pub(super) const MAX_INVALIDATIONS: u32 = 200;

/// Whether there are regions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not yet.
    Unfilled,
    Filled,
    /// Not any more.
    Closed,
}

/// What the lock protects. No region is dropped under it.
struct State {
    phase: Phase,
    /// The last one in is the first one out: what the device has used last it knows best. Has room
    /// for all regions of the pool once the phase is `Filled`.
    ready: KVVec<FreeMr>,
    invalidating: u32,
}

/// Regions for fast registration.
#[pin_data]
pub(super) struct Pool {
    pd: Arc<Pd>,
    sizes: Sizes,
    #[pin]
    state: SpinLock<State>,
    /// Fills the pool.
    #[pin]
    filling: Work<Pool>,
    queue: WorkqueueRef,
}

impl_has_work! {
    impl HasWork<Self> for Pool { self.filling }
}

impl Pool {
    /// Creates an empty pool, which uses `queue` to fill itself.
    pub(super) fn new(pd: Arc<Pd>, sizes: Sizes, queue: WorkqueueRef) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                pd,
                sizes,
                state <- new_spinlock!(State {
                    phase: Phase::Unfilled,
                    ready: KVVec::new(),
                    invalidating: 0,
                }),
                filling <- new_work!("rv::cache::Pool::filling"),
                queue,
            }),
            GFP_KERNEL,
        )
    }

    /// Takes a region that can list `pages` pages, if one is ready.
    pub(super) fn take(this: &Arc<Self>, pages: u64) -> Option<FreeMr> {
        if pages > u64::from(this.sizes.list_len()) {
            return None;
        }
        let (taken, is_low) = {
            let mut state = this.state.lock();
            let taken = state.ready.pop();
            let open = state.phase != Phase::Closed;
            (taken, open && this.sizes.is_low(state.ready.len()))
        };
        if is_low {
            // If it is queued already, it has not begun to count.
            let _ = this.queue.queue().enqueue(this.clone());
        }
        taken
    }

    /// Puts a region with invalid keys with the ready ones, or drops it if there are enough.
    ///
    /// # Context
    ///
    /// Sleeps.
    fn put(&self, mr: FreeMr) -> Result<(), FreeMr> {
        let mut state = self.state.lock();
        if state.phase == Phase::Closed || state.ready.len() >= self.sizes.batch() {
            return Err(mr);
        }
        // Without room it is dropped outside the lock, too.
        state.ready.push_within_capacity(mr).map_err(|e| e.0)
    }

    /// Asks whether `mr` is worth to be invalidated and put back.
    pub(super) fn admit(this: &Arc<Self>, mr: &Mr) -> Option<Permit> {
        if mr.list_len() != this.sizes.list_len() {
            return None;
        }
        let mut state = this.state.lock();
        // CAST: Small.
        let coming = state.invalidating as usize;
        if state.phase != Phase::Filled
            || state.invalidating >= MAX_INVALIDATIONS
            || state.ready.len() + coming >= this.sizes.batch()
        {
            return None;
        }
        state.invalidating += 1;
        // INVARIANT: Counted by the line above.
        Some(Permit { pool: this.clone() })
    }

    /// Ends the pool: regions that come back are dropped.
    ///
    /// # Context
    ///
    /// Sleeps.
    pub(super) fn close(&self) {
        let ready = {
            let mut state = self.state.lock();
            state.phase = Phase::Closed;
            core::mem::replace(&mut state.ready, KVVec::new())
        };
        drop(ready);
    }

    /// Makes room for the regions the first time. Returns whether it is.
    fn prepare(&self) -> Result<bool> {
        if self.state.lock().phase != Phase::Unfilled {
            return Ok(false);
        }
        let room = KVVec::with_capacity(self.sizes.batch(), GFP_KERNEL)?;
        let mut state = self.state.lock();
        if state.phase != Phase::Unfilled {
            return Ok(false);
        }
        state.phase = Phase::Filled;
        // Nothing was there, so nothing is freed under the lock.
        state.ready = room;
        Ok(true)
    }

    /// Makes regions until `target` are ready.
    fn fill(&self, target: usize) -> Result {
        loop {
            {
                let state = self.state.lock();
                if state.phase == Phase::Closed || state.ready.len() >= target {
                    return Ok(());
                }
            }
            let mr = FreeMr::new(&self.pd, self.sizes.list_len())?;
            if self.put(mr).is_err() {
                return Ok(());
            }
        }
    }
}

impl WorkItem for Pool {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let filled = match this.prepare() {
            Ok(true) => this.fill(this.sizes.batch()),
            // What cannot be made now may be made later; others come back.
            Ok(false) => {
                let _ = this.fill(this.sizes.refilled());
                Ok(())
            }
            Err(e) => Err(e),
        };
        if filled.is_err() {
            this.close();
        }
    }
}

/// The permission to invalidate a region for a pool.
///
/// # Invariants
///
/// Counted in `pool.state.invalidating`.
pub(super) struct Permit {
    pool: Arc<Pool>,
}

impl Permit {
    /// Puts the region back.
    ///
    /// # Context
    ///
    /// Sleeps.
    pub(super) fn put(self, mr: FreeMr) {
        drop(self.pool.put(mr));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.pool.state.lock().invalidating -= 1;
    }
}
