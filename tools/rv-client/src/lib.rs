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
//! All `unsafe` code is in `ioctl`, `mapping`, and what needs them by nature: the ring, the buffers
//! and one call in `mr`.
//!
//! # Examples
//!
//! Sending a page to a peer whose address, memory and index are known:
//!
//! ```no_run
//! # use rv_client::*;
//! # fn example(peer: Endpoint, iova: u64, rkey: u32, index: u32, key: JobKey) -> Result<()> {
//! let choice = PortChoice {
//!     device: Some("rxe0".into()),
//!     port: 1,
//!     gid_index: None,
//! };
//! let endpoint = Sysfs::default().select(&choice, peer.gid.to_ip())?;
//! let attachment = Device::open()?.attach(&AttachConfig {
//!     endpoint,
//!     job_key: key,
//!     num_conn: 1,
//!     index_bits: 9,
//!     ring_entries: 64,
//!     cache_mib: 0,
//!     q_depth: 0,
//!     reconnect_timeout: 0,
//!     heartbeat_interval: 0,
//!     fr_pages: 0,
//! })?;
//! let mut ring = attachment.map_ring()?;
//! let conn = attachment.create_conn(&peer)?;
//! // Here the peer says that it has created its end too.
//! conn.connect()?;
//! while !conn.connected()? {
//!     std::thread::yield_now();
//! }
//! let buffer = Buffer::new(4096)?;
//! buffer.copy_in(0, b"hello")?;
//! let mr = attachment.register(&buffer, 0..4096, Access::Source)?;
//! conn.post(&Write {
//!     source: &mr,
//!     offset: 0,
//!     length: 4096,
//!     remote_address: iova,
//!     rkey,
//!     imm: ImmLayout::new(9)?.encode(index, 1)?,
//!     wr_id: 1,
//! })?;
//! let event = loop {
//!     if let Some(event) = ring.poll()? {
//!         break event;
//!     }
//! };
//! # let _ = event;
//! # Ok(())
//! # }
//! ```

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
