// SPDX-License-Identifier: GPL-2.0

//! Reliable-connection queue pairs (IBTA 9.7), with their completion queues.
//!
//! A work request carries a value of the user's own type from the post to its completion: what the
//! hardware reads or writes meanwhile stays alive because that value holds it. Each queue has a
//! fixed table of slots for such values, so posting allocates nothing, and a value comes back
//! exactly once: with the completion, or, if the hardware never completed the request, when the
//! queue pair is dropped.
//!
//! The life of a request: [`Qp::post_write_imm`] (or another post) takes a free slot, puts the
//! value in it and posts a work request that points to the slot. The completion queue's polling
//! context comes back through the slot, takes the value out, frees the slot and hands both to the
//! [`Handler`]. Slots are in `slots.rs`, attributes in `attr.rs`.

mod attr;
mod slots;

pub use attr::{
    Attr,
    QpState, //
};

use crate::{
    mr::{
        Access,
        FastMr,
        Mr, //
    },
    pd::Pd,
    wc::Wc, //
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc, //
    },
    time::Msecs, //
};
use rdma_sys as sys;
use slots::{
    recv_wr,
    Slot,
    Table,
    Work, //
};

/// Where the completions of a queue pair are handled (`enum ib_poll_context`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PollContext {
    /// In soft interrupt context: soonest, must not sleep.
    Softirq,
    /// On the RDMA core's per-CPU work queue: may sleep.
    Workqueue,
    /// On the RDMA core's unbound work queue: may sleep, on any CPU.
    UnboundWorkqueue,
}

impl PollContext {
    fn to_c(self) -> sys::ib_poll_context {
        match self {
            Self::Softirq => sys::ib_poll_context_IB_POLL_SOFTIRQ,
            Self::Workqueue => sys::ib_poll_context_IB_POLL_WORKQUEUE,
            Self::UnboundWorkqueue => sys::ib_poll_context_IB_POLL_UNBOUND_WORKQUEUE,
        }
    }
}

/// Asynchronous events of a queue pair (IBTA 11.6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsyncEvent {
    /// The first packet has come before the connection was established.
    CommEst,
    /// The path has migrated.
    PathMig,
    /// Local work queue catastrophic error.
    Fatal,
    /// Invalid request local work queue error.
    ReqErr,
    /// Local access violation work queue error.
    AccessErr,
    /// One of the completion queues is in error, for instance has overflown.
    CqErr,
    /// Any other.
    Other(u32),
}

/// What becomes of a completed receive.
pub enum Repost<R> {
    /// Post it again, with this value.
    Again(R),
    /// Its slot stays free.
    No,
}

/// What a user does with completions and events.
///
/// # Context
///
/// The `*_done` methods run in the queue pair's [`PollContext`], one at a time for each of the two
/// queues. They must not drop the queue pair they are called for.
pub trait Handler: Send + Sync + Sized + 'static {
    /// What a request on the send queue carries.
    type Send: Send;
    /// What a request on the receive queue carries.
    type Recv: Send;

    /// A request on the send queue has ended.
    fn send_done(&self, work: Self::Send, wc: &Wc);

    /// A request on the receive queue has ended.
    fn recv_done(&self, work: Self::Recv, wc: &Wc) -> Repost<Self::Recv>;

    /// Something happened to the queue pair.
    ///
    /// # Context
    ///
    /// Any, interrupts may be off: must not sleep.
    fn event(&self, event: AsyncEvent);

    /// The queue pair is closed (see [`Qp::begin_drain`]), and every request that was ever posted
    /// has been given to `send_done` or `recv_done`, which have returned. Called at most once.
    ///
    /// # Context
    ///
    /// That of the `*_done` methods, or of whoever closes the queue pair.
    fn drained(&self) {}
}

/// What a request carries that may read memory of this side.
pub trait Source {
    /// The region it reads, if any.
    fn region(&self) -> Option<&Mr>;
}

/// What a queue pair is asked to have.
#[derive(Clone, Copy)]
pub struct Init {
    /// Requests that the send queue holds.
    pub max_send_wr: u32,
    /// Requests that the receive queue holds.
    pub max_recv_wr: u32,
    /// Where completions are handled.
    pub poll: PollContext,
}

/// A completion queue of one queue pair.
///
/// # Invariants
///
/// `0` is a completion queue that is ours to free.
struct Cq(NonNull<sys::ib_cq>);

impl Cq {
    fn new(pd: &Pd, entries: u32, poll: PollContext) -> Result<Self> {
        let entries = c_int::try_from(entries.max(1))?;
        // SAFETY: The device is registered, see `Device`.
        let raw = from_err_ptr(unsafe {
            sys::ib_alloc_cq_any(
                pd.device().as_raw(),
                core::ptr::null_mut(),
                entries,
                poll.to_c(),
            )
        })?;
        // INVARIANT: Allocated above.
        Ok(Self(NonNull::new(raw).ok_or(ENOMEM)?))
    }
}

impl Cq {
    /// Lets `handler` hear of the queue's asynchronous errors.
    fn watch(
        &self,
        handler: unsafe extern "C" fn(*mut sys::ib_event, *mut c_void),
        of: *mut c_void,
    ) {
        // SAFETY: Ours by the type invariant, and no queue pair uses it yet.
        unsafe {
            (*self.0.as_ptr()).cq_context = of;
            (*self.0.as_ptr()).event_handler = Some(handler);
        }
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant; the queue pair that used it is destroyed.
        unsafe { sys::ib_free_cq(self.0.as_ptr()) };
    }
}

/// A reliable-connection queue pair.
///
/// # Invariants
///
/// `raw` is a queue pair in `pd` whose completions go to `cqs` and whose requests are all posted
/// with slots of `table`.
pub struct Qp<H: Handler> {
    raw: NonNull<sys::ib_qp>,
    cqs: Option<(Cq, Cq)>,
    /// Lost with the queue pair if that cannot be destroyed.
    table: ManuallyDrop<Pin<KBox<Table<H>>>>,
    pd: Arc<Pd>,
    /// Has left RESET, from where there is no way to ERROR.
    in_use: AtomicFlag,
}

// SAFETY: The RDMA core allows its verbs from any task; `Table` is `Send`.
unsafe impl<H: Handler> Send for Qp<H> {}
// SAFETY: Every RDMA core operation on a QP is re-entrant; `Table` is `Sync`.
unsafe impl<H: Handler> Sync for Qp<H> {}

/// A connected peer's memory, as the peer has told it.
#[derive(Clone, Copy)]
pub struct Remote {
    /// The address in the terms of the peer's memory region.
    pub addr: u64,
    /// The key of the memory region.
    pub rkey: u32,
}

impl<H: Handler> Qp<H> {
    /// Creates a queue pair, in state RESET.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device's queues are shorter than asked for, `ENOMEM`, or the driver's error.
    pub fn new(pd: &Arc<Pd>, init: &Init, handler: Arc<H>) -> Result<Self> {
        let limit = pd.device().max_qp_wr();
        if init.max_send_wr > limit || init.max_recv_wr > limit {
            return Err(EINVAL);
        }
        let table = Table::new(init, handler)?;
        let send_cq = Cq::new(pd, init.max_send_wr, init.poll)?;
        let recv_cq = Cq::new(pd, init.max_recv_wr, init.poll)?;
        let this: *const Table<H> = &*table;
        let context: *mut c_void = this.cast_mut().cast();
        send_cq.watch(Self::on_event, context);
        recv_cq.watch(Self::on_event, context);
        let mut attr = sys::ib_qp_init_attr {
            event_handler: Some(Self::on_event),
            qp_context: context,
            send_cq: send_cq.0.as_ptr(),
            recv_cq: recv_cq.0.as_ptr(),
            cap: sys::ib_qp_cap {
                max_send_wr: init.max_send_wr,
                max_recv_wr: init.max_recv_wr,
                max_send_sge: 1,
                // Some drivers refuse 0, although no receive of ours has a buffer.
                max_recv_sge: 1,
                ..pin_init::zeroed()
            },
            sq_sig_type: sys::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: sys::ib_qp_type_IB_QPT_RC,
            ..pin_init::zeroed()
        };
        // SAFETY: PD and CQs are valid; table and CQs outlive the queue pair, see `Drop`.
        let raw = from_err_ptr(unsafe { sys::ib_create_qp(pd.as_raw(), &mut attr) })?;
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        table.state.lock().qp = Some(raw);
        // INVARIANT: Created above, with exactly these parts.
        Ok(Self {
            raw,
            cqs: Some((send_cq, recv_cq)),
            table: ManuallyDrop::new(table),
            pd: pd.clone(),
            in_use: AtomicFlag::new(false),
        })
    }

    /// # Safety
    ///
    /// To be called by the RDMA core as the event handler of a queue pair made by `new`, or of one
    /// of its completion queues.
    unsafe extern "C" fn on_event(event: *mut sys::ib_event, context: *mut c_void) {
        // SAFETY: The core passes a valid event and the context given to it, which outlives the
        // queue pair.
        let (event, table) = unsafe { ((*event).event, &*context.cast::<Table<H>>()) };
        table.handler.event(match event {
            sys::ib_event_type_IB_EVENT_COMM_EST => AsyncEvent::CommEst,
            sys::ib_event_type_IB_EVENT_PATH_MIG => AsyncEvent::PathMig,
            sys::ib_event_type_IB_EVENT_QP_FATAL => AsyncEvent::Fatal,
            sys::ib_event_type_IB_EVENT_QP_REQ_ERR => AsyncEvent::ReqErr,
            sys::ib_event_type_IB_EVENT_QP_ACCESS_ERR => AsyncEvent::AccessErr,
            sys::ib_event_type_IB_EVENT_CQ_ERR => AsyncEvent::CqErr,
            other => AsyncEvent::Other(other),
        });
    }

    /// The handler.
    pub fn handler(&self) -> &Arc<H> {
        &self.table.handler
    }

    /// The protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// The queue pair number.
    pub fn number(&self) -> u32 {
        // SAFETY: Valid by the type invariant; the number does not change.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// Changes attributes, which may change the state (IBTA 11.2.5.3).
    ///
    /// # Context
    ///
    /// May sleep.
    ///
    /// # Errors
    ///
    /// The driver's, `EINVAL` for a change that the state does not allow.
    pub fn modify(&self, attr: &mut Attr) -> Result {
        // SAFETY: Valid by the type invariant.
        to_result(unsafe { sys::ib_modify_qp(self.raw.as_ptr(), &mut attr.attr, attr.mask) })?;
        self.in_use.store(true, Relaxed);
        Ok(())
    }

    /// Moves the queue pair to ERROR: outstanding requests are flushed. One in RESET, where there
    /// are none, stays there.
    ///
    /// # Context
    ///
    /// May sleep.
    pub fn error(&self) {
        if !self.in_use.load(Relaxed) {
            return;
        }
        let mut attr = Attr::to_state(QpState::Error);
        if let Err(e) = self.modify(&mut attr) {
            pr_warn!(
                "rdma: QP {}: cannot be moved to ERROR: {:?}\n",
                self.number(),
                e
            );
        }
    }

    /// Refuses posts from now on and moves the queue pair to ERROR. [`Handler::drained`] is called
    /// as soon as no request is outstanding, which may be before this returns.
    ///
    /// # Context
    ///
    /// May sleep.
    pub fn begin_drain(&self) {
        self.table.close();
        self.error();
    }

    /// As [`Qp::begin_drain`], and waits until no request is outstanding, for at most `timeout`.
    ///
    /// Returns `false` if the hardware still holds requests. They come back, as flushed, when the
    /// queue pair is dropped.
    ///
    /// # Context
    ///
    /// Sleeps.
    pub fn drain(&self, timeout: Msecs) -> bool {
        self.begin_drain();
        self.table.idle.wait_timeout(timeout)
    }

    /// Posts an RDMA WRITE with immediate of `len` bytes at `offset` of the region that `work`
    /// holds, signaled.
    ///
    /// `work` comes back with the completion.
    ///
    /// # Context
    ///
    /// Any that does not hold a lock which the handler takes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `work` holds no region, the range is not in it, or it is in another protection
    /// domain than the queue pair;
    /// `ENOMEM` if the queue is full, `ESHUTDOWN` if it is closed, else the driver's error. `work`
    /// is dropped then.
    pub fn post_write_imm(
        &self,
        work: H::Send,
        offset: u64,
        len: u32,
        remote: Remote,
        imm: u32,
    ) -> Result
    where
        H::Send: Source,
    {
        let mr = work.region().ok_or(EINVAL)?;
        let end = offset.checked_add(u64::from(len)).ok_or(EINVAL)?;
        if end > mr.length() || !Arc::ptr_eq(mr.pd(), &self.pd) {
            return Err(EINVAL);
        }
        let mut sge = sys::ib_sge {
            addr: mr.iova().wrapping_add(offset),
            length: len,
            lkey: mr.lkey(),
        };
        let mut wr: sys::ib_rdma_wr = pin_init::zeroed();
        wr.wr.sg_list = &mut sge;
        wr.wr.num_sge = 1;
        wr.wr.opcode = sys::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM;
        wr.wr.ex.imm_data = imm.to_be();
        wr.remote_addr = remote.addr;
        wr.rkey = remote.rkey;
        self.post_send(work, &mut wr.wr)
    }

    /// Posts a SEND without data, signaled.
    ///
    /// # Context, errors
    ///
    /// As [`Qp::post_write_imm`].
    pub fn post_empty_send(&self, work: H::Send) -> Result {
        let mut wr: sys::ib_send_wr = pin_init::zeroed();
        wr.opcode = sys::ib_wr_opcode_IB_WR_SEND;
        self.post_send(work, &mut wr)
    }

    /// Posts the fast registration of the region that `work` holds, signaled.
    ///
    /// `work` comes back with the completion.
    ///
    /// # Context, errors
    ///
    /// As [`Qp::post_write_imm`].
    pub fn post_reg_mr(&self, work: H::Send, access: Access) -> Result
    where
        H::Send: AsRef<FastMr>,
    {
        let mr = work.as_ref();
        let mut wr: sys::ib_reg_wr = pin_init::zeroed();
        wr.wr.opcode = sys::ib_wr_opcode_IB_WR_REG_MR;
        wr.mr = mr.as_raw();
        wr.key = mr.rkey();
        wr.access = access.to_c();
        self.post_send(work, &mut wr.wr)
    }

    /// Posts the invalidation of the keys of the region that `work` holds, signaled.
    ///
    /// `work` comes back with the completion.
    ///
    /// # Context, errors
    ///
    /// As [`Qp::post_write_imm`].
    pub fn post_local_inv(&self, work: H::Send) -> Result
    where
        H::Send: AsRef<FastMr>,
    {
        let mut wr: sys::ib_send_wr = pin_init::zeroed();
        wr.opcode = sys::ib_wr_opcode_IB_WR_LOCAL_INV;
        wr.ex.invalidate_rkey = work.as_ref().rkey();
        self.post_send(work, &mut wr)
    }

    /// Completes `wr` with a slot for `work` and posts it.
    fn post_send(&self, work: H::Send, wr: &mut sys::ib_send_wr) -> Result {
        let slot = self.table.take_slot(Work::Send(work))?;
        wr.__bindgen_anon_1.wr_cqe = slot.cqe.get();
        // CAST: A flag of C.
        wr.send_flags = sys::ib_send_flags_IB_SEND_SIGNALED as c_int;
        // SAFETY: Valid by the type invariant; the request points to live data only, which the
        // driver has copied when this returns.
        let ret = to_result(unsafe { sys::ib_post_send(self.raw.as_ptr(), wr) });
        self.posted(slot, ret)
    }

    /// Posts a receive without a buffer, which a SEND without data or an RDMA WRITE with immediate
    /// can use.
    ///
    /// # Context, errors
    ///
    /// As [`Qp::post_write_imm`].
    pub fn post_recv(&self, work: H::Recv) -> Result {
        let slot = self.table.take_slot(Work::Recv(work))?;
        let wr = recv_wr(slot);
        // SAFETY: Valid by the type invariant; the driver has copied the request when this returns.
        let ret = to_result(unsafe { sys::ib_post_recv(self.raw.as_ptr(), &wr) });
        self.posted(slot, ret)
    }

    /// Takes the slot back if the post has failed.
    fn posted(&self, slot: &Slot<H>, ret: Result) -> Result {
        if ret.is_err() {
            // SAFETY: The post failed, so the slot is still held here.
            unsafe { self.table.give_back(slot) };
        }
        ret
    }
}

/// Destroys the queue pair, in this order: no posts, no hardware, no completions, and then what is
/// left in the slots goes back to the handler as flushed.
///
/// # Context
///
/// Sleeps. Not from a completion of the same queue pair.
impl<H: Handler> Drop for Qp<H> {
    fn drop(&mut self) {
        self.table.close();
        self.table.state.lock().qp = None;
        // SAFETY: Valid by the type invariant, and nobody posts: `self` is borrowed exclusively and
        // completions see `qp` cleared.
        let ret = unsafe { sys::ib_destroy_qp(self.raw.as_ptr()) };
        if ret != 0 {
            // The hardware may still use it, and with it everything its requests point to.
            pr_err!("rdma: a queue pair could not be destroyed, its memory is lost: error {ret}\n");
            // That is the table, whose slots hold what the requests read, the completion queues
            // that point to it, and the protection domain.
            core::mem::forget(self.cqs.take());
            core::mem::forget(self.pd.clone());
            return;
        }
        drop(self.cqs.take());
        for slot in &self.table.slots {
            // SAFETY: No queue pair and no completion is left, so nobody else holds a slot.
            if let Some(work) = unsafe { self.table.release(slot) } {
                self.table.complete(work, &Wc::FLUSHED);
                self.table.settle();
            }
        }
        // SAFETY: Dropped nowhere else, and nobody points to it any more.
        unsafe { ManuallyDrop::drop(&mut self.table) };
    }
}
