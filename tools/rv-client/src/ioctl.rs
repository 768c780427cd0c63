// SPDX-License-Identifier: GPL-2.0

//! The ioctls: one typed [`Request`] each, and the functions that issue them.

use std::ffi::{
    c_int,
    c_ulong, //
};
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{
    AsRawFd,
    BorrowedFd, //
};

use crate::abi;
use crate::error::{
    Error,
    Result, //
};

/// What an ioctl gives.
///
/// # Safety
///
/// Every bit pattern is a value of the type.
pub(crate) unsafe trait Output: Copy {}

/// What an ioctl takes, if it names no memory.
///
/// # Safety
///
/// The kernel takes no field of it as the address of memory that it reads or writes during or
/// after the call.
pub(crate) unsafe trait Input: Copy {}

/// Implements a marker trait.
macro_rules! mark {
    ($marker:ident: $($name:ty),* $(,)?) => {
        $(
            // SAFETY: The struct consists of integers and byte arrays. The kernel-doc of the
            // header names no address in it but those of POST, which the module looks up in the
            // registrations it holds.
            unsafe impl $marker for $name {}
        )*
    };
}

mark! { Input:
    (),
    abi::rv_attach_params_in,
    abi::rv_capability_params,
    abi::rv_conn_connect_params_in,
    abi::rv_conn_connected_params_in,
    abi::rv_conn_create_params_in,
    abi::rv_conn_get_conn_count_params_in,
    abi::rv_conn_get_stats_params_in,
    abi::rv_dereg_params_in,
    abi::rv_post_write_params_in,
}

mark! { Output:
    (),
    abi::rv_attach_params_out,
    abi::rv_cache_stats_params_out,
    abi::rv_capability_params,
    abi::rv_conn_create_params_out,
    abi::rv_conn_get_conn_count_params_out,
    abi::rv_conn_get_stats_params_out,
    abi::rv_event_stats_params_out,
    abi::rv_mem_params_out,
    abi::rv_post_write_params_out,
}

/// The bytes of an ioctl: the output overwrites the start of the input.
#[repr(C)]
#[derive(Clone, Copy)]
union Argument<I: Copy, O: Copy> {
    input: I,
    output: O,
}

/// One ioctl, and the structs that go in and come out.
///
/// # Invariants
///
/// The size encoded in `number` is that of `Argument<I, O>`.
pub(crate) struct Request<I, O> {
    /// Name without the prefix, for messages.
    name: &'static str,
    number: u32,
    structs: PhantomData<(I, O)>,
}

impl<I: Copy, O: Copy> Request<I, O> {
    /// Makes a request; a constant does not compile where number and structs do not fit.
    const fn new(name: &'static str, number: u32) -> Self {
        // CAST: 14 bits.
        let size = ((number >> 16) & 0x3fff) as usize;
        assert!(size == size_of::<Argument<I, O>>());
        // INVARIANT: Just checked.
        Self {
            name,
            number,
            structs: PhantomData,
        }
    }
}

/// Agrees on the ABI revision.
pub(crate) const CAPABILITY: Request<abi::rv_capability_params, abi::rv_capability_params> =
    Request::new("CAPABILITY", abi::RVC_CAPABILITY);
/// Joins a job.
pub(crate) const ATTACH: Request<abi::rv_attach_params_in, abi::rv_attach_params_out> =
    Request::new("ATTACH", abi::RVC_ATTACH);
/// Registers memory.
pub(crate) const REG_MEM: Request<abi::rv_mem_params_in, abi::rv_mem_params_out> =
    Request::new("REG_MEM", abi::RVC_REG_MEM);
/// Drops a reference to a registration.
pub(crate) const DEREG_MEM: Request<abi::rv_dereg_params_in, ()> =
    Request::new("DEREG_MEM", abi::RVC_DEREG_MEM);
/// Reads the counters of the MR cache.
pub(crate) const GET_CACHE_STATS: Request<(), abi::rv_cache_stats_params_out> =
    Request::new("GET_CACHE_STATS", abi::RVC_GET_CACHE_STATS);
/// Reads the counters of the ring.
pub(crate) const GET_EVENT_STATS: Request<(), abi::rv_event_stats_params_out> =
    Request::new("GET_EVENT_STATS", abi::RVC_GET_EVENT_STATS);
/// Makes or shares the connection to a node.
pub(crate) const CONN_CREATE: Request<
    abi::rv_conn_create_params_in,
    abi::rv_conn_create_params_out,
> = Request::new("CONN_CREATE", abi::RVC_CONN_CREATE);
/// Starts connecting.
pub(crate) const CONN_CONNECT: Request<abi::rv_conn_connect_params_in, ()> =
    Request::new("CONN_CONNECT", abi::RVC_CONN_CONNECT);
/// Asks whether the connection is up.
pub(crate) const CONN_CONNECTED: Request<abi::rv_conn_connected_params_in, ()> =
    Request::new("CONN_CONNECTED", abi::RVC_CONN_CONNECTED);
/// Asks how often the connection came up.
pub(crate) const CONN_GET_CONN_COUNT: Request<
    abi::rv_conn_get_conn_count_params_in,
    abi::rv_conn_get_conn_count_params_out,
> = Request::new("CONN_GET_CONN_COUNT", abi::RVC_CONN_GET_CONN_COUNT);
/// Reads the counters of a connection.
pub(crate) const CONN_GET_STATS: Request<
    abi::rv_conn_get_stats_params_in,
    abi::rv_conn_get_stats_params_out,
> = Request::new("CONN_GET_STATS", abi::RVC_CONN_GET_STATS);
/// Writes into the peer's memory.
pub(crate) const POST_RDMA_WR_IMMED: Request<
    abi::rv_post_write_params_in,
    abi::rv_post_write_params_out,
> = Request::new("POST_RDMA_WR_IMMED", abi::RVC_POST_RDMA_WR_IMMED);
/// A number that no version of rv knows: the cost of an ioctl that does nothing.
pub(crate) const UNKNOWN: Request<(), ()> = Request::new("UNKNOWN", 0x1bf2);

/// Issues a request that names no memory.
pub(crate) fn call<I: Input, O: Output>(
    fd: BorrowedFd<'_>,
    request: &Request<I, O>,
    input: I,
) -> Result<O> {
    status(fd, request, input).map(|(_, output)| output)
}

/// As [`call()`], and gives what the ioctl returned: 0, or 1 from `CONN_CONNECTED`.
pub(crate) fn status<I: Input, O: Output>(
    fd: BorrowedFd<'_>,
    request: &Request<I, O>,
    input: I,
) -> Result<(c_int, O)> {
    // SAFETY: `Input` says that no memory is named.
    unsafe { call_with_memory(fd, request, input) }
}

/// Issues a request that may name memory.
///
/// # Safety
///
/// Memory that `input` names must be valid, for reads and writes by the kernel and by devices, as
/// long as the meaning of the request says.
pub(crate) unsafe fn call_with_memory<I: Copy, O: Output>(
    fd: BorrowedFd<'_>,
    request: &Request<I, O>,
    input: I,
) -> Result<(c_int, O)> {
    let mut argument = MaybeUninit::<Argument<I, O>>::zeroed();
    let pointer = argument.as_mut_ptr();
    // SAFETY: `pointer` is valid for writes of the whole union, whose fields start at offset 0.
    unsafe { pointer.cast::<I>().write(input) };
    // SAFETY: The kernel reads and writes as many bytes as the number says, which are those of
    // `argument` by the invariant of `Request`. The caller answers for other memory.
    let ret = unsafe { libc::ioctl(fd.as_raw_fd(), c_ulong::from(request.number), pointer) };
    if ret < 0 {
        return Err(Error::Ioctl {
            name: request.name,
            source: io::Error::last_os_error(),
        });
    }
    // SAFETY: All bytes were zeroed and then written by `input` or by the kernel, and any bytes
    // are a value of `O`.
    let output = unsafe { pointer.cast::<O>().read() };
    Ok((ret, output))
}
