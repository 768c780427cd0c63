// SPDX-License-Identifier: GPL-2.0

//! Safe access to `/dev/rv`, the RDMA rendezvous module.
//!
//! rv keeps one set of reliable connections per pair of nodes in the kernel, shared by all
//! processes of a job, and a cache of memory registrations per open file. A program moves data
//! with it in these steps:
//!
//! 1. [`Device::open`] opens the node and agrees on the ABI revision.
//! 2. [`Device::attach`] joins a job on one port of an RDMA device; the [`Attachment`] says which
//!    `rv_index` the process got. The peer must learn it by other means, for instance over TCP.
//! 3. [`Attachment::map_ring`] maps the event [`Ring`].
//! 4. [`Attachment::create_conn`] on both nodes, and only then [`Conn::connect`] on both; poll
//!    [`Conn::connected`].
//! 5. [`Attachment::register`] makes a piece of a [`Buffer`] known to the device and gives an
//!    [`Mr`]. The receiver tells the sender its [`Mr::iova`] and [`Mr::rkey`].
//! 6. [`Conn::post`] writes into the peer's memory. Both rings get an [`Event`]: the sender's
//!    when its memory may be reused, the receiver's when the data is there.
//!
//! [`Sysfs::select`] finds the port and its address, and [`Conn::connect`] fills the path
//! from two such addresses the way PSM3 does.
//!
//! All `unsafe` code is in four small modules: `ioctl`, `mapping`, and what needs them by nature,
//! the ring and the buffers.

pub mod abi;
mod attachment;
mod buffer;
mod conn;
mod device;
mod error;
mod event;
mod gid;
mod imm;
mod ioctl;
mod mapping;
mod mr;
mod path;
mod port;
mod ring;
mod stats;

pub use attachment::{
    AttachConfig,
    Attachment,
    JobKey, //
};
pub use buffer::Buffer;
pub use conn::{
    Conn,
    Posted,
    Write, //
};
pub use device::Device;
pub use error::{
    Error,
    Result, //
};
pub use event::{
    Event,
    Status, //
};
pub use gid::Gid;
pub use imm::ImmLayout;
pub use mr::{
    Access,
    Mr, //
};
pub use path::{
    Endpoint,
    LinkLayer,
    Role, //
};
pub use port::{
    PortChoice,
    Sysfs, //
};
pub use ring::Ring;
pub use stats::{
    CacheStats,
    ConnStats,
    EventStats, //
};
