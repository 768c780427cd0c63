// SPDX-License-Identifier: GPL-2.0

//! The protection domains that memory is registered in: the kernel's, or one that the process made
//! through uverbs.

use super::{
    range::{
        device_address,
        Range, //
    },
    region::KernelRegion,
    registrar::Registrar, //
};
use kernel::prelude::*;
use rdma::{
    mr::{
        Access,
        Mr, //
    },
    uverbs::{
        UserMr,
        UserPd,
        UserPdId, //
    }, //
};

/// How a process names a protection domain of its own, and what it tells the driver.
pub(crate) struct UserDomain {
    /// The descriptor of the uverbs file.
    pub(crate) fd: u32,
    /// The handle of the protection domain in that file.
    pub(crate) pd_handle: u32,
    /// Where the data for the driver are.
    pub(crate) data: u64,
    /// How many bytes they have.
    pub(crate) data_len: usize,
}

/// Which protection domain a region is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    /// The kernel's.
    Kernel,
    /// The process's own. Means one as long as there is a region in it, see [`UserPdId`].
    User(UserPdId),
}

impl Key {
    /// The address of the first byte of a region from `start`, in terms of the device.
    ///
    /// Keys of a process's own protection domain are used by that process alone, which knows its
    /// memory by no other address.
    pub(super) fn iova(self, handle: u64, start: u64) -> u64 {
        match self {
            Self::Kernel => device_address(handle, start),
            Self::User(_) => start,
        }
    }
}

/// The protection domain of one REG_MEM.
pub(super) enum Domain<'a> {
    Kernel(&'a Registrar),
    User(UserPd, &'a UserDomain),
}

impl Domain<'_> {
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Kernel(_) => Key::Kernel,
            Self::User(pd, _) => Key::User(pd.id()),
        }
    }

    /// Registers `range` of the calling process's memory, known to the device under `iova`.
    ///
    /// # Context
    ///
    /// Sleeps. In a task of the process that owns the memory.
    ///
    /// # Errors
    ///
    /// Those of [`Registrar::register`] or of [`UserPd::register`].
    pub(super) fn register(&self, range: &Range, iova: u64, access: Access) -> Result<Region> {
        match self {
            Self::Kernel(registrar) => registrar.register(range, iova, access).map(Region::Kernel),
            Self::User(pd, user) => pd
                .register(range.start(), range.len(), access, user.data, user.data_len)
                .map(Region::User),
        }
    }
}

/// A registered region.
pub(super) enum Region {
    Kernel(KernelRegion),
    User(UserMr),
}

impl Region {
    pub(super) fn lkey(&self) -> u32 {
        match self {
            Self::Kernel(region) => region.mr().map_or(0, Mr::lkey),
            Self::User(mr) => mr.lkey(),
        }
    }

    pub(super) fn rkey(&self) -> u32 {
        match self {
            Self::Kernel(region) => region.mr().map_or(0, Mr::rkey),
            Self::User(mr) => mr.rkey(),
        }
    }

    /// The region as the kernel's queue pairs can use it: not if it is in another protection
    /// domain.
    pub(super) fn of_kernel(&self) -> Option<&Mr> {
        match self {
            Self::Kernel(region) => region.mr(),
            Self::User(_) => None,
        }
    }

    /// Has it deregistered when it is dropped, and not used again.
    pub(super) fn discard(&self) {
        match self {
            Self::Kernel(region) => region.discard(),
            // It is not used again anyway.
            Self::User(_) => {}
        }
    }
}
