// SPDX-License-Identifier: GPL-2.0

//! rv: rendezvous bulk transfers for PSM3, through `/dev/rv`.
//!
//! A process of a parallel job moves large messages by RDMA WRITE with immediate, over queue pairs
//! that the kernel keeps for all processes of the job, from and into memory that the kernel keeps
//! registered for it.
//!
//! One transfer, from end to end:
//!
//! 1. Both processes open the device and ATTACH ([`mod@file`], [`attach`]): they become members of a
//!    job on a port ([`job`]), get an index, an MR cache ([`cache`]) and a ring ([`ring`]).
//! 2. CONN_CREATE and CONN_CONNECT on both sides ([`conn`]): the node with the lower GID listens
//!    ([`listener`]), the other sends a REQ for each of the queue pairs ([`sconn`]; what is said is in
//!    [`wire`]).
//! 3. REG_MEM on both sides: a hit in the cache, or a registration. The receiver tells the sender
//!    address, key and index by other means.
//! 4. POST on the sender ([`attach::Attachment::post`]): takes a reference to the local memory, and
//!    posts one write on the queue pair whose turn it is ([`sconn::data`]).
//! 5. On the receiver the write completes a receive; the upper bits of its immediate name the process,
//!    into whose ring goes an event. The receive is posted again.
//! 6. On the sender the write completes: the reference goes back, and an event into the ring.
//! 7. DEREG_MEM on both sides: the memory stays registered, in the cache, until it is unmapped or
//!    room is needed.

use kernel::{
    miscdevice::{
        MiscDeviceOptions,
        MiscDeviceRegistration, //
    },
    prelude::*, //
};
use rdma::{
    client::Registration,
    workqueue::Workqueue, //
};

mod abi;
mod attach;
mod cache;
#[cfg(CONFIG_COMPAT)]
mod compat;
mod conn;
mod debugfs;
mod device;
mod file;
mod job;
mod listener;
mod ring;
mod sconn;
mod stats;
mod trace;
mod wire;

module! {
    type: RvModule,
    name: "rv",
    authors: ["The rdmavt-rs authors"],
    description: "Rendezvous bulk transfers for PSM3",
    license: "GPL",
    params: {
        service_id: u64 {
            default: 0x1000_1255_0000_0001,
            description: "IB CM service of jobs that name none",
        },
        num_conn: u32 {
            default: 4,
            description: "Queue pairs for each pair of nodes, if the application does not say",
        },
        q_depth: u32 {
            default: 4000,
            description: "Writes outstanding for each pair of nodes, if the application does not say",
        },
        enable_user_mr: u32 {
            default: 1,
            description: "Whether applications may have memory registered in their own protection domains",
        },
        mr_cache_size: u32 {
            default: 256,
            description: "MiB of the MR cache of an open file, if the application does not say",
        },
        mr_cache_size_gpu: u32 {
            default: 1024,
            description: "The same, for applications that ask for the larger one",
        },
        fr_batch_size: u32 {
            default: 256,
            description: "Regions kept ready for fast registration, per open file, 0 for none",
        },
        fr_page_list_len: u32 {
            default: 1024,
            description: "Pages of each of them, if the application does not say",
        },
        fr_pool_wm_lo: u32 {
            default: 64,
            description: "So few regions left ready have more made, 0 for a quarter of all",
        },
    },
}

/// The module.
///
/// Fields drop top to bottom, in the order of teardown: the device node, so that no file is open;
/// the client, which waits until nothing is left on any device; the registry's reference to the
/// work queue; the work queue, which waits until all work is done.
struct RvModule {
    _node: Pin<KBox<MiscDeviceRegistration<file::File>>>,
    _debugfs: Pin<KBox<debugfs::DebugFs>>,
    _client: Registration<device::RvClient>,
    _registry: Registry,
    _workqueue: Workqueue,
}

/// Empties the registry of devices when dropped.
struct Registry;

impl Drop for Registry {
    fn drop(&mut self) {
        device::exit();
    }
}

impl kernel::Module for RvModule {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let workqueue = Workqueue::new(c"rv")?;
        // SAFETY: A module is initialised once, and nothing else of it has run yet.
        unsafe { device::init(workqueue.get()) };
        let registry = Registry;
        let client = Registration::new()?;
        let debugfs = KBox::pin_init(debugfs::DebugFs::new(), GFP_KERNEL)?;
        let options = MiscDeviceOptions { name: c"rv" };
        let node = KBox::pin_init(MiscDeviceRegistration::register(options), GFP_KERNEL)?;
        Ok(Self {
            _node: node,
            _debugfs: debugfs,
            _client: client,
            _registry: registry,
            _workqueue: workqueue,
        })
    }
}
