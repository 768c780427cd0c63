// SPDX-License-Identifier: GPL-2.0

//! The connection to a remote node.

use std::fs::File;
use std::os::fd::{
    AsFd,
    BorrowedFd, //
};
use std::sync::Arc;

use crate::abi;
use crate::error::{
    Error,
    Result, //
};
use crate::ioctl;
use crate::mr::Mr;
use crate::path::{
    Endpoint,
    Role, //
};
use crate::stats::ConnStats;

/// One RDMA write with immediate data.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Where the data is.
    pub source: &'a Mr,
    /// First byte of the data, from the start of `source`.
    pub offset: u64,
    /// Bytes to write.
    pub length: u64,
    /// Where it goes: an [`Mr::iova`] of the peer, plus an offset.
    pub remote_address: u64,
    /// The peer's [`Mr::rkey`].
    pub rkey: u32,
    /// What the receiver gets to see, with his index in the top bits; see
    /// [`ImmLayout`](crate::ImmLayout).
    pub imm: u32,
    /// What the completion says.
    pub wr_id: u64,
}

/// Where a write went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Posted {
    /// The queue pair of the connection.
    pub index: u8,
    /// How often it had come up; see [`Conn::count`].
    pub conn_count: u32,
}

/// A handle of the connection to a remote node, which all processes of the job share.
///
/// The handle lives as long as the file: the ABI has no call that gives it back.
#[derive(Debug)]
pub struct Conn {
    file: Arc<File>,
    handle: u64,
    conn_handle: u64,
    role: Role,
    path: abi::ib_user_path_rec,
}

impl Conn {
    /// Makes or shares the connection.
    pub(crate) fn create(file: Arc<File>, local: &Endpoint, remote: &Endpoint) -> Result<Self> {
        local.check_remote(remote)?;
        let input = abi::rv_conn_create_params_in {
            ah: local.ah_to(remote)?,
            rem_addr: remote.number(),
            ..Default::default()
        };
        let out = ioctl::call(file.as_fd(), &ioctl::CONN_CREATE, input)?;
        Ok(Self {
            file,
            handle: out.handle,
            conn_handle: out.conn_handle,
            role: local.role(remote),
            path: local.path_to(remote),
        })
    }

    /// Returns the name of the connection in events.
    pub fn conn_handle(&self) -> u64 {
        self.conn_handle
    }

    /// Tells which side this node is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Starts connecting; to be called on both nodes, after both have made the connection.
    ///
    /// # Errors
    ///
    /// The errno of `CONN_CONNECT`; the handle is of no use then.
    pub fn connect(&self) -> Result<()> {
        let input = abi::rv_conn_connect_params_in {
            handle: self.handle,
            path: self.path,
        };
        ioctl::call(self.fd(), &ioctl::CONN_CONNECT, input)
    }

    /// Tells whether the connection is up.
    ///
    /// # Errors
    ///
    /// `EIO` when it will not come up, or is lost.
    pub fn connected(&self) -> Result<bool> {
        let input = abi::rv_conn_connected_params_in {
            handle: self.handle,
        };
        ioctl::status(self.fd(), &ioctl::CONN_CONNECTED, input).map(|(up, ())| up != 0)
    }

    /// Tells how often the queue pair `index` came up.
    ///
    /// Once it is higher than [`Posted::conn_count`], everything that became of that write is in
    /// the rings.
    ///
    /// # Errors
    ///
    /// `EIO` when the connection is lost for good.
    pub fn count(&self, index: u8) -> Result<u32> {
        let input = abi::rv_conn_get_conn_count_params_in {
            handle: self.handle,
            index,
            ..Default::default()
        };
        ioctl::call(self.fd(), &ioctl::CONN_GET_CONN_COUNT, input).map(|out| out.count)
    }

    /// Reads the counters, summed up over all queue pairs.
    ///
    /// # Errors
    ///
    /// The errno of `CONN_GET_STATS`.
    pub fn stats(&self) -> Result<ConnStats> {
        // CAST: The constant is 255.
        let input = abi::rv_conn_get_stats_params_in {
            handle: self.handle,
            index: abi::RV_CONN_STAT_AGGREGATE as u8,
            ..Default::default()
        };
        ioctl::call(self.fd(), &ioctl::CONN_GET_STATS, input).map(ConnStats::from)
    }

    /// Starts a write. Its completion comes through the ring, as an
    /// [`Event::Sent`](crate::Event::Sent).
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the range is outside of `source`; transient ones (see
    /// [`Error::is_transient`]) when the queues are full or the connection is being recovered; `EIO`
    /// when it is lost.
    pub fn post(&self, write: &Write<'_>) -> Result<Posted> {
        let end = write.offset.checked_add(write.length);
        if end.is_none_or(|end| end > write.source.len()) {
            return Err(Error::Argument(format!(
                "{} bytes at {} are outside of a registration of {} bytes",
                write.length,
                write.offset,
                write.source.len()
            )));
        }
        let mut input = abi::rv_post_write_params_in {
            handle: self.handle,
            rkey: write.rkey,
            rem_addr: write.remote_address,
            length: write.length,
            wr_id: write.wr_id,
            immed: write.imm,
            ..Default::default()
        };
        write.source.describe(&mut input);
        input.loc_addr += write.offset;
        let out = ioctl::call(self.fd(), &ioctl::POST_RDMA_WR_IMMED, input)?;
        Ok(Posted {
            index: out.sconn_index,
            conn_count: out.conn_count,
        })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
