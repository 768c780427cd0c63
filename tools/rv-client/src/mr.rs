// SPDX-License-Identifier: GPL-2.0

//! Registered memory.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::abi;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::ioctl;

/// What a registration allows, besides reading by our own writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Nothing else: for memory that is only sent from.
    Source,
    /// Being written by the peer.
    Target,
}

impl Access {
    /// Returns the bits of the ABI, with the one for the kernel's protection domain.
    fn bits(self) -> u32 {
        let verbs = match self {
            Access::Source => 0,
            Access::Target => abi::RVC_ACCESS_LOCAL_WRITE | abi::RVC_ACCESS_REMOTE_WRITE,
        };
        verbs | abi::RVC_ACCESS_KERNEL
    }
}

/// A reference to a registration; dropping it leaves the registration in the kernel's cache.
///
/// It does not keep the [`Buffer`] alive, and need not: the kernel holds the pages themselves, and
/// forgets a registration whose addresses are unmapped.
#[derive(Debug)]
pub struct Mr {
    /// `None` once the reference is given back.
    file: Option<Arc<File>>,
    handle: u64,
    address: u64,
    length: u64,
    access: u32,
    iova: u64,
    rkey: u32,
}

impl Mr {
    /// Registers a range of a buffer.
    pub(crate) fn register(
        file: Arc<File>,
        buffer: &Buffer,
        range: Range<usize>,
        access: Access,
    ) -> Result<Self> {
        let (_, len) = buffer.span(&range)?;
        // CAST: `usize` has at most 64 bits.
        let (address, length) = (buffer.address(range.start), len as u64);
        let input = abi::rv_mem_params_in {
            addr: address,
            length,
            access: access.bits(),
            ..Default::default()
        };
        // SAFETY: `udata` is null. Devices access the range through the pages that the kernel
        // pins, also after it is unmapped; as long as it is mapped it is a `Buffer`, which allows
        // for changes at any time. Registration covers whole pages, and so does a `Buffer`.
        let (_, out) = unsafe { ioctl::call_with_memory(file.as_fd(), &ioctl::REG_MEM, input) }?;
        Ok(Self {
            file: Some(file),
            handle: out.mr_handle,
            address,
            length,
            access: access.bits(),
            iova: out.iova,
            rkey: out.rkey,
        })
    }

    /// Returns the address by which the peer names the start of the range.
    pub fn iova(&self) -> u64 {
        self.iova
    }

    /// Returns the key that lets the peer write.
    pub fn rkey(&self) -> u32 {
        self.rkey
    }

    /// Returns the length of the range.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Tells whether the range has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Names the registration in a write.
    pub(crate) fn describe(&self, write: &mut abi::rv_post_write_params_in) {
        write.loc_mr_handle = self.handle;
        write.loc_mr_addr = self.address;
        write.loc_mr_length = self.length;
        write.loc_mr_access = self.access;
        write.loc_addr = self.address;
    }

    /// Drops the reference and says how that went, which `drop` cannot.
    ///
    /// # Errors
    ///
    /// The errno of `DEREG_MEM`.
    pub fn deregister(mut self) -> Result<()> {
        self.release()
    }

    /// Gives the reference back, once.
    fn release(&mut self) -> Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let input = abi::rv_dereg_params_in {
            mr_handle: self.handle,
            addr: self.address,
            length: self.length,
            access: self.access,
            ..Default::default()
        };
        ioctl::call(file.as_fd(), &ioctl::DEREG_MEM, input)
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        // After the device was removed there is nothing to give back.
        let _ = self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_bits_as_psm3() {
        assert_eq!(Access::Source.bits(), 0x8000_0000);
        assert_eq!(Access::Target.bits(), 0x8000_0003);
    }
}
