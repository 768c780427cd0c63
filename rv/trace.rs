// SPDX-License-Identifier: GPL-2.0

//! Trace events, group `rv`: what the module does, for perf and trace-cmd.
//!
//! The events are defined in `rv/trace.h`, from which bindgen makes the declarations that the calls
//! here are checked against. While an event is off a call is one no-op instruction: what it is given
//! is turned into its C form only behind that.
//!
//! May be called in any context, with any lock held.

use crate::{
    device::Name,
    sconn::state::State,
    wire::Role, //
};
use kernel::{
    bindings::tracepoint,
    ffi::{
        self,
        c_char, //
    },
    jump_label::static_branch_unlikely,
    macros::paste,
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};
use rdma::qp::AsyncEvent;

#[expect(unreachable_pub, reason = "generated from a C header")]
#[allow(
    clippy::all,
    dead_code,
    improper_ctypes,
    non_camel_case_types,
    non_upper_case_globals,
    reason = "generated from a C header"
)]
mod generated {
    use super::{
        ffi,
        tracepoint, //
    };

    include!(concat!(env!("RV_GENERATED"), "/trace_generated.rs"));
}

/// What an event can be given.
pub(crate) trait Traced {
    /// Its form in C: a number, or a pointer to an array of known length, or, as `c_char`, to a
    /// string with NUL.
    type Raw;

    fn raw(self) -> Self::Raw;
}

/// Numbers go as they are.
macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Traced for $number {
            type Raw = Self;

            fn raw(self) -> Self {
                self
            }
        }
    )*};
}

numbers!(bool u8 u16 u32 u64 i32);

impl Traced for &CStr {
    type Raw = *const c_char;

    fn raw(self) -> *const c_char {
        self.as_char_ptr()
    }
}

/// Something that has a name which fits an event.
pub(crate) trait Named {
    fn name(&self) -> &'static CStr;
}

impl<T: Named> Traced for &T {
    type Raw = *const c_char;

    fn raw(self) -> *const c_char {
        self.name().as_char_ptr()
    }
}

impl<const N: usize> Traced for &[u8; N] {
    type Raw = *const [u8; N];

    fn raw(self) -> *const [u8; N] {
        self
    }
}

/// What an ioctl returns.
impl Traced for &Result<isize> {
    type Raw = i32;

    fn raw(self) -> i32 {
        match self {
            // CAST: It is 0 or 1.
            Ok(value) => *value as i32,
            Err(e) => e.to_errno(),
        }
    }
}

/// The ns since then, 0 if nobody has looked at the clock.
impl Traced for Option<Instant<Monotonic>> {
    type Raw = u64;

    fn raw(self) -> u64 {
        self.and_then(|then| u64::try_from(then.elapsed().as_nanos()).ok())
            .unwrap_or(0)
    }
}

/// Declares the calls. The C function of `x` is `rust_do_trace_rv_x`, its key is in
/// `__tracepoint_rv_x`.
macro_rules! events {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?);
    )*) => { paste! { $(
        $(#[$meta])*
        #[inline(always)]
        #[allow(clippy::too_many_arguments, reason = "an event has as many fields as it has")]
        pub(crate) fn $name($($arg: $type),*) {
            if [<$name _enabled>]() {
                // SAFETY: The function reads its arguments and keeps none. The pointers among them
                // are made from references, which last for this call. To arrays they have their
                // length in their type; a `c_char` comes from a string with NUL.
                unsafe { generated::[<rust_do_trace_rv_ $name>]($($arg.raw()),*) }
            }
        }

        /// Whether anybody wants the event.
        #[inline(always)]
        #[allow(dead_code, reason = "only few events take work to prepare")]
        pub(crate) fn [<$name _enabled>]() -> bool {
            // SAFETY: This is the key of an event that `trace.c` defines.
            unsafe { static_branch_unlikely!(generated::[<__tracepoint_rv_ $name>], tracepoint, key) }
        }
    )* } };
}

impl Named for Role {
    fn name(&self) -> &'static CStr {
        match self {
            Self::Server => c"server",
            Self::Client => c"client",
        }
    }
}

impl Named for State {
    fn name(&self) -> &'static CStr {
        match self {
            Self::Init => c"init",
            Self::Waiting => c"waiting",
            Self::Resolving => c"resolving",
            Self::Connecting => c"connecting",
            Self::Connected => c"connected",
            Self::Disconnecting => c"disconnecting",
            Self::Delay => c"delay",
            Self::Error => c"error",
        }
    }
}

impl Named for AsyncEvent {
    fn name(&self) -> &'static CStr {
        match self {
            Self::CommEst => c"comm_est",
            Self::PathMig => c"path_mig",
            Self::Fatal => c"fatal",
            Self::ReqErr => c"req_err",
            Self::AccessErr => c"access_err",
            Self::CqErr => c"cq_err",
            Self::Other(_) => c"other",
        }
    }
}

/// The errno of an outcome, 0 for success.
pub(crate) fn errno<T>(outcome: &Result<T>) -> i32 {
    match outcome {
        Ok(_) => 0,
        Err(e) => e.to_errno(),
    }
}

events! {
    /// An ioctl begins.
    fn ioctl_enter(cmd: u32);

    /// An ioctl ends; with the time it began.
    fn ioctl_exit(cmd: u32, ret: &Result<isize>, began: Option<Instant<Monotonic>>);

    /// A device can be used.
    fn device_add(device: &Name);

    /// A device is going.
    fn device_remove(device: &Name);

    /// An ATTACH has ended, with an index or an errno.
    fn attach(
        device: &Name,
        port: u32,
        gid_index: u16,
        uid: u32,
        num_conn: u8,
        q_depth: u32,
        cache_mib: u32,
        cq_entries: u32,
        index: i32,
        ret: i32,
    );

    /// A file is not attached any more.
    fn detach(device: &Name, port: u32, index: i32);

    /// A REG_MEM has found nothing and goes on to register.
    fn cache_miss(cache: u64, start: u64, len: u64, access: u32);

    /// A REG_MEM has found an entry.
    fn cache_hit(cache: u64, handle: u64, start: u64, len: u64, access: u32, refs: u32);

    /// A REG_MEM has made an entry.
    fn cache_insert(cache: u64, handle: u64, start: u64, len: u64, access: u32, refs: u32);

    /// The memory of an entry changes. Without references the entry goes now.
    fn cache_invalidate(cache: u64, handle: u64, start: u64, len: u64, access: u32, refs: u32);

    /// An entry goes, for the limit or since its memory has changed.
    fn cache_evict(cache: u64, handle: u64, start: u64, len: u64, access: u32, refs: u32);

    /// An entry goes at close; RDMA WRITEs under way may still hold it.
    fn cache_remove(cache: u64, handle: u64, start: u64, len: u64, access: u32, refs: u32);

    /// A connection to a node is made.
    fn conn_create(conn: u64, role: &Role, num_conn: u8, rem_addr: u32, dgid: &[u8; 16]);

    /// A single connection enters a state, after so long in the one before.
    fn conn_state(conn: u64, index: u8, old: &State, new: &State, spent_us: u64);

    /// The connection manager tells something; for a REJ or DREQ with its code and our reason.
    fn cm_event(conn: u64, index: u8, event: &CStr, state: &State, code: u32, reason: u32);

    /// A message was given to the connection manager, or not.
    fn cm_send(conn: u64, index: u8, message: &CStr, reason: u32, ret: i32);

    /// The device tells something about a queue pair.
    fn qp_event(conn: u64, index: u8, event: &AsyncEvent, number: u32);

    /// A POST has ended.
    fn post(conn: u64, index: u8, wr_id: u64, rem_addr: u64, len: u32, imm: u32, ret: i32);

    /// A write has completed.
    fn send_done(conn: u64, index: u8, wr_id: u64, len: u32, status: u32);

    /// A write of the peer has arrived, or a receive has failed.
    fn recv_done(conn: u64, index: u8, imm: u32, len: u32, status: u32);

    /// A heartbeat was sent, or could not be.
    fn heartbeat_post(conn: u64, index: u8, ret: i32);

    /// A heartbeat of the peer has arrived.
    fn heartbeat_recv(conn: u64, index: u8);

    /// An event is in the ring, at `slot`.
    fn ring_push(conn: u64, received: bool, len: u32, slot: u32, overflows: u64);

    /// An event is lost: the ring is full.
    fn ring_overflow(conn: u64, received: bool, len: u32, slot: u32, overflows: u64);
}
