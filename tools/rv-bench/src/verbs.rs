// SPDX-License-Identifier: GPL-2.0

//! Registration by libibverbs, for comparison.

use std::ffi::{
    c_int,
    CStr, //
};
use std::io;
use std::ptr::NonNull;

use rv_client::Buffer;

/// What bindgen makes of `infiniband/verbs.h`.
mod ffi {
    #![allow(
        missing_docs,
        non_camel_case_types,
        non_upper_case_globals,
        dead_code,
        unreachable_pub,
        clippy::all,
        clippy::ptr_as_ptr,
        clippy::ref_as_ptr,
        clippy::undocumented_unsafe_blocks,
        reason = "generated"
    )]
    include!(concat!(env!("OUT_DIR"), "/verbs.rs"));
}

/// A protection domain of an RDMA device.
///
/// # Invariants
///
/// `context` is an open device, and `pd` a protection domain on it; both belong to this value.
#[derive(Debug)]
pub(crate) struct Pd {
    context: NonNull<ffi::ibv_context>,
    pd: NonNull<ffi::ibv_pd>,
}

/// A registration.
///
/// # Invariants
///
/// `mr` is a registration that belongs to this value.
#[derive(Debug)]
pub(crate) struct Mr<'a> {
    mr: NonNull<ffi::ibv_mr>,
    _pd: &'a Pd,
}

impl Pd {
    /// Opens a device by name and makes a protection domain.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let context = open_device(name)?;
        // SAFETY: The device is open.
        let pd = NonNull::new(unsafe { ffi::ibv_alloc_pd(context.as_ptr()) });
        match pd {
            // INVARIANT: Just made.
            Some(pd) => Ok(Self { context, pd }),
            None => {
                let error = io::Error::last_os_error();
                // SAFETY: It was opened above and is used by nobody.
                unsafe { ffi::ibv_close_device(context.as_ptr()) };
                Err(error)
            }
        }
    }

    /// Registers a buffer for remote writing.
    pub(crate) fn register<'a>(&'a self, buffer: &'a Buffer) -> io::Result<Mr<'a>> {
        let access = ffi::IBV_ACCESS_LOCAL_WRITE | ffi::IBV_ACCESS_REMOTE_WRITE;
        // CAST: Small constants.
        let access = access as c_int;
        let (start, length) = (buffer.as_ptr().cast(), buffer.len());
        // SAFETY: The domain is there by the type invariant, and the range is a buffer that lives
        // longer than the registration.
        let mr = unsafe { ffi::ibv_reg_mr(self.pd.as_ptr(), start, length, access) };
        match NonNull::new(mr) {
            // INVARIANT: Just made.
            Some(mr) => Ok(Mr { mr, _pd: self }),
            None => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: Both belong to us, and all registrations borrow from us, so there is none.
        unsafe { ffi::ibv_dealloc_pd(self.pd.as_ptr()) };
        // SAFETY: As above.
        unsafe { ffi::ibv_close_device(self.context.as_ptr()) };
    }
}

impl Drop for Mr<'_> {
    fn drop(&mut self) {
        // SAFETY: It belongs to us.
        unsafe { ffi::ibv_dereg_mr(self.mr.as_ptr()) };
    }
}

/// Opens a device by name.
fn open_device(name: &str) -> io::Result<NonNull<ffi::ibv_context>> {
    let mut count: c_int = 0;
    // SAFETY: `count` is valid for writes.
    let list = unsafe { ffi::ibv_get_device_list(&mut count) };
    let list = NonNull::new(list).ok_or_else(io::Error::last_os_error)?;
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: The list has `count` entries and lives until it is freed below.
    let devices = unsafe { std::slice::from_raw_parts(list.as_ptr(), count) };
    let device = devices.iter().find(|device| {
        // SAFETY: The list holds valid devices.
        let text = unsafe { ffi::ibv_get_device_name(**device) };
        // SAFETY: Names are strings that live as long as their device.
        !text.is_null() && unsafe { CStr::from_ptr(text) }.to_bytes() == name.as_bytes()
    });
    let context = match device {
        // SAFETY: A valid device; the list still exists.
        Some(device) => NonNull::new(unsafe { ffi::ibv_open_device(*device) })
            .ok_or_else(io::Error::last_os_error),
        None => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("libibverbs knows no device {name}; is its provider installed?"),
        )),
    };
    // SAFETY: An open device does not need the list any more, and nobody else does.
    unsafe { ffi::ibv_free_device_list(list.as_ptr()) };
    context
}
