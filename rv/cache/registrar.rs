// SPDX-License-Identifier: GPL-2.0

//! Registers memory of the calling process in the kernel's protection domain, in one of two ways:
//! see [`rdma::mr`].
//!
//! Threads register at the same time. The mutex protects only which queue pair is the present one,
//! and is not held while pages are pinned or a registration is waited for.

use super::{
    loopback::{
        Failure,
        Loopback, //
    },
    policy::Policy,
    pool::Pool,
    range::Range,
    region::KernelRegion, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use rdma::{
    mr::{
        Access,
        FastMr,
        FreeMr,
        Mr, //
    },
    pd::Pd,
    umem::Umem, //
};

/// How often a registration is tried that fails because of another one.
const TRIES: usize = 3;

/// What registers memory in the kernel's protection domain.
#[pin_data]
pub(super) struct Registrar {
    pd: Arc<Pd>,
    port: u32,
    gid_index: u16,
    pool: Option<Arc<Pool>>,
    #[pin]
    loopback: Mutex<Present>,
}

/// The present queue pair for fast registration.
enum Present {
    /// There will be none any more.
    Closed,
    /// The next fast registration makes one.
    No,
    Yes(Arc<Loopback>),
}

impl Registrar {
    /// `pool` keeps regions for fast registration ready, if there is one.
    pub(super) fn new(
        pd: Arc<Pd>,
        port: u32,
        gid_index: u16,
        pool: Option<Arc<Pool>>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            pd,
            port,
            gid_index,
            pool,
            loopback <- new_mutex!(Present::No),
        })
    }

    /// Registers `range` of the calling process's memory, known to the device under `iova`.
    ///
    /// # Context
    ///
    /// Sleeps. In a task of the process that owns the memory.
    ///
    /// # Errors
    ///
    /// Those of [`Mr::direct`] or of [`Umem::pin`] and [`FastMr::new`]. Of a fast registration also
    /// `ENXIO` after [`Registrar::close`]; `EFAULT` if the device refuses it, `ETIMEDOUT` if the
    /// device does not answer, `EIO` if others do not stop to fail.
    pub(super) fn register(
        &self,
        range: &Range,
        iova: u64,
        access: Access,
    ) -> Result<KernelRegion> {
        let direct = match Policy::current() {
            Policy::Auto => Mr::direct_allowed(&self.pd),
            Policy::User => true,
            Policy::Fast => false,
        };
        if direct {
            Mr::direct(&self.pd, range.start(), range.len(), iova, access).map(KernelRegion::from)
        } else {
            self.register_fast(range, iova, access)
        }
    }

    fn register_fast(&self, range: &Range, iova: u64, access: Access) -> Result<KernelRegion> {
        for _ in 0..TRIES {
            let umem = Umem::pin(self.pd.device(), range.start(), range.len(), access)?;
            let mr = self.list(umem, range.pages(), iova)?;
            let loopback = self.present()?;
            match loopback.register(mr, access) {
                Ok(mr) => return Ok(KernelRegion::fast(mr, loopback)),
                Err(Failure::Refused(e)) => return Err(e),
                Err(Failure::Broken(e)) => {
                    self.retire(&loopback);
                    return Err(e);
                }
                Err(Failure::Flushed) => self.retire(&loopback),
            }
        }
        Err(EIO)
    }

    /// Lists pages in a region of the pool, or in one of their own.
    fn list(&self, umem: Umem, pages: u64, iova: u64) -> Result<FastMr> {
        match self.pool.as_ref().and_then(|pool| Pool::take(pool, pages)) {
            Some(mr) => FreeMr::list(mr, umem, iova),
            None => FastMr::new(&self.pd, umem, iova),
        }
    }

    /// The present queue pair, made if there is none.
    fn present(&self) -> Result<Arc<Loopback>> {
        let mut present = self.loopback.lock();
        match &*present {
            Present::Closed => Err(ENXIO),
            Present::Yes(loopback) => Ok(loopback.clone()),
            Present::No => {
                let pool = self.pool.clone();
                let loopback = Loopback::new(&self.pd, self.port, self.gid_index, pool)?;
                let loopback = Arc::new(loopback, GFP_KERNEL)?;
                *present = Present::Yes(loopback.clone());
                Ok(loopback)
            }
        }
    }

    /// Uses `broken` no more. It goes with the last registration that still uses it.
    fn retire(&self, broken: &Arc<Loopback>) {
        let mut present = self.loopback.lock();
        if matches!(&*present, Present::Yes(loopback) if Arc::ptr_eq(loopback, broken)) {
            // The caller has a reference, so this does not drop it.
            *present = Present::No;
        }
    }

    /// Keeps no regions ready any more: those that come back are deregistered.
    pub(super) fn close_pool(&self) {
        if let Some(pool) = &self.pool {
            pool.close();
        }
    }

    /// Makes no queue pairs any more, and gives up the present one.
    ///
    /// # Context
    ///
    /// Sleeps, for a bounded time.
    pub(super) fn close(&self) {
        let last = core::mem::replace(&mut *self.loopback.lock(), Present::Closed);
        drop(last);
    }
}
