// SPDX-License-Identifier: GPL-2.0

//! Connections: from a job on this node to the same job on another.
//!
//! A connection is shared by all processes of the job and consists of `num_conn` single ones
//! ([`Sconn`]), over which writes are striped. Each process has its own handle for it; what they
//! all see in events is `conn_handle`.
//!
//! Teardown: the last handle goes, the job forgets the connection, and dropping it lets each single
//! connection be taken down by a work item of its own, all at the same time
//! (see [`Sconn::shut_down`]).

use crate::{
    job::Job,
    sconn::{
        Outstanding,
        Sconn, //
    },
    stats::Aggregate,
    trace,
    wire::{
        Refusal,
        Role, //
    }, //
};
use core::net::{
    Ipv4Addr,
    Ipv6Addr, //
};
use kernel::{
    fmt,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::{
    device::Device,
    gid::{
        Gid,
        GidAttr, //
    },
    path::Record, //
};

/// The address of the remote node as CONN_CREATE gives it.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub(crate) rem_addr: u32,
    pub(crate) is_global: bool,
    pub(crate) dgid: Gid,
    pub(crate) dlid: u16,
    pub(crate) sl: u8,
    pub(crate) src_path_bits: u8,
    pub(crate) static_rate: u8,
    pub(crate) traffic_class: u8,
    pub(crate) flow_label: u32,
    pub(crate) hop_limit: u8,
}

/// What makes two addresses those of the same node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnKey {
    rem_addr: u32,
    node: Node,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Gid(Gid),
    Lid(u16),
}

impl Address {
    pub(crate) fn key(&self) -> ConnKey {
        ConnKey {
            rem_addr: self.rem_addr,
            node: if self.is_global {
                Node::Gid(self.dgid)
            } else {
                Node::Lid(self.dlid)
            },
        }
    }

    /// Who listens: the node with the lower GID, or, without GIDs, the lower number.
    pub(crate) fn role(&self, loc_gid: &Gid, loc_addr: u32) -> Option<Role> {
        if self.is_global {
            Role::of(*loc_gid, self.dgid)
        } else {
            Role::of(loc_addr, self.rem_addr)
        }
    }

    /// Returns whether a second user names the node in the same way as the first.
    fn agrees(&self, other: &Self) -> bool {
        let global = |address: &Self| {
            address.is_global.then_some((
                address.traffic_class,
                address.flow_label,
                address.hop_limit,
            ))
        };
        (self.dlid, self.src_path_bits, self.sl, self.static_rate)
            == (other.dlid, other.src_path_bits, other.sl, other.static_rate)
            && global(self) == global(other)
    }

    /// Returns whether a path of CONN_CONNECT leads to this address.
    pub(crate) fn fits(&self, path: &Record) -> bool {
        u32::from(self.dlid) == path.dlid
            && self.sl == path.sl
            && self.static_rate == path.rate
            && (!self.is_global
                || (self.dgid == path.dgid
                    && self.traffic_class == path.traffic_class
                    && self.flow_label == path.flow_label
                    && self.hop_limit == path.hop_limit))
    }
}

/// The node in the terms of a log line: by its LID, or its IPv4 or IPv6 address.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_global {
            return write!(f, "LID {:#x}", self.dlid);
        }
        match self.dgid.0 {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => {
                write!(f, "{}", Ipv4Addr::new(a, b, c, d))
            }
            gid => write!(f, "{}", Ipv6Addr::from(gid)),
        }
    }
}

/// What a connection's parts have in common.
pub(crate) struct Shared {
    pub(crate) job: Arc<Job>,
    pub(crate) address: Address,
    pub(crate) role: Role,
    /// Our entry of the GID table.
    pub(crate) sgid: GidAttr,
    /// The name of the connection in events.
    pub(crate) conn_handle: u64,
}

/// The peer and the way to it, for the log.
impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = [0; Device::NAME_LEN];
        self.job.device().rdma().copy_name(&mut name);
        let end = name.iter().position(|byte| *byte == 0);
        let name = end.and_then(|end| name.get(..end)).unwrap_or(&[]);
        let name = core::str::from_utf8(name).unwrap_or("?");
        f.write_fmt(fmt!("{} via {}", self.address, name))
    }
}

/// A connection to another node.
pub(crate) struct Conn {
    shared: Arc<Shared>,
    sconns: KVec<Arc<Sconn>>,
    /// Which single connection has the next turn.
    turn: Atomic<u32>,
    /// Handles of processes. Changed under the job's lock.
    users: Atomic<u32>,
}

/// Gives each connection its name.
static NEXT_CONN_HANDLE: Atomic<u64> = Atomic::new(1);

impl Conn {
    /// Makes a connection, with the queues of all its parts.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, whatever it was that could not be made.
    pub(crate) fn new(job: &Arc<Job>, address: &Address, role: Role) -> Result<Arc<Self>> {
        let identity = job.identity();
        let sgid = job
            .device()
            .rdma()
            .gid(identity.port, identity.gid_index)
            .map_err(|_| ENOMEM)?;
        let shared = Arc::new(
            Shared {
                job: job.clone(),
                address: *address,
                role,
                sgid,
                conn_handle: NEXT_CONN_HANDLE.fetch_add(1, Relaxed),
            },
            GFP_KERNEL,
        )?;
        let mut conn = Self {
            sconns: KVec::with_capacity(usize::from(job.params().num_conn), GFP_KERNEL)?,
            shared,
            turn: Atomic::new(0),
            users: Atomic::new(0),
        };
        for index in 0..job.params().num_conn {
            let sconn = Sconn::new(&conn.shared, index).map_err(|_| ENOMEM)?;
            conn.sconns
                .push_within_capacity(sconn)
                .map_err(|_| ENOMEM)?;
        }
        trace::conn_create(
            conn.handle(),
            &role,
            job.params().num_conn,
            address.rem_addr,
            &address.dgid.0,
        );
        Ok(Arc::new(conn, GFP_KERNEL)?)
    }

    pub(crate) fn handle(&self) -> u64 {
        self.shared.conn_handle
    }

    pub(crate) fn address(&self) -> &Address {
        &self.shared.address
    }

    pub(crate) fn role(&self) -> Role {
        self.shared.role
    }

    /// The handles that processes have for it.
    pub(crate) fn users(&self) -> u32 {
        self.users.load(Relaxed)
    }

    /// The single connections.
    pub(crate) fn parts(&self) -> &[Arc<Sconn>] {
        &self.sconns
    }

    pub(crate) fn has_key(&self, key: &ConnKey) -> bool {
        self.shared.address.key() == *key
    }

    /// Returns whether a second user asks for the connection in the way the first did.
    pub(crate) fn is_as(&self, address: &Address) -> bool {
        self.shared.address.agrees(address)
    }

    /// Returns whether some part of the connection is in error for good.
    pub(crate) fn is_dead(&self) -> bool {
        self.sconns.iter().any(|sconn| sconn.is_dead())
    }

    /// Counts a handle. The caller holds the job's lock.
    pub(crate) fn add_user(&self) {
        self.users.fetch_add(1, Relaxed);
    }

    /// Takes a handle off; returns whether it was the last. The caller holds the job's lock.
    pub(crate) fn drop_user(&self) -> bool {
        self.users.fetch_sub(1, Relaxed) == 1
    }

    /// Returns whether a path as the listening side sees it leads to the remote node.
    pub(crate) fn leads_along(&self, path: &Record) -> bool {
        let address = &self.shared.address;
        let lid_fits = self.shared.job.is_roce() || path.dlid == u32::from(address.dlid);
        lid_fits && (!address.is_global || path.dgid == address.dgid)
    }

    /// Compares the path of a REQ with the address that the application gave.
    pub(crate) fn check_path(&self, path: &Record) -> Result<(), Refusal> {
        let address = &self.shared.address;
        let hop_limit_fits = self.shared.job.is_roce() || path.hop_limit == address.hop_limit;
        let global_fits = !address.is_global
            || (path.traffic_class == address.traffic_class
                && path.flow_label == address.flow_label
                && hop_limit_fits);
        if path.sl == address.sl && path.rate == address.static_rate && global_fits {
            Ok(())
        } else {
            Err(Refusal::Mismatch)
        }
    }

    /// The single connection of this index.
    pub(crate) fn sconn(&self, index: u8) -> Option<&Arc<Sconn>> {
        self.sconns.get(usize::from(index))
    }

    /// Connects all parts along `path`, or compares it with the path they have.
    ///
    /// # Errors
    ///
    /// `EEXIST` if they have another, `ENOMEM`.
    pub(crate) fn connect(&self, path: &Record) -> Result {
        self.sconns.iter().try_for_each(|sconn| sconn.connect(path))
    }

    /// Returns whether all parts are or were connected.
    ///
    /// # Errors
    ///
    /// `EIO` if one is in error.
    pub(crate) fn is_connected(&self) -> Result<bool> {
        for sconn in &self.sconns {
            if !sconn.is_connected()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the next turn among the parts that can hold one more write.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if all are full.
    pub(crate) fn next(&self) -> Result<Outstanding> {
        let len = self.sconns.len();
        // CAST: The turn is only used modulo the number of parts, of which there are at most 16.
        let turn = self.turn.fetch_add(1, Relaxed) as usize;
        (0..len)
            .filter_map(|step| self.sconns.get((turn.wrapping_add(step)) % len))
            .find_map(Sconn::reserve)
            .ok_or(ENOMEM)
    }

    /// Adds the statistics of one part; `None` if there is no such part.
    pub(crate) fn add_stats_of(&self, index: u8, sum: &mut Aggregate) -> Option<()> {
        let sconn = self.sconn(index)?;
        sum.add(&sconn.stats(), self.shared.role, sconn.was_connected());
        Some(())
    }

    /// Adds the statistics of all parts.
    pub(crate) fn add_stats(&self, sum: &mut Aggregate) {
        for sconn in &self.sconns {
            sum.add(&sconn.stats(), self.shared.role, sconn.was_connected());
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        for sconn in &self.sconns {
            sconn.shut_down();
        }
    }
}
