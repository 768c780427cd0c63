// SPDX-License-Identifier: GPL-2.0

//! The requests of a queue pair that are under way: a fixed table of slots, and what happens when
//! one completes.
//!
//! Locks: `Table::state` (interrupts off) protects the bookkeeping and is held for a post that comes
//! from a completion; it nests inside every lock of a user and has none inside.

use super::{
    Handler,
    Init,
    Repost, //
};
use crate::{
    event::Event,
    wc::Wc, //
};
use core::{
    cell::UnsafeCell,
    ptr::NonNull, //
};
use kernel::{
    pr_warn_once,
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    },
    types::Opaque, //
};
use rdma_sys as sys;

/// Which of the two queues a slot belongs to, with the value of the request.
pub(super) enum Work<H: Handler> {
    Send(H::Send),
    Recv(H::Recv),
}

/// The bookkeeping of one outstanding request.
#[repr(C)]
pub(super) struct Slot<H: Handler> {
    /// What the work request points to.
    pub(super) cqe: Opaque<sys::ib_cqe>,
    table: *const Table<H>,
    index: usize,
    /// Belongs to whoever holds the slot: the poster until the post, then the completion.
    work: UnsafeCell<Option<Work<H>>>,
}

/// Bookkeeping of the slots.
pub(super) struct State {
    /// The queue pair, while it may be posted to.
    pub(super) qp: Option<NonNull<sys::ib_qp>>,
    free_send: KVVec<usize>,
    free_recv: KVVec<usize>,
    /// Values taken out of their slots whose handling is not over yet.
    handling: usize,
    /// No posts any more; `Table::idle` is due when nothing is outstanding.
    closed: bool,
    /// `Table::idle` has happened, or is about to.
    idle: bool,
}

/// What completions and posts share.
///
/// # Invariants
///
/// - `slots` holds `max_send` slots of the send queue, then those of the receive queue; it never
///   moves or changes its length.
/// - A slot's index is in `State::free_*` exactly while nobody holds the slot.
#[pin_data]
pub(super) struct Table<H: Handler> {
    pub(super) handler: Arc<H>,
    pub(super) slots: KVVec<Slot<H>>,
    max_send: usize,
    #[pin]
    pub(super) state: SpinLockIrq<State>,
    /// Happens once the table is closed, all slots are free, and the handler has dealt with what
    /// was in them.
    #[pin]
    pub(super) idle: Event,
}

// SAFETY: A slot's value is only touched by its holder, which is one task or context at a time;
// values and handler are `Send` (and the handler `Sync`).
unsafe impl<H: Handler> Send for Table<H> {}
// SAFETY: As above; the bookkeeping is behind a lock.
unsafe impl<H: Handler> Sync for Table<H> {}

impl State {
    fn free(&mut self, of_send: bool) -> &mut KVVec<usize> {
        if of_send {
            &mut self.free_send
        } else {
            &mut self.free_recv
        }
    }
}

impl<H: Handler> Table<H> {
    pub(super) fn new(init: &Init, handler: Arc<H>) -> Result<Pin<KBox<Self>>> {
        let max_send = usize::try_from(init.max_send_wr)?;
        let max_recv = usize::try_from(init.max_recv_wr)?;
        let total = max_send.checked_add(max_recv).ok_or(EINVAL)?;
        let mut slots = KVVec::with_capacity(total, GFP_KERNEL)?;
        let mut free_send = KVVec::with_capacity(max_send, GFP_KERNEL)?;
        let mut free_recv = KVVec::with_capacity(max_recv, GFP_KERNEL)?;
        for index in 0..total {
            let slot = Slot {
                cqe: Opaque::new(sys::ib_cqe {
                    done: Some(done::<H>),
                }),
                table: core::ptr::null(),
                index,
                work: UnsafeCell::new(None),
            };
            slots.push_within_capacity(slot).map_err(|_| ENOMEM)?;
            let free = if index < max_send {
                &mut free_send
            } else {
                &mut free_recv
            };
            free.push_within_capacity(index).map_err(|_| ENOMEM)?;
        }
        let mut table = KBox::pin_init(
            pin_init!(Self {
                handler,
                slots,
                max_send,
                state <- new_spinlock_irq!(State {
                    qp: None,
                    free_send,
                    free_recv,
                    handling: 0,
                    closed: false,
                    idle: false,
                }),
                idle <- Event::new(),
            }),
            GFP_KERNEL,
        )?;
        let this: *const Self = &*table;
        // SAFETY: Nothing is moved out of the table.
        let slots = unsafe { &mut table.as_mut().get_unchecked_mut().slots };
        for slot in slots {
            slot.table = this;
        }
        Ok(table)
    }

    /// Takes a free slot and puts `work` in it.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full, `ESHUTDOWN` if it is closed.
    pub(super) fn take_slot(&self, work: Work<H>) -> Result<&Slot<H>> {
        let index = {
            let mut state = self.state.lock();
            if state.closed {
                return Err(ESHUTDOWN);
            }
            state
                .free(matches!(work, Work::Send(_)))
                .pop()
                .ok_or(ENOMEM)?
        };
        let slot = self.slots.get(index).ok_or(EINVAL)?;
        // SAFETY: The slot's index was taken from the free list, so this task holds the slot.
        unsafe { *slot.work.get() = Some(work) };
        Ok(slot)
    }

    /// Takes the value out of a slot and frees the slot. To be followed by `settle`.
    ///
    /// # Safety
    ///
    /// The caller holds the slot.
    pub(super) unsafe fn release(&self, slot: &Slot<H>) -> Option<Work<H>> {
        let mut state = self.state.lock();
        // SAFETY: The caller holds the slot.
        let work = unsafe { (*slot.work.get()).take() }?;
        let free = state.free(matches!(work, Work::Send(_)));
        // The list has room for every slot of its queue, see `new`.
        let _ = free.push_within_capacity(slot.index);
        state.handling += 1;
        Some(work)
    }

    /// The value that `release` has returned is dealt with.
    pub(super) fn settle(&self) {
        self.change(|state| state.handling -= 1);
    }

    /// Forbids posts and lets `idle` happen as soon as nothing is outstanding.
    pub(super) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    /// Changes the bookkeeping, and lets `idle` happen if it is time by that.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let idle = {
            let mut state = self.state.lock();
            change(&mut state);
            let free = state.free_send.len() + state.free_recv.len();
            let idle = state.closed && state.handling == 0 && free == self.slots.len();
            idle && !core::mem::replace(&mut state.idle, idle)
        };
        if idle {
            self.idle.happen();
            self.handler.drained();
        }
    }

    /// Hands a completed request to the handler.
    pub(super) fn complete(&self, work: Work<H>, wc: &Wc) {
        match work {
            Work::Send(work) => self.handler.send_done(work, wc),
            Work::Recv(work) => {
                if let Repost::Again(work) = self.handler.recv_done(work, wc) {
                    self.repost(work);
                }
            }
        }
    }

    /// Posts a receive from a completion. Does nothing once the table is closed.
    fn repost(&self, work: H::Recv) {
        let Ok(slot) = self.take_slot(Work::Recv(work)) else {
            return;
        };
        let wr = recv_wr(slot);
        let ret = {
            let state = self.state.lock();
            match state.qp {
                // SAFETY: The queue pair is only destroyed after `state.qp` was cleared under the
                // lock that is held here. Posting does not sleep (core_locking.rst).
                Some(qp) => unsafe { sys::ib_post_recv(qp.as_ptr(), &wr) },
                None => -1,
            }
        };
        if ret != 0 {
            // SAFETY: The post failed, so the slot is still held here.
            unsafe { self.give_back(slot) };
        }
    }

    /// Drops the value of a request that was not posted after all.
    ///
    /// # Safety
    ///
    /// The caller holds the slot.
    pub(super) unsafe fn give_back(&self, slot: &Slot<H>) {
        // SAFETY: The caller's promise.
        if let Some(work) = unsafe { self.release(slot) } {
            drop(work);
            self.settle();
        }
    }
}

/// A work request on the receive queue, for data that needs no buffer.
pub(super) fn recv_wr<H: Handler>(slot: &Slot<H>) -> sys::ib_recv_wr {
    let mut wr: sys::ib_recv_wr = pin_init::zeroed();
    wr.__bindgen_anon_1.wr_cqe = slot.cqe.get();
    wr
}

/// The completion of every request: called by the RDMA core through the slot's `ib_cqe`.
///
/// # Safety
///
/// `wc` must be a completion of a request that was posted with a slot of a `Table<H>`.
unsafe extern "C" fn done<H: Handler>(_cq: *mut sys::ib_cq, wc: *mut sys::ib_wc) {
    // SAFETY: The core passes a valid completion.
    let wc = unsafe { &*wc };
    // SAFETY: `ib_cqe` is the first field of the slot whose request has ended. The table outlives
    // its completion queues.
    let slot = unsafe { &*wc.__bindgen_anon_1.wr_cqe.cast::<Slot<H>>() };
    // SAFETY: Set by `Table::new`, and the table outlives its completion queues.
    let table = unsafe { &*slot.table };
    // SAFETY: The completion of a request holds its slot.
    let Some(work) = (unsafe { table.release(slot) }) else {
        pr_warn_once!("rdma: a driver completed the same work request twice\n");
        return;
    };
    table.complete(work, &Wc::from_c(wc));
    table.settle();
}
