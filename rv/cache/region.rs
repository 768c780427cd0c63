// SPDX-License-Identifier: GPL-2.0

//! A region in the kernel's protection domain, and where it goes when it is no longer needed.

use super::loopback::Loopback;
use kernel::{
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::mr::Mr;

/// A registered region in the kernel's protection domain.
///
/// Dropping one that was made by fast registration has its keys made invalid by the queue pair it
/// was made on, which takes its time; then it is used again. Any other one is deregistered.
pub(super) struct KernelRegion {
    mr: Option<Mr>,
    home: Option<Arc<Loopback>>,
    /// Not to be used again.
    discarded: AtomicFlag,
}

impl KernelRegion {
    fn new(mr: Mr, home: Option<Arc<Loopback>>) -> Self {
        Self {
            mr: Some(mr),
            home,
            discarded: AtomicFlag::new(false),
        }
    }

    /// One that was made by fast registration on `home`.
    pub(super) fn fast(mr: Mr, home: Arc<Loopback>) -> Self {
        Self::new(mr, Some(home))
    }

    /// The region. There is one until it is dropped.
    pub(super) fn mr(&self) -> Option<&Mr> {
        self.mr.as_ref()
    }

    /// Has it deregistered when it is dropped, without a delay.
    pub(super) fn discard(&self) {
        // ORDERING: Relaxed, as the last reference is dropped after this.
        self.discarded.store(true, Relaxed);
    }
}

impl From<Mr> for KernelRegion {
    fn from(mr: Mr) -> Self {
        Self::new(mr, None)
    }
}

impl Drop for KernelRegion {
    fn drop(&mut self) {
        if let (Some(mr), Some(home)) = (self.mr.take(), &self.home) {
            // ORDERING: Relaxed, as above.
            if !self.discarded.load(Relaxed) {
                home.recycle(mr);
            }
        }
    }
}
