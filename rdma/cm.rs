// SPDX-License-Identifier: GPL-2.0

//! Communication identifiers of the IB connection manager (IBTA chapter 12).
//!
//! The active side makes an [`Id`] and sends a REQ; the passive side has a [`Listener`], which gets
//! a [`Request`] for each REQ and turns it into an [`Id`] or refuses it. From then on both sides
//! hear of every message through [`Handler::event`]. The connection manager calls handlers from
//! its work queue, for one identifier one at a time.
//!
//! Destroying an identifier waits for its handler. So an [`Id`] or a [`Listener`] must not be
//! dropped in its own handler, nor under a lock that the handler takes.

mod listener;

pub use listener::{
    Listen,
    Listener,
    Request, //
};

use crate::{
    device::Device,
    gid::GidAttr,
    path::{
        Record,
        Route, //
    },
    qp::{
        Attr,
        QpState, //
    }, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};
use rdma_sys as sys;

/// Reasons of a REJ that users give or look at (IBTA table 114).
pub mod reject {
    use rdma_sys as sys;

    /// No resources available.
    pub const NO_RESOURCES: u32 = sys::ib_cm_rej_reason_IB_CM_REJ_NO_RESOURCES;
    /// Timed out.
    pub const TIMEOUT: u32 = sys::ib_cm_rej_reason_IB_CM_REJ_TIMEOUT;
    /// Nobody listens on the service ID.
    pub const INVALID_SERVICE_ID: u32 = sys::ib_cm_rej_reason_IB_CM_REJ_INVALID_SERVICE_ID;
    /// The connection is stale.
    pub const STALE_CONN: u32 = sys::ib_cm_rej_reason_IB_CM_REJ_STALE_CONN;
    /// The consumer says why in the private data.
    pub const CONSUMER_DEFINED: u32 = sys::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED;
}

/// What has happened to a connection.
pub enum Event<'a> {
    /// The REQ was not answered.
    ReqError,
    /// The REP was not answered.
    RepError,
    /// The DREQ was not answered.
    DreqError,
    /// The peer has accepted.
    Rep(Rep<'a>),
    /// The peer is ready to use the connection.
    Rtu,
    /// Data has come before the RTU.
    Established,
    /// The peer disconnects; the private data.
    Dreq(&'a [u8]),
    /// The peer has confirmed our disconnect.
    Drep,
    /// The time in which late packets may come is over.
    TimewaitExit,
    /// The peer needs more time.
    Mra,
    /// The peer has refused.
    Rej {
        /// The reason, see [`reject`].
        reason: u32,
        /// The private data.
        private: &'a [u8],
    },
    /// A LAP was not answered.
    LapError,
    /// The peer asks to load an alternate path.
    Lap,
    /// The peer answers a LAP.
    Apr,
    /// Something else, by its number in `enum ib_cm_event_type`.
    Other(u32),
}

/// A REP as received.
pub struct Rep<'a> {
    /// The private data.
    pub private: &'a [u8],
    /// Whether the peer's queue pair has a shared receive queue.
    pub srq: bool,
}

/// Who hears of what happens to a connection.
pub trait Handler: Send + Sync + Sized + 'static {
    /// Something has happened to the connection `id`.
    ///
    /// # Context
    ///
    /// The connection manager's work queue: may sleep. Must not drop the [`Id`].
    fn event(self: ArcBorrow<'_, Self>, id: &IdRef, event: Event<'_>);
}

/// A communication identifier that somebody else owns.
///
/// # Invariants
///
/// `raw` stays valid as long as the reference that this is reached by.
#[repr(transparent)]
pub struct IdRef {
    raw: NonNull<sys::ib_cm_id>,
}

/// What a REQ says, apart from the path.
pub struct ReqParam<'a> {
    /// The path; all attributes of the connection derive from it.
    pub path: &'a Record,
    /// How to reach the peer, on RoCE.
    pub route: Option<Route>,
    /// The GID that the path starts at.
    pub sgid: &'a GidAttr,
    /// The service that is asked for, in host order.
    pub service_id: u64,
    /// The number of our queue pair.
    pub qp_num: u32,
    /// The first PSN we send (24 bits).
    pub starting_psn: u32,
    /// Private data, at most 92 bytes; the rest is sent as zeros.
    pub private: &'a [u8],
    /// How often to resend without an ACK; 7 is endless on some devices.
    pub retry_count: u8,
    /// How often the peer resends when we have no receive; 7 is endless.
    pub rnr_retry_count: u8,
    /// How often the connection manager repeats a message.
    pub max_cm_retries: u8,
    /// Our longest time to answer: 4.096 µs · 2^n.
    pub local_cm_response_timeout: u8,
    /// The peer's longest time to answer.
    pub remote_cm_response_timeout: u8,
}

/// What a REP says.
pub struct RepParam<'a> {
    /// The number of our queue pair.
    pub qp_num: u32,
    /// The first PSN we send (24 bits).
    pub starting_psn: u32,
    /// Private data, at most 196 bytes; the rest is sent as zeros.
    pub private: &'a [u8],
    /// How often the peer resends when we have no receive; 7 is endless.
    pub rnr_retry_count: u8,
}

impl IdRef {
    /// Returns whether both are the same identifier.
    pub fn is(&self, other: &Self) -> bool {
        self.raw == other.raw
    }

    /// Fetches the attributes that move a queue pair of this connection to `state`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the connection has not come that far.
    pub fn qp_attr(&self, state: QpState) -> Result<Attr> {
        let mut attr = Attr::to_state(state);
        // SAFETY: Valid by the type invariant.
        to_result(unsafe {
            sys::ib_cm_init_qp_attr(self.raw.as_ptr(), &mut attr.attr, &mut attr.mask)
        })?;
        Ok(attr)
    }

    /// Sends a REQ.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the path is not usable or the private data too long; `ENOMEM`; `ENOENT` if the
    /// port does not have the path's P_Key.
    pub fn send_req(&self, param: &ReqParam<'_>) -> Result {
        let mut path = param.path.to_c(param.sgid, param.route);
        path.service_id = param.service_id.to_be();
        let mut req: sys::ib_cm_req_param = pin_init::zeroed();
        req.primary_path = &mut path;
        req.ppath_sgid_attr = param.sgid.as_raw();
        req.service_id = param.service_id.to_be();
        req.qp_num = param.qp_num;
        req.qp_type = sys::ib_qp_type_IB_QPT_RC;
        req.starting_psn = param.starting_psn & 0xff_ffff;
        req.private_data = param.private.as_ptr().cast();
        req.private_data_len = u8::try_from(param.private.len())?;
        req.flow_control = 1;
        req.retry_count = param.retry_count;
        req.rnr_retry_count = param.rnr_retry_count;
        req.max_cm_retries = param.max_cm_retries;
        req.local_cm_response_timeout = param.local_cm_response_timeout;
        req.remote_cm_response_timeout = param.remote_cm_response_timeout;
        // SAFETY: Valid by the type invariant; what the parameters point to lives until the call
        // has returned, by which time the message is built.
        to_result(unsafe { sys::ib_send_cm_req(self.raw.as_ptr(), &mut req) })
    }

    /// Sends a REP.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no REQ is waiting for it, or the private data is too long; `ENOMEM`.
    pub fn send_rep(&self, param: &RepParam<'_>) -> Result {
        let mut rep: sys::ib_cm_rep_param = pin_init::zeroed();
        rep.qp_num = param.qp_num;
        rep.starting_psn = param.starting_psn & 0xff_ffff;
        rep.private_data = param.private.as_ptr().cast();
        rep.private_data_len = u8::try_from(param.private.len())?;
        rep.flow_control = 1;
        rep.rnr_retry_count = param.rnr_retry_count;
        // SAFETY: As in `send_req`.
        to_result(unsafe { sys::ib_send_cm_rep(self.raw.as_ptr(), &mut rep) })
    }

    /// Sends an RTU.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no REP is waiting for it; `ENOMEM`.
    pub fn send_rtu(&self) -> Result {
        // SAFETY: Valid by the type invariant; no private data is given.
        to_result(unsafe { sys::ib_send_cm_rtu(self.raw.as_ptr(), core::ptr::null(), 0) })
    }

    /// Sends a REJ with at most 148 bytes of private data.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is nothing to refuse, or the private data is too long; `ENOMEM`.
    pub fn send_rej(&self, reason: u32, private: &[u8]) -> Result {
        let len = u8::try_from(private.len())?;
        // SAFETY: Valid by the type invariant; the private data is copied.
        to_result(unsafe {
            sys::ib_send_cm_rej(
                self.raw.as_ptr(),
                reason,
                core::ptr::null_mut(),
                0,
                private.as_ptr().cast(),
                len,
            )
        })
    }

    /// Sends a DREQ with at most 220 bytes of private data.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no connection to end, or the private data is too long; `ENOMEM`.
    pub fn send_dreq(&self, private: &[u8]) -> Result {
        let len = u8::try_from(private.len())?;
        // SAFETY: Valid by the type invariant; the private data is copied.
        to_result(unsafe { sys::ib_send_cm_dreq(self.raw.as_ptr(), private.as_ptr().cast(), len) })
    }

    /// Sends a DREP.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no DREQ is waiting for it; `ENOMEM`.
    pub fn send_drep(&self) -> Result {
        // SAFETY: Valid by the type invariant; no private data is given.
        to_result(unsafe { sys::ib_send_cm_drep(self.raw.as_ptr(), core::ptr::null(), 0) })
    }

    /// Tells the connection manager that data has come before the RTU.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the connection is in another state; `ENOMEM`.
    pub fn notify_established(&self) -> Result {
        // SAFETY: Valid by the type invariant.
        to_result(unsafe {
            sys::ib_cm_notify(self.raw.as_ptr(), sys::ib_event_type_IB_EVENT_COMM_EST)
        })
    }

    /// Tells the connection manager that the queue pair's path has migrated.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the connection is in another state or has no alternate path.
    pub fn notify_migrated(&self) -> Result {
        // SAFETY: Valid by the type invariant.
        to_result(unsafe {
            sys::ib_cm_notify(self.raw.as_ptr(), sys::ib_event_type_IB_EVENT_PATH_MIG)
        })
    }
}

/// A communication identifier. Dropping it ends the connection: the connection manager sends what
/// the state asks for, a DREQ or a REJ without private data.
///
/// # Invariants
///
/// `id` is ours to destroy; its context is a reference to the handler.
pub struct Id<H: Handler> {
    id: IdRef,
    _device: Device,
    _handler: PhantomData<Arc<H>>,
}

// SAFETY: The connection manager allows its calls from any task; the handler is `Send`.
unsafe impl<H: Handler> Send for Id<H> {}
// SAFETY: The connection manager serialises calls by its own locks; the handler is `Sync`.
unsafe impl<H: Handler> Sync for Id<H> {}

impl<H: Handler> Id<H> {
    /// Makes an identifier for the active side.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(device: &Device, handler: Arc<H>) -> Result<Self> {
        let context = Arc::into_raw(handler);
        // SAFETY: The device is registered, see `Device`; the context is given up in `Drop`.
        let raw = from_err_ptr(unsafe {
            sys::ib_create_cm_id(
                device.as_raw(),
                Some(Self::on_event),
                context.cast_mut().cast(),
            )
        })
        .and_then(|raw| NonNull::new(raw).ok_or(ENOMEM))
        .inspect_err(|_| {
            // SAFETY: Nobody has taken the reference.
            drop(unsafe { Arc::from_raw(context) });
        })?;
        // INVARIANT: Created above, with the handler as its context.
        Ok(Self {
            id: IdRef { raw },
            _device: device.clone(),
            _handler: PhantomData,
        })
    }

    /// # Safety
    ///
    /// To be called by the connection manager for an identifier whose context is an `H`.
    unsafe extern "C" fn on_event(
        raw: *mut sys::ib_cm_id,
        event: *const sys::ib_cm_event,
    ) -> c_int {
        let Some(raw) = NonNull::new(raw) else {
            return 0;
        };
        let id = IdRef { raw };
        // SAFETY: The context is a reference to the handler, which `Drop` gives up only after the
        // connection manager has called for the last time.
        let handler = unsafe { ArcBorrow::<'_, H>::from_raw((*raw.as_ptr()).context.cast()) };
        // SAFETY: The connection manager passes a valid event.
        handler.event(&id, unsafe { to_event(&*event) });
        0
    }
}

impl<H: Handler> Deref for Id<H> {
    type Target = IdRef;

    fn deref(&self) -> &IdRef {
        &self.id
    }
}

impl<H: Handler> Drop for Id<H> {
    fn drop(&mut self) {
        let raw = self.id.raw.as_ptr();
        // SAFETY: Ours by the type invariant. The context is read before the identifier goes, and
        // given up after the last call of the handler.
        unsafe {
            let context = (*raw).context;
            sys::ib_destroy_cm_id(raw);
            drop(Arc::<H>::from_raw(context.cast()));
        }
    }
}

/// Turns the connection manager's event into ours.
///
/// # Safety
///
/// `event` must be as the connection manager passes it: the union's member and the size of the
/// private data follow from the type.
unsafe fn to_event(event: &sys::ib_cm_event) -> Event<'_> {
    let private = |size: sys::ib_cm_data_size| -> &[u8] {
        let data: *const u8 = event.private_data.cast_const().cast();
        if data.is_null() {
            return &[];
        }
        // SAFETY: The connection manager passes a private area of the size that belongs to the
        // message. CAST: It is at most 224.
        unsafe { core::slice::from_raw_parts(data, size as usize) }
    };
    match event.event {
        sys::ib_cm_event_type_IB_CM_REQ_ERROR => Event::ReqError,
        sys::ib_cm_event_type_IB_CM_REP_ERROR => Event::RepError,
        sys::ib_cm_event_type_IB_CM_DREQ_ERROR => Event::DreqError,
        sys::ib_cm_event_type_IB_CM_REP_RECEIVED => Event::Rep(Rep {
            private: private(sys::ib_cm_data_size_IB_CM_REP_PRIVATE_DATA_SIZE),
            // SAFETY: The member that belongs to this event.
            srq: unsafe { sys::cm_rep_has_srq(&event.param.rep_rcvd) },
        }),
        sys::ib_cm_event_type_IB_CM_RTU_RECEIVED => Event::Rtu,
        sys::ib_cm_event_type_IB_CM_USER_ESTABLISHED => Event::Established,
        sys::ib_cm_event_type_IB_CM_DREQ_RECEIVED => {
            Event::Dreq(private(sys::ib_cm_data_size_IB_CM_DREQ_PRIVATE_DATA_SIZE))
        }
        sys::ib_cm_event_type_IB_CM_DREP_RECEIVED => Event::Drep,
        sys::ib_cm_event_type_IB_CM_TIMEWAIT_EXIT => Event::TimewaitExit,
        sys::ib_cm_event_type_IB_CM_MRA_RECEIVED => Event::Mra,
        sys::ib_cm_event_type_IB_CM_REJ_RECEIVED => Event::Rej {
            // SAFETY: The member that belongs to this event.
            reason: unsafe { event.param.rej_rcvd.reason },
            private: private(sys::ib_cm_data_size_IB_CM_REJ_PRIVATE_DATA_SIZE),
        },
        sys::ib_cm_event_type_IB_CM_LAP_ERROR => Event::LapError,
        sys::ib_cm_event_type_IB_CM_LAP_RECEIVED => Event::Lap,
        sys::ib_cm_event_type_IB_CM_APR_RECEIVED => Event::Apr,
        other => Event::Other(other),
    }
}
