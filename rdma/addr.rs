// SPDX-License-Identifier: GPL-2.0

//! Address resolution for RoCE: from a pair of GIDs to the MAC address of the next hop.

use crate::{
    gid::{
        Gid,
        GidAttr, //
    },
    path::Route, //
};
use kernel::{
    bindings,
    error::{
        code,
        to_result, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    time::Msecs,
    types::Opaque, //
};
use rdma_sys as sys;

/// Who wants to know the outcome of a [`Resolution`].
pub trait Resolve: Send + Sync + Sized + 'static {
    /// The resolution has ended.
    ///
    /// # Context
    ///
    /// A work queue; may sleep, but must not drop the [`Resolution`] it is called for.
    ///
    /// # Errors
    ///
    /// `outcome` is `ETIMEDOUT` if nobody answered for the peer's address, or the reason why there
    /// is no route to it.
    fn resolved(self: ArcBorrow<'_, Self>, outcome: Result<Route>);
}

/// The parts of a resolution that the core has pointers to.
#[pin_data]
struct Inner<R: Resolve> {
    #[pin]
    addr: Opaque<sys::rdma_dev_addr>,
    /// What `addr` points to.
    _sgid: GidAttr,
    client: Arc<R>,
}

/// A resolution under way or done. Dropping it cancels it.
///
/// # Invariants
///
/// The core uses `inner.addr` at most until `rdma_addr_cancel()` has returned.
pub struct Resolution<R: Resolve> {
    inner: Pin<KBox<Inner<R>>>,
}

// SAFETY: A resolution may be cancelled from any task, and holds only values that may be sent.
unsafe impl<R: Resolve> Send for Resolution<R> {}
// SAFETY: Shared references allow nothing.
unsafe impl<R: Resolve> Sync for Resolution<R> {}

impl<R: Resolve> Resolution<R> {
    /// Starts to resolve the way from `sgid` to `dgid`; `client` is told the outcome, which may be
    /// before this returns.
    ///
    /// # Context
    ///
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if one GID holds an IPv4 address and the other does not; else the error that ends
    /// the resolution at once, for instance `ENETUNREACH`. `client` hears nothing then.
    pub fn start(sgid: GidAttr, dgid: Gid, timeout: Msecs, client: Arc<R>) -> Result<Self> {
        let mut from = address(sgid.gid());
        let to = address(dgid);
        if from.sin6_family != to.sin6_family {
            return Err(EINVAL);
        }
        let mut addr: sys::rdma_dev_addr = pin_init::zeroed();
        // SAFETY: The initial network namespace always exists.
        addr.net = unsafe { sys::init_net() };
        addr.sgid_attr = sgid.as_raw();
        let inner = KBox::pin_init(
            pin_init!(Inner {
                addr <- Opaque::ffi_init(|slot: *mut sys::rdma_dev_addr| {
                    // SAFETY: `slot` is memory for the address.
                    unsafe { slot.write(addr) }
                }),
                _sgid: sgid,
                client,
            }),
            GFP_KERNEL,
        )?;
        let context: *const Inner<R> = &*inner;
        // SAFETY: Both addresses are of a family the core knows, and are copied. `inner` stays
        // where it is until `Drop` has cancelled the resolution.
        to_result(unsafe {
            sys::rdma_resolve_ip(
                core::ptr::from_mut(&mut from).cast(),
                core::ptr::from_ref(&to).cast(),
                inner.addr.get(),
                timeout as c_ulong,
                Some(Self::done),
                true,
                context.cast_mut().cast(),
            )
        })?;
        // INVARIANT: `Drop` cancels.
        Ok(Self { inner })
    }

    /// # Safety
    ///
    /// To be called by the core as the callback of the resolution that `context` belongs to.
    unsafe extern "C" fn done(
        status: c_int,
        _src: *mut bindings::sockaddr,
        addr: *mut sys::rdma_dev_addr,
        context: *mut c_void,
    ) {
        // SAFETY: `context` was given at the start and stays until the resolution is cancelled,
        // which waits for this function; `addr` is its field.
        let (inner, addr) = unsafe { (&*context.cast::<Inner<R>>(), &*addr) };
        let outcome = to_result(status).and_then(|()| route(addr));
        inner.client.as_arc_borrow().resolved(outcome);
    }
}

/// The route in a resolved address.
fn route(addr: &sys::rdma_dev_addr) -> Result<Route> {
    let mut dmac = [0; 6];
    dmac.copy_from_slice(addr.dst_dev_addr.get(..6).ok_or(code::EINVAL)?);
    Ok(Route {
        dmac,
        hop_limit: u8::try_from(addr.hoplimit).unwrap_or(u8::MAX),
    })
}

/// The IP address in a GID, as IPv4 if it is a mapped one.
fn address(gid: Gid) -> bindings::sockaddr_in6 {
    let mut out: bindings::sockaddr_in6 = pin_init::zeroed();
    // SAFETY: `out` has room for either kind of address.
    unsafe { sys::rdma_gid2ip(&mut out, &gid.to_c()) };
    out
}

impl<R: Resolve> Drop for Resolution<R> {
    fn drop(&mut self) {
        // SAFETY: A resolution was started with this address. After this call the core does not
        // use it any more, and the callback has returned.
        unsafe { sys::rdma_addr_cancel(self.inner.addr.get()) };
    }
}
