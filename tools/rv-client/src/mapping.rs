// SPDX-License-Identifier: GPL-2.0

//! A range of mapped memory that unmaps itself.

use std::ffi::c_int;
use std::io;
use std::os::fd::{
    AsRawFd,
    BorrowedFd, //
};
use std::ptr::{
    self,
    NonNull, //
};

use crate::error::{
    Error,
    Result, //
};

/// A readable and writable mapping.
///
/// # Invariants
///
/// `start` is the start of a mapping of at least `len` bytes, with read and write permission, that
/// belongs to this value alone and lives as long as it.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: A mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` only gives addresses away; who uses them answers for races.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of fresh, zeroed and present memory.
    pub(crate) fn anonymous(what: &'static str, len: usize) -> Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::map(what, len, flags, -1)
    }

    /// Maps `len` bytes of `fd` from offset 0, shared and locked.
    pub(crate) fn shared(what: &'static str, len: usize, fd: BorrowedFd<'_>) -> Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE | libc::MAP_LOCKED;
        Self::map(what, len, flags, fd.as_raw_fd())
    }

    fn map(what: &'static str, len: usize, flags: c_int, fd: c_int) -> Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: Without MAP_FIXED a new mapping replaces none that is in use.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd, 0) };
        match NonNull::new(start.cast::<u8>()) {
            // INVARIANT: mmap() just gave us this range.
            Some(address) if start != libc::MAP_FAILED => Ok(Self {
                start: address,
                len,
            }),
            _ => Err(Error::Map {
                what,
                len,
                source: io::Error::last_os_error(),
            }),
        }
    }

    /// Returns the first address.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the range is ours, and nobody borrows from it any more.
        // It cannot fail with these arguments.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
