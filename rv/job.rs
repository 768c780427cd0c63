// SPDX-License-Identifier: GPL-2.0

//! Jobs: the processes of one user and one job key that share a port of a device.
//!
//! They share a protection domain and the connections to other nodes. A process is a slot in the
//! job's table, and its place there, the index, is what the upper bits of an immediate name: that is
//! how an arriving write finds its process.
//!
//! A job whose last process has left is not found any more. A new process with the same key gets a
//! fresh one, even while the old one's connections are still being taken down.
//!
//! Lock order: a device's `jobs`, then `members` or `conns`; `listening`, then a device's
//! `listeners`. The handler of a REQ takes `jobs` and `conns`, and destroying a listener waits for
//! it under `listeners`: so nobody may take `listeners` with one of those two held.

use crate::{
    conn::{
        Conn,
        ConnKey, //
    },
    device::RvDevice,
    listener::Listening,
    ring::{
        Event,
        Ring, //
    },
    wire::{
        index_of,
        JobKey,
        Req, //
    }, //
};
use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex,
        SpinLock, //
    }, //
};
use rdma::{
    gid::Gid,
    path::Record,
    pd::Pd, //
};

/// What makes two processes members of the same job.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) port: u32,
    pub(crate) gid_index: u16,
    pub(crate) loc_addr: u32,
    pub(crate) key: JobKey,
}

impl Identity {
    fn is_same(&self, other: &Self) -> bool {
        (self.uid, self.port, self.gid_index, self.loc_addr)
            == (other.uid, other.port, other.gid_index, other.loc_addr)
            && self.key.is_same(&other.key)
    }
}

/// What all members of a job must have asked for alike.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Params {
    pub(crate) num_conn: u8,
    pub(crate) index_bits: u8,
    pub(crate) loc_gid: Gid,
    pub(crate) service_id: u64,
    pub(crate) q_depth: u32,
    pub(crate) reconnect_timeout: u32,
    pub(crate) hb_interval: u32,
}

impl Params {
    /// The number of work requests each queue of one queue pair holds: an equal share, and a bit
    /// more if there are several, since they do not fill evenly.
    pub(crate) fn qp_depth(&self) -> u32 {
        let share = self.q_depth.div_ceil(u32::from(self.num_conn.max(1)));
        if self.num_conn > 1 {
            share + share / 20
        } else {
            share
        }
    }
}

/// A member's place in the table.
#[derive(Clone)]
enum Slot {
    Free,
    /// Taken, by a process that has a ring or none.
    Taken(Option<Arc<Ring>>),
}

/// The table of members.
struct Members {
    slots: KVVec<Slot>,
    count: usize,
    /// Where the search for a free slot begins: behind the one given out last.
    next: usize,
}

/// A job on a port of a device.
#[pin_data]
pub(crate) struct Job {
    /// Names the job in tables.
    id: u64,
    device: Arc<RvDevice>,
    identity: Identity,
    params: Params,
    pd: Arc<Pd>,
    is_roce: bool,
    max_msg_sz: u32,
    #[pin]
    members: SpinLock<Members>,
    #[pin]
    conns: Mutex<KVec<Arc<Conn>>>,
    #[pin]
    listening: Mutex<Option<Listening>>,
}

/// Gives each job its name.
static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// A process's membership in a job; dropping it is leaving.
pub(crate) struct Member {
    job: Arc<Job>,
    index: u16,
}

impl Job {
    fn new(device: &Arc<RvDevice>, identity: &Identity, params: &Params) -> Result<Arc<Self>> {
        let rdma = device.rdma();
        let port = rdma.query_port(identity.port)?;
        if !rdma.gid_is(identity.port, identity.gid_index, &params.loc_gid)? {
            return Err(ENOENT);
        }
        let slots = 1_usize << params.index_bits;
        Arc::pin_init(
            try_pin_init!(Self {
                id: NEXT_ID.fetch_add(1, Relaxed),
                device: device.clone(),
                identity: *identity,
                params: *params,
                pd: Pd::new(rdma)?,
                is_roce: rdma.is_roce(identity.port),
                max_msg_sz: port.max_msg_sz,
                members <- new_spinlock!(Members {
                    slots: KVVec::from_elem(Slot::Free, slots, GFP_KERNEL)?,
                    count: 0,
                    next: 0,
                }),
                conns <- new_mutex!(KVec::new()),
                listening <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Joins the job of this identity on `device`, or founds it.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is such a job with other parameters; `EINVAL` for a port that does not
    /// exist, `ENOENT` if `loc_gid` is not at the GID index; `ENOMEM`, also if all indices are
    /// taken; else the driver's error.
    pub(crate) fn join(
        device: &Arc<RvDevice>,
        identity: &Identity,
        params: &Params,
        ring: Option<Arc<Ring>>,
    ) -> Result<Member> {
        if !device.rdma().has_port(identity.port) || !device.rdma().has_ib_cm(identity.port) {
            return Err(EINVAL);
        }
        let mut jobs = device.jobs.lock();
        if let Some(job) = jobs.iter().find(|job| job.identity.is_same(identity)) {
            if job.params != *params {
                return Err(EBUSY);
            }
            return Self::enter(job, ring);
        }
        jobs.reserve(1, GFP_KERNEL)?;
        let job = Self::new(device, identity, params)?;
        let member = Self::enter(&job, ring)?;
        jobs.push_within_capacity(job).map_err(|_| ENOMEM)?;
        Ok(member)
    }

    /// Takes a slot. The caller holds the device's `jobs`, so the job does not end meanwhile.
    fn enter(job: &Arc<Self>, ring: Option<Arc<Ring>>) -> Result<Member> {
        let mut members = job.members.lock();
        let index = members.free_slot().ok_or(ENOMEM)?;
        if let Some(slot) = members.slots.get_mut(index) {
            *slot = Slot::Taken(ring);
        }
        members.count += 1;
        members.next = index + 1;
        Ok(Member {
            job: job.clone(),
            index: u16::try_from(index)?,
        })
    }

    /// Applies `find` to the jobs of a device that have members, until it finds something.
    pub(crate) fn find<T>(
        device: &RvDevice,
        mut find: impl FnMut(&Arc<Self>) -> Option<T>,
    ) -> Option<T> {
        let jobs = device.jobs.lock();
        jobs.iter().find_map(&mut find)
    }

    /// Returns whether a REQ that came to `port` along `path` is for this job.
    pub(crate) fn is_asked_for(&self, req: &Req, port: u32, path: &Record) -> bool {
        self.identity.uid == req.uid
            && self.identity.key.is_same(&req.job_key)
            && self.identity.port == port
            && self.params.loc_gid == path.sgid
    }

    /// Finds the connection to the node at the end of `path` which has queue pair `index`.
    ///
    /// A dead one, which somebody still holds, is only found if there is no other.
    pub(crate) fn find_conn(&self, path: &Record, index: u8) -> Option<Arc<Conn>> {
        if index >= self.params.num_conn {
            return None;
        }
        let conns = self.conns.lock();
        let leading = || conns.iter().filter(|conn| conn.leads_along(path));
        let alive = leading().find(|conn| !conn.is_dead());
        alive.or_else(|| leading().next()).cloned()
    }

    /// Finds the connection of this key that is usable, or makes one and listens for it. Counts a
    /// user of it.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is one that `check` does not agree with, else those of `make`, and
    /// `ENOMEM`.
    pub(crate) fn conn(
        self: &Arc<Self>,
        key: &ConnKey,
        check: impl FnOnce(&Conn) -> Result,
        make: impl FnOnce() -> Result<Arc<Conn>>,
    ) -> Result<Arc<Conn>> {
        self.listen()?;
        let mut conns = self.conns.lock();
        let usable = |conn: &&Arc<Conn>| conn.has_key(key) && !conn.is_dead();
        if let Some(conn) = conns.iter().find(usable) {
            check(conn)?;
            conn.add_user();
            return Ok(conn.clone());
        }
        conns.reserve(1, GFP_KERNEL)?;
        let conn = make()?;
        conn.add_user();
        conns
            .push_within_capacity(conn.clone())
            .map_err(|_| ENOMEM)?;
        Ok(conn)
    }

    /// Takes a user of a connection away. With the last one the job forgets the connection.
    pub(crate) fn put_conn(&self, conn: &Arc<Conn>) {
        let last = {
            let mut conns = self.conns.lock();
            let last = conn.drop_user();
            if last {
                let at = conns.iter().position(|known| Arc::ptr_eq(known, conn));
                at.and_then(|at| conns.remove(at).ok())
            } else {
                None
            }
        };
        drop(last);
    }

    /// Listens for the job's service until its last member leaves.
    fn listen(&self) -> Result {
        let mut listening = self.listening.lock();
        if listening.is_none() {
            *listening = Some(Listening::new(&self.device, self.params.service_id)?);
        }
        Ok(())
    }

    /// Puts an arrived write into the ring of the process it is for. A process that has left or has
    /// no ring gets nothing.
    pub(crate) fn deliver(&self, imm: u32, len: u32, conn_handle: u64) {
        let index = usize::from(index_of(imm, self.params.index_bits));
        let ring = {
            let members = self.members.lock();
            match members.slots.get(index) {
                Some(Slot::Taken(Some(ring))) => ring.clone(),
                _ => return,
            }
        };
        ring.push(Event::Received { imm, len }, conn_handle);
    }

    /// Returns whether any process is left. If not, none will come.
    pub(crate) fn has_members(&self) -> bool {
        self.members.lock().count != 0
    }

    /// The jobs of a device that have members.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn all(device: &RvDevice) -> Result<KVec<Arc<Self>>> {
        copy(&device.jobs.lock())
    }

    /// The connections.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn conns(&self) -> Result<KVec<Arc<Conn>>> {
        copy(&self.conns.lock())
    }

    pub(crate) fn member_count(&self) -> usize {
        self.members.lock().count
    }

    /// The name of the job: no other one has or had it.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn device(&self) -> &Arc<RvDevice> {
        &self.device
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Whether the port runs RoCE.
    pub(crate) fn is_roce(&self) -> bool {
        self.is_roce
    }

    /// The longest write, in bytes.
    pub(crate) fn max_msg_sz(&self) -> u32 {
        self.max_msg_sz
    }
}

impl Members {
    /// The first free slot behind the one given out last.
    fn free_slot(&self) -> Option<usize> {
        let len = self.slots.len();
        (0..len)
            .map(|step| (self.next + step) % len)
            .find(|index| matches!(self.slots.get(*index), Some(Slot::Free)))
    }
}

impl Member {
    pub(crate) fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// The process's index.
    pub(crate) fn index(&self) -> u16 {
        self.index
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let job = &self.job;
        let mut jobs = job.device.jobs.lock();
        let (ring, last) = {
            let mut members = job.members.lock();
            let ring = members
                .slots
                .get_mut(usize::from(self.index))
                .map(|slot| core::mem::replace(slot, Slot::Free));
            members.count -= 1;
            (ring, members.count == 0)
        };
        let ended = if last {
            let at = jobs.iter().position(|known| Arc::ptr_eq(known, job));
            at.and_then(|at| jobs.remove(at).ok())
        } else {
            None
        };
        drop(jobs);
        drop(ring);
        if ended.is_some() {
            let listening = job.listening.lock().take();
            drop(listening);
        }
    }
}

/// Copies references, so that the lock they are under need not be held any longer.
pub(crate) fn copy<T>(references: &[Arc<T>]) -> Result<KVec<Arc<T>>> {
    let mut copies = KVec::with_capacity(references.len(), GFP_KERNEL)?;
    for reference in references {
        copies.push(reference.clone(), GFP_KERNEL)?;
    }
    Ok(copies)
}
