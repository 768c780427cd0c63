// SPDX-License-Identifier: GPL-2.0

//! Safe Rust over the kernel's RDMA core, for drivers that use RDMA devices.

use kernel::prelude::*;

pub mod addr;
pub mod av;
pub mod client;
pub mod cm;
pub mod device;
pub mod event;
pub mod gid;
pub mod interval_tree;
pub mod lease;
pub mod log;
pub mod mm;
pub mod mr;
pub mod notifier;
pub mod path;
pub mod pd;
pub mod qp;
pub mod shared;
pub mod umem;
pub mod user;
pub mod uverbs;
pub mod wc;
pub mod workqueue;

module! {
    type: RdmaModule,
    name: "rdma_rs",
    authors: ["The rdmavt-rs authors"],
    description: "Safe Rust abstractions over the RDMA core",
    license: "GPL",
}

struct RdmaModule;

impl kernel::Module for RdmaModule {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(RdmaModule)
    }
}
