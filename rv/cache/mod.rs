// SPDX-License-Identifier: GPL-2.0

//! The cache of memory registrations of one ATTACH.
//!
//! A REG_MEM for a range that was registered before costs a look-up instead of a registration, and
//! DEREG_MEM costs nothing: the entry stays, idle, until its room is needed or its memory changes.
//!
//! # One registration
//!
//! [`MrCache::register`] rounds the range to pages and asks the store for an entry that covers it.
//! If there is none it makes one, which from then on is told of changes of its memory
//! ([`rdma::notifier`]); lets the [`registrar`] pin the pages and register them, with no lock held;
//! and puts the entry in the store, unless its memory has changed meanwhile: then it starts again
//! with the new pages, for some times.
//!
//! # One change of memory
//!
//! The memory management calls the notifier of every entry in the range that is unmapped, moved,
//! copied or otherwise changed. An idle entry leaves the store at once and is deregistered by the
//! work queue. One in use is marked: no REG_MEM gets it any more, those who have it may go on, and
//! it goes with its last reference. A REG_MEM for the same range makes a new entry beside it, for
//! the pages that are there now.
//!
//! # Who owns what
//!
//! The store owns its entries, and every entry holds the store: a cycle, which
//! [`MrCache::close`] breaks. An RDMA WRITE under way owns its entry by a [`MrRef`]. An entry owns
//! its region, which owns its protection domain, which owns a reference to the device: so when
//! cache and writes are gone nothing is left on the device, and the device waits for that.
//!
//! # Locks
//!
//! In this order, the first outermost:
//!
//! 1. locks of the memory management (`mmap_lock`, page tables, and what reclaim holds), under
//!    which the notifier is called;
//! 2. the store's spin lock, see `store.rs`. Nothing is taken under it.
//!
//! The registrar's mutex is held while a queue pair is made. Nothing of the above is taken under
//! it, and it is not taken under any of it.

use crate::{
    module_parameters,
    trace, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    static_assert,
    sync::{
        aref::ARef,
        Arc, //
    },
    task::Task, //
};
use rdma::{
    device::Device,
    mm::MmRef,
    mr::{
        Access,
        Mr, //
    },
    pd::Pd,
    uverbs::UverbsFile,
    workqueue::WorkqueueRef, //
};

mod domain;
mod entry;
mod eviction;
mod loopback;
mod lru;
pub(crate) mod policy;
mod pool;
mod range;
mod region;
mod registrar;
mod sizes;
mod stats;
mod store;

use domain::Domain;
pub(crate) use domain::UserDomain;
use entry::{
    Entry,
    EntryRef, //
};
pub(crate) use eviction::{
    Evicted,
    Selection, //
};
use pool::Pool;
use range::Range;
use registrar::Registrar;
use sizes::Sizes;
pub(crate) use stats::Stats;
use store::{
    Insertion,
    Store, //
};

// CAST: A page has few bytes.
static_assert!(range::PAGE == PAGE_SIZE as u64);

/// The access flag that asks for a region in the kernel's protection domain
/// (`IBV_ACCESS_KERNEL`).
pub(crate) const ACCESS_KERNEL: u32 = 1 << 31;

/// Access flags that the RDMA core would ignore, since they are set aside for hints. Whoever sets
/// one, for instance the one that says the address is a GPU's, asks for what is not there.
const ACCESS_UNKNOWN_HINTS: u32 = 0x3fe0_0000;

/// How often a registration is tried while the memory keeps changing.
const TRIES: usize = 16;

/// What a user learns of a registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Registered {
    /// Names the entry, for DEREG_MEM. Never 0.
    pub(crate) handle: u64,
    /// The address of the user's first byte, in terms of the device. Never 0.
    pub(crate) iova: u64,
    /// The local key.
    pub(crate) lkey: u32,
    /// The remote key.
    pub(crate) rkey: u32,
}

/// The cache of memory registrations of one ATTACH.
pub(crate) struct MrCache {
    /// The process that attached: its first thread, and its memory.
    process: ARef<Task>,
    mm: MmRef,
    store: Arc<Store>,
    device: Device,
    /// There if memory can be registered in the kernel's protection domain.
    registrar: Option<Arc<Registrar>>,
}

/// The protection domain of the kernel, and where on its device queue pairs can be had.
pub(crate) struct KernelDomain<'a> {
    pub(crate) pd: &'a Arc<Pd>,
    pub(crate) port: u32,
    /// On RoCE the index of a GID of the port.
    pub(crate) gid_index: u16,
}

impl MrCache {
    /// Creates an empty cache of `limit_mib` MiB for the calling process.
    ///
    /// Regions are made on `device`: in protection domains of the process and, if it is given, in
    /// the kernel's, `kernel`, for which regions of `fr_pages` pages are kept ready. `queue` is used
    /// to make those, and to deregister what has become useless.
    ///
    /// # Context
    ///
    /// Sleeps; takes the `mmap_lock`.
    ///
    /// # Errors
    ///
    /// `EINVAL` in a task without memory; `EINTR` for a pending signal; `ENOMEM`.
    pub(crate) fn new(
        device: &Device,
        kernel: Option<KernelDomain<'_>>,
        limit_mib: u32,
        fr_pages: u32,
        queue: WorkqueueRef,
    ) -> Result<Arc<Self>> {
        let mm = MmRef::current().ok_or(EINVAL)?;
        mm.prepare_notifiers()?;
        let registrar = match kernel {
            Some(KernelDomain {
                pd,
                port,
                gid_index,
            }) => {
                let pool = Self::pool(pd, fr_pages, &queue);
                let registrar = Registrar::new(pd.clone(), port, gid_index, pool);
                Some(Arc::pin_init(registrar, GFP_KERNEL)?)
            }
            None => None,
        };
        let cache = Self {
            process: ARef::from(current!().group_leader()),
            mm,
            store: Store::new(limit_mib, queue)?,
            device: device.clone(),
            registrar,
        };
        Ok(Arc::new(cache, GFP_KERNEL)?)
    }

    /// The pool of regions, if the parameters and the device want one. A cache does without if it
    /// cannot be made.
    fn pool(pd: &Arc<Pd>, fr_pages: u32, queue: &WorkqueueRef) -> Option<Arc<Pool>> {
        let sizes = Sizes::new(
            *module_parameters::fr_batch_size.value_ref(),
            *module_parameters::fr_pool_wm_lo.value_ref(),
            fr_pages,
            pd.device().max_fast_reg_pages(),
        )?;
        Pool::new(pd.clone(), sizes, queue.clone()).ok()
    }

    /// Checks that the caller is a thread of the process that attached, and that its memory is
    /// still the same, which it is not after `exec()`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if not.
    pub(crate) fn check_task(&self) -> Result {
        let same_process = core::ptr::eq(current!().group_leader(), &*self.process);
        if same_process && self.mm.is_current() {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Registers the pages of the `len` bytes at `addr` of the calling process, or finds them
    /// registered, and adds a reference of the user.
    ///
    /// `access` is the user's. With [`ACCESS_KERNEL`] the region is in the kernel's protection
    /// domain, else in the one that `user` names, and known to the device under `addr`.
    ///
    /// # Context
    ///
    /// Sleeps. In a task for which [`MrCache::check_task`] succeeds.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the range wraps or is longer than the device allows; the kernel's protection
    ///   domain cannot be had, or [`UverbsFile::pd`] fails; other access flags are not valid;
    /// - `ENXIO`: the cache is closed;
    /// - `EFAULT`: the range is empty, or its memory cannot be pinned for this access; or the
    ///   process's descriptor is not one of uverbs;
    /// - `EPERM`, `ENOMEM`: the process may not pin so much, there is no memory, or the cache is
    ///   full of entries in use;
    /// - `EINTR`: a signal has ended the pinning;
    /// - `EBUSY`: the memory keeps changing;
    /// - `EOVERFLOW`: the entry has too many references;
    /// - else the driver's error.
    pub(crate) fn register(
        &self,
        addr: u64,
        len: u64,
        access: u32,
        user: &UserDomain,
    ) -> Result<Registered> {
        let range = Range::rounded(addr, len).ok_or(EINVAL)?;
        if access & ACCESS_UNKNOWN_HINTS != 0 {
            return Err(EINVAL);
        }
        let domain = self.domain(&range, access, user)?;
        if let Some(found) = self.store.hit(&range, addr, access, domain.key())? {
            return Ok(found);
        }
        trace::cache_miss(self.store.id(), range.start(), range.len(), access);
        self.register_new(range, addr, access, &domain)
    }

    /// Where to register `range` for `access`.
    fn domain<'a>(
        &'a self,
        range: &Range,
        access: u32,
        user: &'a UserDomain,
    ) -> Result<Domain<'a>> {
        if access & ACCESS_KERNEL != 0 {
            let registrar = self.registrar.as_ref().ok_or(EINVAL)?;
            if self.is_too_long(range) {
                return Err(EINVAL);
            }
            Ok(Domain::Kernel(registrar))
        } else {
            let pd = UverbsFile::from_fd(user.fd)
                .and_then(|file| file.pd(&self.device, user.pd_handle))
                .inspect_err(|_| self.store.count_failed())?;
            Ok(Domain::User(pd, user))
        }
    }

    fn is_too_long(&self, range: &Range) -> bool {
        let limit = self.device.max_fast_reg_pages();
        limit != 0 && range.pages() > u64::from(limit)
    }

    fn register_new(
        &self,
        range: Range,
        addr: u64,
        access: u32,
        domain: &Domain<'_>,
    ) -> Result<Registered> {
        let rdma_access = Access::from_user(&self.device, access & !ACCESS_KERNEL)?;
        let entry = Entry::new(&self.store, &self.mm, range, access, domain.key())
            .inspect_err(|_| self.store.count_failed())?;
        for _ in 0..TRIES {
            let seen = entry.read_begin();
            let region = domain
                .register(&range, entry.iova, rdma_access)
                .inspect_err(|_| self.store.count_failed())?;
            match self.store.insert(&entry, addr, region, seen)? {
                Insertion::Done(registered) => return Ok(registered),
                Insertion::Outdated => {}
            }
        }
        Err(EBUSY)
    }

    /// Drops a reference of the user. What is left without references stays in the cache, idle.
    ///
    /// The range may be any part of the one registered.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such reference, `ENXIO` if the cache is closed.
    pub(crate) fn deregister(&self, handle: u64, addr: u64, len: u64, access: u32) -> Result {
        let range = Range::new(addr, len).ok_or(EINVAL)?;
        self.store.release_of_user(&range, access, handle)
    }

    /// Removes idle entries, and deregisters them before it returns.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a range that goes beyond the last address; `ENOENT` if there was no entry to
    /// remove, unless all of a range were asked for; `ENXIO` if the cache is closed.
    pub(crate) fn evict(&self, selection: Selection) -> Result<Evicted> {
        self.store.evict(selection)
    }

    /// Finds the registration for `access` in the kernel's protection domain that the `len` bytes at
    /// `addr` are part of, for an RDMA WRITE that reads them.
    ///
    /// # Context
    ///
    /// Does not sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is none, `ENXIO` if the cache is closed, `EOVERFLOW` if the entry has too
    /// many references.
    pub(crate) fn lookup(&self, addr: u64, len: u64, access: u32) -> Result<MrRef> {
        let range = Range::new(addr, len).ok_or(EINVAL)?;
        let entry = self.store.acquire_for_write(&range, access)?;
        Ok(MrRef(Some(entry)))
    }

    /// The process whose memory this is, by its first thread.
    pub(crate) fn process(&self) -> &Task {
        &self.process
    }

    /// The name of the cache in traces and tables.
    pub(crate) fn id(&self) -> u64 {
        self.store.id()
    }

    /// The counters.
    pub(crate) fn stats(&self) -> Stats {
        self.store.stats()
    }

    /// Ends the cache: all entries are removed and nothing can be registered any more. Entries that
    /// RDMA WRITEs still use go with the last of them.
    ///
    /// May be called while other tasks use the cache, and more than once. A registration that is
    /// under way fails; what it has made is gone when it returns.
    ///
    /// # Context
    ///
    /// Sleeps, for a time that depends on the number of entries only.
    pub(crate) fn close(&self) {
        if let Some(registrar) = &self.registrar {
            registrar.close_pool();
        }
        self.store.close();
        if let Some(registrar) = &self.registrar {
            registrar.close();
        }
    }
}

impl Drop for MrCache {
    fn drop(&mut self) {
        self.close();
    }
}

/// A reference to an entry, held by an RDMA WRITE under way.
///
/// Dropping it may deregister the entry's memory, which sleeps, but waits for no completion.
///
/// # Invariants
///
/// There is an entry until the reference is dropped; it has a region in the kernel's protection
/// domain, and counts this reference.
pub(crate) struct MrRef(Option<EntryRef>);

impl MrRef {
    fn entry(&self) -> &EntryRef {
        // PANIC: There is one by the type invariant.
        self.0.as_ref().unwrap()
    }

    /// The region.
    pub(crate) fn mr(&self) -> &Mr {
        // PANIC: The entry has a region by the type invariant.
        self.entry().mr().unwrap()
    }

    /// The user address of the region's first byte.
    pub(crate) fn start(&self) -> u64 {
        self.entry().range.start()
    }
}

impl AsRef<Mr> for MrRef {
    fn as_ref(&self) -> &Mr {
        self.mr()
    }
}

impl Drop for MrRef {
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            let store = entry.store().clone();
            store.release_of_write(entry);
        }
    }
}
