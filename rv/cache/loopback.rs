// SPDX-License-Identifier: GPL-2.0

//! A queue pair connected to itself, on which fast registrations and invalidations are posted.
//!
//! No packet ever leaves it: registering a region is work for the queue, not for the wire.
//!
//! A registration is waited for. An invalidation is not: the request owns the region with its
//! pinned pages, and the completion unpins them and puts the region back in the pool. However a
//! request ends, its region is invalidated or deregistered before its pages are unpinned.

use super::pool::{
    Permit,
    Pool,
    MAX_INVALIDATIONS, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Msecs, //
};
use rdma::{
    event::Event,
    mr::{
        Access,
        FastMr,
        Mr, //
    },
    pd::Pd,
    qp::{
        AsyncEvent,
        Attr,
        Handler,
        Init,
        PollContext,
        Qp,
        QpState,
        Repost, //
    },
    wc::{
        Status,
        Wc, //
    }, //
};

/// Registrations that can be under way at the same time, beside invalidations.
const MAX_REGISTRATIONS: u32 = 400;

/// How long a registration may take: some ten thousand times what it takes.
const TIMEOUT: Msecs = 3000;

const MIN_RNR_TIMER: u8 = 14;
const ACK_TIMEOUT: u8 = 14;

/// What waits for a registration.
#[pin_data]
struct Request {
    /// The region, once the queue pair has given it back, and how the registration has ended.
    #[pin]
    outcome: Mutex<Option<(FastMr, Status)>>,
    #[pin]
    done: Event,
}

/// A request under way: the region belongs to the queue pair.
enum Posted {
    /// A registration, and who waits for it.
    Register(FastMr, Arc<Request>),
    /// An invalidation.
    Invalidate(FastMr, Permit),
}

impl AsRef<FastMr> for Posted {
    fn as_ref(&self) -> &FastMr {
        match self {
            Self::Register(mr, _) | Self::Invalidate(mr, _) => mr,
        }
    }
}

/// Receives completions.
struct Completions;

impl Handler for Completions {
    type Send = Posted;
    type Recv = ();

    fn send_done(&self, posted: Posted, wc: &Wc) {
        match posted {
            Posted::Register(mr, request) => {
                *request.outcome.lock() = Some((mr, wc.status));
                request.done.happen();
            }
            Posted::Invalidate(mr, permit) if wc.is_ok() => {
                // SAFETY: This is the completion of the LOCAL_INV of this region, a success. Its
                // keys were made valid before it had been given to `recycle`.
                permit.put(unsafe { mr.invalidated() });
            }
            // Deregistered.
            Posted::Invalidate(mr, _permit) => drop(mr),
        }
    }

    fn recv_done(&self, (): (), _wc: &Wc) -> Repost<()> {
        Repost::No
    }

    fn event(&self, _event: AsyncEvent) {}
}

/// Why a registration has failed.
pub(super) enum Failure {
    /// Because of another one: it is worth another try, on another queue pair.
    Flushed,
    /// The queue pair is of no more use.
    Broken(Error),
    /// It could not be posted.
    Refused(Error),
}

/// A queue pair connected to itself.
pub(super) struct Loopback {
    qp: Qp<Completions>,
    /// Where invalidated regions go.
    pool: Option<Arc<Pool>>,
}

impl Loopback {
    /// Makes a queue pair and connects it to itself through `port`, on RoCE with the GID at
    /// `gid_index`.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is no such GID, `ENOMEM`, or the driver's error.
    pub(super) fn new(
        pd: &Arc<Pd>,
        port: u32,
        gid_index: u16,
        pool: Option<Arc<Pool>>,
    ) -> Result<Self> {
        let depth = MAX_REGISTRATIONS + MAX_INVALIDATIONS;
        let init = Init {
            max_send_wr: depth.min(pd.device().max_qp_wr()),
            max_recv_wr: 1,
            // The last reference to a region may be dropped there.
            poll: PollContext::Workqueue,
        };
        let handler = Arc::new(Completions, GFP_KERNEL)?;
        let this = Self {
            qp: Qp::new(pd, &init, handler)?,
            pool,
        };
        this.connect(pd, port, gid_index)?;
        Ok(this)
    }

    fn connect(&self, pd: &Pd, port: u32, gid_index: u16) -> Result {
        let device = pd.device();
        self.qp.modify(
            Attr::to_state(QpState::Init)
                .pkey_index(0)
                .port(port)
                .access(Access::LOCAL_WRITE),
        )?;
        self.qp.modify(
            Attr::to_state(QpState::Rtr)
                .address_self(device, port, gid_index)?
                .path_mtu(device.query_port(port)?.active_mtu)
                .dest_qp(self.qp.number())
                .rq_psn(0)
                .responder_resources(0)
                .min_rnr_timer(MIN_RNR_TIMER),
        )?;
        self.qp.modify(
            Attr::to_state(QpState::Rts)
                .sq_psn(0)
                .initiator_depth(0)
                .retry(ACK_TIMEOUT, 0, 0),
        )
    }

    /// Registers a region.
    ///
    /// If this fails while the queue pair may still use the region, that goes when the queue pair
    /// has given it back.
    ///
    /// # Context
    ///
    /// Sleeps, for a bounded time.
    pub(super) fn register(&self, mr: FastMr, access: Access) -> Result<Mr, Failure> {
        let request = Arc::pin_init(
            pin_init!(Request {
                outcome <- new_mutex!(None),
                done <- Event::new(),
            }),
            GFP_KERNEL,
        )
        .map_err(Failure::Refused)?;
        let posted = Posted::Register(mr, request.clone());
        self.qp
            .post_reg_mr(posted, access)
            .map_err(Failure::Refused)?;
        if !request.done.wait_timeout(TIMEOUT) {
            pr_warn!("a fast registration was not completed in time\n");
            self.qp.error();
            return Err(Failure::Broken(ETIMEDOUT));
        }
        let outcome = request.outcome.lock().take();
        match outcome {
            Some((mr, Status::SUCCESS)) => Ok(mr.registered()),
            Some((_, Status::FLUSHED)) => Err(Failure::Flushed),
            _ => Err(Failure::Broken(EFAULT)),
        }
    }

    /// Has a region made invalid and put in the pool. If it cannot be used again it is deregistered,
    /// before this returns.
    ///
    /// # Context
    ///
    /// Sleeps, but waits for no completion.
    pub(super) fn recycle(&self, mr: Mr) {
        let permit = self.pool.as_ref().and_then(|pool| Pool::admit(pool, &mr));
        if let (Some(permit), Ok(mr)) = (permit, mr.into_fast()) {
            // If it cannot be posted the region is dropped, and so deregistered.
            let _ = self.qp.post_local_inv(Posted::Invalidate(mr, permit));
        }
    }
}
