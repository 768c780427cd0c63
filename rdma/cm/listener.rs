// SPDX-License-Identifier: GPL-2.0

//! The passive side: listeners, and the requests that come to them.

use super::{
    Handler,
    Id,
    IdRef, //
};
use crate::{
    device::Device,
    path::Record, //
};
use core::{
    marker::PhantomData,
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

/// Who hears of requests to connect.
pub trait Listen: Send + Sync + Sized + 'static {
    /// A peer asks to connect. A request that is not accepted is refused.
    ///
    /// # Context
    ///
    /// The connection manager's work queue: may sleep. Must not drop the [`Listener`].
    fn request(self: ArcBorrow<'_, Self>, request: &mut Request<'_>);
}

/// A request to connect, as received.
///
/// # Invariants
///
/// `id` is a new identifier that nobody owns yet unless `accepted`; `param` and `private` belong to
/// its REQ.
pub struct Request<'a> {
    id: IdRef,
    device: &'a Device,
    param: &'a sys::ib_cm_req_event_param,
    private: &'a [u8],
    accepted: bool,
}

impl Request<'_> {
    /// The identifier, to send messages on before accepting.
    pub fn id(&self) -> &IdRef {
        &self.id
    }

    /// The private data.
    pub fn private(&self) -> &[u8] {
        self.private
    }

    /// The port that the REQ has come to.
    pub fn port(&self) -> u32 {
        u32::from(self.param.port)
    }

    /// The primary path as seen from here: its destination is the peer.
    pub fn path(&self) -> Record {
        // SAFETY: Every REQ has a primary path, which lives as long as the request.
        Record::from_c(unsafe { &*self.param.primary_path })
    }

    /// Whether the REQ names an alternate path.
    pub fn has_alternate_path(&self) -> bool {
        !self.param.alternate_path.is_null()
    }

    /// Whether the peer's queue pair is a reliable connection.
    pub fn is_rc(&self) -> bool {
        self.param.qp_type == sys::ib_qp_type_IB_QPT_RC
    }

    /// Whether the peer's queue pair has a shared receive queue.
    pub fn has_srq(&self) -> bool {
        // SAFETY: The parameters live as long as the request.
        unsafe { sys::cm_req_has_srq(self.param) }
    }

    /// How often the peer resends when we have no receive; 7 is endless.
    pub fn rnr_retry_count(&self) -> u8 {
        // SAFETY: The parameters live as long as the request.
        unsafe { sys::cm_req_rnr_retry_count(self.param) }
    }

    /// Takes the request over: from now on `handler` hears of what happens to the connection.
    ///
    /// # Errors
    ///
    /// `EALREADY` if the request was accepted before.
    pub fn accept<H: Handler>(&mut self, handler: Arc<H>) -> Result<Id<H>> {
        if self.accepted {
            return Err(EALREADY);
        }
        self.accepted = true;
        // SAFETY: The identifier is new, and the connection manager delivers nothing for it before
        // the handler of its REQ, in which this runs, has returned. `Id::drop` gives up the
        // context.
        unsafe {
            let raw = self.id.raw.as_ptr();
            (*raw).cm_handler = Some(Id::<H>::on_event);
            (*raw).context = Arc::into_raw(handler).cast_mut().cast();
        }
        // INVARIANT: Not accepted before, so nobody else owns it.
        Ok(Id {
            id: IdRef { raw: self.id.raw },
            _device: self.device.clone(),
            _handler: PhantomData,
        })
    }
}

/// What a listener's context points to.
struct Listening<L: Listen> {
    device: Device,
    client: Arc<L>,
}

/// A service that peers can connect to.
///
/// # Invariants
///
/// `raw` is ours to destroy; its context points to `context`.
pub struct Listener<L: Listen> {
    raw: NonNull<sys::ib_cm_id>,
    _context: KBox<Listening<L>>,
}

// SAFETY: The connection manager allows its calls from any task; the client is `Send`.
unsafe impl<L: Listen> Send for Listener<L> {}
// SAFETY: Shared references allow nothing.
unsafe impl<L: Listen> Sync for Listener<L> {}

impl<L: Listen> Listener<L> {
    /// Listens on `service_id` of all ports of `device`.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY` if somebody listens there already, `ENOMEM`.
    pub fn new(device: &Device, service_id: u64, client: Arc<L>) -> Result<Self> {
        let context = KBox::new(
            Listening {
                device: device.clone(),
                client,
            },
            GFP_KERNEL,
        )?;
        let pointer: *const Listening<L> = &*context;
        // SAFETY: The device is registered, see `Device`; the context lives as long as the
        // listener, which `Drop` destroys first.
        let raw = from_err_ptr(unsafe {
            sys::ib_create_cm_id(
                device.as_raw(),
                Some(Self::on_event),
                pointer.cast_mut().cast(),
            )
        })?;
        // INVARIANT: Created above.
        let listener = Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _context: context,
        };
        // SAFETY: Valid as created above.
        to_result(unsafe { sys::ib_cm_listen(listener.raw.as_ptr(), service_id.to_be()) })?;
        Ok(listener)
    }

    /// # Safety
    ///
    /// To be called by the connection manager for a listener, or for a new identifier that has
    /// inherited a listener's context.
    unsafe extern "C" fn on_event(
        raw: *mut sys::ib_cm_id,
        event: *const sys::ib_cm_event,
    ) -> c_int {
        // SAFETY: The connection manager passes valid pointers.
        let (Some(raw), event) = (NonNull::new(raw), unsafe { &*event }) else {
            return 0;
        };
        if event.event != sys::ib_cm_event_type_IB_CM_REQ_RECEIVED {
            return 0;
        }
        // SAFETY: The context is that of the listener, which outlives its handler.
        let listening = unsafe { &*(*raw.as_ptr()).context.cast::<Listening<L>>() };
        let mut request = Request {
            id: IdRef { raw },
            device: &listening.device,
            // SAFETY: The member that belongs to this event.
            param: unsafe { &event.param.req_rcvd },
            // SAFETY: A REQ comes with a private area of this size. CAST: It is 92.
            private: unsafe {
                core::slice::from_raw_parts(
                    event.private_data.cast_const().cast(),
                    sys::ib_cm_data_size_IB_CM_REQ_PRIVATE_DATA_SIZE as usize,
                )
            },
            accepted: false,
        };
        listening.client.as_arc_borrow().request(&mut request);
        if request.accepted {
            0
        } else {
            // Anything but 0 lets the connection manager destroy the new identifier.
            ECONNREFUSED.to_errno()
        }
    }
}

impl<L: Listen> Drop for Listener<L> {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant; waits until no handler runs.
        unsafe { sys::ib_destroy_cm_id(self.raw.as_ptr()) };
    }
}
