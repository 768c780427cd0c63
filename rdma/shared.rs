// SPDX-License-Identifier: GPL-2.0

//! Memory that the kernel and one user process both read and write.
//!
//! User space may change any byte at any time. So nothing here gives a reference into the memory:
//! it is read and written by value, and whatever is read is to be checked like any other input.

use core::ptr::NonNull;
use kernel::{
    bindings,
    error::to_result,
    mm::virt::VmaNew,
    page::{
        page_align,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    }, //
};
use rdma_sys as sys;

/// Zeroed, virtually contiguous memory that can be mapped into a process.
///
/// # Invariants
///
/// `addr` points to `len` bytes from `vmalloc_user()`; `len` is a multiple of the page size.
pub struct SharedMemory {
    addr: NonNull<u8>,
    len: usize,
}

// SAFETY: The memory may be accessed from any task.
unsafe impl Send for SharedMemory {}
// SAFETY: Every access is by volatile or atomic operations.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Allocates at least `len` bytes, all zero.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a length that cannot be rounded to pages, `ENOMEM`.
    pub fn new(len: usize) -> Result<Self> {
        let len = page_align(len).ok_or(EINVAL)?;
        // SAFETY: Allocation has no precondition.
        let addr = unsafe { sys::vmalloc_user(len) };
        // INVARIANT: Allocated above; rounded above.
        Ok(Self {
            addr: NonNull::new(addr.cast()).ok_or(ENOMEM)?,
            len,
        })
    }

    /// The length in bytes, a multiple of the page size.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no memory at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of a `T` at `offset`, if it lies inside and is aligned.
    fn at<T>(&self, offset: usize) -> Result<*mut T> {
        let end = offset.checked_add(size_of::<T>()).ok_or(EINVAL)?;
        if end > self.len || offset % align_of::<T>() != 0 {
            return Err(EINVAL);
        }
        Ok(self.addr.as_ptr().wrapping_add(offset).cast())
    }

    /// Loads the number at `offset`; what is read afterwards was written before the user stored it.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an offset outside of the memory, or not aligned.
    pub fn load_acquire(&self, offset: usize) -> Result<u32> {
        let at = self.at::<u32>(offset)?;
        // SAFETY: Inside and aligned; accessed by atomic operations only.
        Ok(unsafe { Atomic::from_ptr(at) }.load(Acquire))
    }

    /// Stores a number at `offset`; what was written before is visible to a user who loads it.
    ///
    /// # Errors
    ///
    /// As [`SharedMemory::load_acquire`].
    pub fn store_release(&self, offset: usize, value: u32) -> Result {
        let at = self.at::<u32>(offset)?;
        // SAFETY: Inside and aligned; accessed by atomic operations only.
        unsafe { Atomic::from_ptr(at) }.store(value, Release);
        Ok(())
    }

    /// Stores a 64-bit number at `offset`, in one piece.
    ///
    /// # Errors
    ///
    /// As [`SharedMemory::load_acquire`].
    pub fn store_u64(&self, offset: usize, value: u64) -> Result {
        let at = self.at::<u64>(offset)?;
        // SAFETY: Inside and aligned; accessed by atomic operations only.
        unsafe { Atomic::from_ptr(at) }.store(value, Relaxed);
        Ok(())
    }

    /// Copies `bytes` to `offset`, in no particular order.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a range that is not inside of the memory.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result {
        let end = offset.checked_add(bytes.len()).ok_or(EINVAL)?;
        if end > self.len {
            return Err(EINVAL);
        }
        let to = self.addr.as_ptr().wrapping_add(offset);
        // SAFETY: Inside of the memory. User space may write there at the same time, which can
        // only spoil what it reads: the kernel never reads it back.
        unsafe { bindings::memcpy(to.cast(), bytes.as_ptr().cast(), bytes.len()) };
        Ok(())
    }

    /// Maps all of the memory at the start of `vma`; the rest of a longer one stays without pages.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a VMA that is shorter than the memory or does not start at offset 0 of the
    /// file, else why a page could not be mapped.
    pub fn map(&self, vma: &VmaNew) -> Result {
        // SAFETY: The VMA is being set up by the caller, so nobody changes it.
        let offset = unsafe { (*vma.as_ptr()).vm_pgoff };
        if vma.end() - vma.start() < self.len || offset != 0 {
            return Err(EINVAL);
        }
        vma.set_dontexpand();
        vma.set_dontdump();
        for offset in (0..self.len).step_by(PAGE_SIZE) {
            // SAFETY: The address is that of a page of the vmalloc area. The VMA is being set up
            // and covers the address it gets.
            to_result(unsafe {
                let page = bindings::vmalloc_to_page(self.addr.as_ptr().add(offset).cast());
                bindings::vm_insert_page(vma.as_ptr(), vma.start() + offset, page)
            })?;
        }
        Ok(())
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant. Pages that are still mapped have references of their
        // own.
        unsafe { sys::vfree(self.addr.as_ptr().cast()) };
    }
}
