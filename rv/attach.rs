// SPDX-License-Identifier: GPL-2.0

//! Attachments: what an open file has once ATTACH has succeeded.
//!
//! An attachment is a membership in a job, an MR cache, a ring and a table of handles for
//! connections.
//!
//! Teardown, in [`Attachment::close`]: the handles go, and with the last one of each its
//! connection; the cache forgets everything that no write under way needs; the membership goes with
//! the last reference to the attachment.

use crate::{
    abi::{
        self,
        Revision, //
    },
    cache::{
        MrCache,
        Registered, //
    },
    conn::{
        Address,
        Conn, //
    },
    device::RvDevice,
    job::{
        Identity,
        Job,
        Member,
        Params, //
    },
    module_parameters,
    ring::Ring,
    sconn::data::{
        Target,
        Write, //
    },
    stats::Aggregate,
    wire::{
        JobKey,
        Role, //
    }, //
};
use kernel::{
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use rdma::{
    gid::Gid,
    path::Record,
    qp::Remote,
    user::current_uid, //
};

/// Limits of our own: far above use, low enough that nobody exhausts memory with one number.
mod limit {
    /// Work requests of one connection.
    pub(super) const Q_DEPTH: u32 = 65_536;
    /// MiB of one cache: one TiB.
    pub(super) const CACHE_MIB: u32 = 1 << 20;
}

/// A checked ATTACH.
pub(crate) struct Request {
    dev_name: [u8; 64],
    cache_mib: u32,
    identity: Identity,
    params: Params,
    cq_entries: u32,
}

impl From<abi::rv_attach_params_in_r5> for abi::rv_attach_params_in {
    fn from(old: abi::rv_attach_params_in_r5) -> Self {
        Self {
            dev_name: old.dev_name,
            mr_cache_size: old.mr_cache_size,
            rdma_mode: old.rdma_mode,
            port_num: old.port_num,
            num_conn: old.num_conn,
            loc_addr: old.loc_addr,
            index_bits: old.index_bits,
            loc_gid_index: old.loc_gid_index,
            loc_gid: old.loc_gid,
            job_key: old.job_key,
            job_key_len: old.job_key_len,
            service_id: old.service_id,
            context: old.context,
            cq_entries: old.cq_entries,
            q_depth: old.q_depth,
            reconnect_timeout: old.reconnect_timeout,
            hb_interval: old.hb_interval,
            ..Default::default()
        }
    }
}

impl From<abi::rv_mem_params_in_r4> for abi::rv_mem_params_in {
    fn from(old: abi::rv_mem_params_in_r4) -> Self {
        Self {
            addr: old.addr,
            length: old.length,
            access: old.access,
            ..Default::default()
        }
    }
}

impl From<abi::rv_mem_params_in_r1> for abi::rv_mem_params_in {
    fn from(old: abi::rv_mem_params_in_r1) -> Self {
        Self {
            addr: old.addr,
            length: old.length,
            access: old.access,
            ..Default::default()
        }
    }
}

/// `value`, or `default` if it is 0.
fn or_default<T: PartialEq + Default>(value: T, default: T) -> T {
    if value == T::default() {
        default
    } else {
        value
    }
}

impl Request {
    /// Checks the input of ATTACH and fills in defaults.
    ///
    /// # Errors
    ///
    /// `EINVAL`.
    pub(crate) fn new(input: &abi::rv_attach_params_in) -> Result<Self> {
        let dev_name = name(&input.dev_name)?;
        let mode = u32::from(input.rdma_mode) & !abi::RV_RDMA_MODE_UPSIZE_CPU;
        if mode != abi::RV_RDMA_MODE_KERNEL {
            // Neither flags for GPUs nor, yet, USER mode.
            return Err(EINVAL);
        }
        if input.port_num == 0
            || u32::from(input.num_conn) > abi::RV_MAX_NUM_CONN
            || u32::from(input.index_bits) > abi::RV_MAX_INDEX_BITS
            || input.cq_entries > abi::RV_MAX_CQ_ENTRIES
        {
            return Err(EINVAL);
        }
        let key = JobKey::new(input.job_key, input.job_key_len).ok_or(EINVAL)?;
        let q_depth = or_default(input.q_depth, default_q_depth());
        let cache_mib = or_default(input.mr_cache_size, default_cache_mib(input.rdma_mode));
        if q_depth > limit::Q_DEPTH || cache_mib > limit::CACHE_MIB {
            return Err(EINVAL);
        }
        let timeout_ms = u64::from(input.reconnect_timeout) * 1000;
        if timeout_ms != 0 && timeout_ms <= u64::from(input.hb_interval) {
            return Err(EINVAL);
        }
        Ok(Self {
            dev_name,
            cache_mib,
            identity: Identity {
                uid: current_uid(),
                port: u32::from(input.port_num),
                gid_index: input.loc_gid_index,
                loc_addr: input.loc_addr,
                key,
            },
            params: Params {
                num_conn: or_default(input.num_conn, default_num_conn()),
                index_bits: input.index_bits,
                loc_gid: Gid(input.loc_gid),
                service_id: or_default(
                    input.service_id,
                    *module_parameters::service_id.value_ref(),
                ),
                q_depth,
                reconnect_timeout: input.reconnect_timeout,
                hb_interval: input.hb_interval,
            },
            cq_entries: input.cq_entries,
        })
    }
}

/// A device name: not empty, with a NUL, and zeros behind it.
fn name(chars: &[c_char; 64]) -> Result<[u8; 64]> {
    let len = chars.iter().position(|c| *c == 0).ok_or(EINVAL)?;
    if len == 0 {
        return Err(EINVAL);
    }
    let mut name = [0; 64];
    for (to, from) in name.iter_mut().zip(chars).take(len) {
        *to = *from;
    }
    Ok(name)
}

fn default_cache_mib(mode: u8) -> u32 {
    let mib = if u32::from(mode) & abi::RV_RDMA_MODE_UPSIZE_CPU != 0 {
        *module_parameters::mr_cache_size_gpu.value_ref()
    } else {
        *module_parameters::mr_cache_size.value_ref()
    };
    mib.clamp(1, limit::CACHE_MIB)
}

fn default_q_depth() -> u32 {
    (*module_parameters::q_depth.value_ref()).clamp(1, limit::Q_DEPTH)
}

fn default_num_conn() -> u8 {
    let num_conn = *module_parameters::num_conn.value_ref();
    // CAST: Between 1 and 16.
    num_conn.clamp(1, abi::RV_MAX_NUM_CONN) as u8
}

/// The connections of a file by their handles: handle 1 is the first entry.
struct Handles {
    conns: KVec<Option<Arc<Conn>>>,
    /// The attachment has ended.
    closed: bool,
}

impl Handles {
    fn index(handle: u64) -> Result<usize> {
        let index = handle.checked_sub(1).ok_or(EINVAL)?;
        usize::try_from(index).map_err(|_| EINVAL)
    }

    fn get(&self, handle: u64) -> Result<&Arc<Conn>> {
        self.conns
            .get(Self::index(handle)?)
            .and_then(Option::as_ref)
            .ok_or(EINVAL)
    }

    /// Enters a connection under the lowest free handle.
    fn insert(&mut self, conn: Arc<Conn>) -> Result<u64> {
        let at = match self.conns.iter().position(Option::is_none) {
            Some(at) => at,
            None => {
                self.conns.push(None, GFP_KERNEL)?;
                self.conns.len() - 1
            }
        };
        if let Some(entry) = self.conns.get_mut(at) {
            *entry = Some(conn);
        }
        Ok(u64::try_from(at)? + 1)
    }

    fn remove(&mut self, handle: u64) -> Option<Arc<Conn>> {
        self.conns.get_mut(Self::index(handle).ok()?)?.take()
    }
}

/// What an attached file has.
#[pin_data]
pub(crate) struct Attachment {
    member: Member,
    cache: Arc<MrCache>,
    cache_mib: u32,
    ring: Option<Arc<Ring>>,
    #[pin]
    handles: Mutex<Handles>,
}

impl Attachment {
    /// Carries an ATTACH out.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no such device, those of [`Job::join`], `ENOMEM`.
    pub(crate) fn new(request: &Request) -> Result<Arc<Self>> {
        let device = RvDevice::find(&request.dev_name)?;
        let ring = match request.cq_entries {
            0 => None,
            entries => Some(Ring::new(entries)?),
        };
        let member = Job::join(&device, &request.identity, &request.params, ring.clone())?;
        let cache = MrCache::new(
            member.job().pd(),
            request.identity.port,
            request.identity.gid_index,
            request.cache_mib,
            device.workqueue().clone(),
        )?;
        Arc::pin_init(
            pin_init!(Self {
                member,
                cache,
                cache_mib: request.cache_mib,
                ring,
                handles <- new_mutex!(Handles {
                    conns: KVec::new(),
                    closed: false,
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// What ATTACH tells a caller of `revision`.
    pub(crate) fn answer(&self, revision: Revision) -> abi::rv_attach_params_out {
        let pages = u64::from(self.device().rdma().max_fast_reg_pages());
        // CAST: A page has few bytes.
        let max_fmr_size = pages * PAGE_SIZE as u64;
        abi::rv_attach_params_out {
            rv_index: u32::from(self.member.index()),
            mr_cache_size: self.cache_mib,
            q_depth: self.job().params().q_depth,
            // A lost connection is not recovered, so nothing is waited for.
            reconnect_timeout: 0,
            max_fmr_size: if revision > Revision::R1_3 {
                max_fmr_size
            } else {
                0
            },
        }
    }

    fn job(&self) -> &Arc<Job> {
        self.member.job()
    }

    pub(crate) fn device(&self) -> &Arc<RvDevice> {
        self.job().device()
    }

    pub(crate) fn ring(&self) -> Option<&Arc<Ring>> {
        self.ring.as_ref()
    }

    /// Ends the attachment: nothing new is begun on it, and what it holds goes.
    ///
    /// # Context
    ///
    /// Sleeps.
    pub(crate) fn close(&self) {
        let conns = {
            let mut handles = self.handles.lock();
            handles.closed = true;
            core::mem::replace(&mut handles.conns, KVec::new())
        };
        for conn in conns.into_iter().flatten() {
            self.job().put_conn(&conn);
        }
        self.cache.close();
    }

    // --- Memory ----------------------------------------------------------------------------------

    pub(crate) fn reg_mem(&self, params: &abi::rv_mem_params_in) -> Result<abi::rv_mem_params_out> {
        self.cache.check_task()?;
        let Registered {
            handle,
            iova,
            lkey,
            rkey,
        } = self
            .cache
            .register(params.addr, params.length, params.access)?;
        Ok(abi::rv_mem_params_out {
            mr_handle: handle,
            iova,
            lkey,
            rkey,
        })
    }

    /// Gives back what a caller could not be told of.
    pub(crate) fn undo_reg_mem(
        &self,
        params: &abi::rv_mem_params_in,
        out: &abi::rv_mem_params_out,
    ) {
        let _ = self
            .cache
            .deregister(out.mr_handle, params.addr, params.length, params.access);
    }

    pub(crate) fn dereg_mem(&self, params: &abi::rv_dereg_params_in) -> Result {
        self.cache.check_task()?;
        self.cache
            .deregister(params.mr_handle, params.addr, params.length, params.access)
    }

    pub(crate) fn cache_stats(&self) -> abi::rv_cache_stats_params_out {
        self.cache.stats().into()
    }

    pub(crate) fn event_stats(&self) -> abi::rv_event_stats_params_out {
        match &self.ring {
            Some(ring) => ring.stats(),
            None => Default::default(),
        }
    }

    // --- Connections -----------------------------------------------------------------------------

    pub(crate) fn conn_create(
        &self,
        params: &abi::rv_conn_create_params_in,
    ) -> Result<abi::rv_conn_create_params_out> {
        let address = self.address(params)?;
        let role = self.role(&address)?;
        let job = self.job();
        let key = address.key();
        let mut handles = self.handles.lock();
        if handles.closed {
            // The device went while this came.
            return Err(ENXIO);
        }
        let known = |conn: &Arc<Conn>| conn.has_key(&key) && !conn.is_dead();
        if handles.conns.iter().flatten().any(known) {
            return Err(EBUSY);
        }
        let conn = job.conn(
            &key,
            |conn| {
                if conn.is_as(&address) {
                    Ok(())
                } else {
                    Err(EEXIST)
                }
            },
            || Conn::new(job, &address, role),
        )?;
        let conn_handle = conn.handle();
        let handle = match handles.insert(conn.clone()) {
            Ok(handle) => handle,
            Err(e) => {
                drop(handles);
                job.put_conn(&conn);
                return Err(e);
            }
        };
        Ok(abi::rv_conn_create_params_out {
            handle,
            conn_handle,
        })
    }

    /// Checks the address of CONN_CREATE.
    fn address(&self, params: &abi::rv_conn_create_params_in) -> Result<Address> {
        let ah = &params.ah;
        let identity = self.job().identity();
        let is_global = ah.is_global != 0;
        if (ah.dlid == 0 && !self.job().is_roce())
            || (is_global && u16::from(ah.grh.sgid_index) != identity.gid_index)
            || u32::from(ah.port_num) != identity.port
        {
            return Err(EINVAL);
        }
        Ok(Address {
            rem_addr: params.rem_addr,
            is_global,
            dgid: Gid(ah.grh.dgid),
            dlid: ah.dlid,
            sl: ah.sl,
            src_path_bits: ah.src_path_bits,
            static_rate: ah.static_rate,
            traffic_class: ah.grh.traffic_class,
            flow_label: ah.grh.flow_label,
            hop_limit: ah.grh.hop_limit,
        })
    }

    /// Who of the two nodes listens. Connections to the own node there are none.
    fn role(&self, address: &Address) -> Result<Role> {
        let job = self.job();
        address
            .role(&job.params().loc_gid, job.identity().loc_addr)
            .ok_or(EINVAL)
    }

    /// Takes a handle back.
    pub(crate) fn put_handle(&self, handle: u64) {
        let conn = self.handles.lock().remove(handle);
        if let Some(conn) = conn {
            self.job().put_conn(&conn);
        }
    }

    fn conn(&self, handle: u64) -> Result<Arc<Conn>> {
        self.handles.lock().get(handle).cloned()
    }

    /// CONN_CONNECT. If it fails once the handle is found, the handle is gone.
    pub(crate) fn conn_connect(&self, params: &abi::rv_conn_connect_params_in) -> Result {
        let path = record(&params.path);
        if path.sgid != self.job().params().loc_gid {
            return Err(EINVAL);
        }
        let conn = self.conn(params.handle)?;
        let outcome = if conn.address().fits(&path) {
            conn.connect(&path)
        } else {
            Err(EINVAL)
        };
        outcome.inspect_err(|_| self.put_handle(params.handle))
    }

    pub(crate) fn is_connected(&self, handle: u64) -> Result<bool> {
        self.conn(handle)?.is_connected()
    }

    pub(crate) fn conn_count(
        &self,
        params: &abi::rv_conn_get_conn_count_params_in,
    ) -> Result<abi::rv_conn_get_conn_count_params_out> {
        let conn = self.conn(params.handle)?;
        let count = conn.sconn(params.index).ok_or(EINVAL)?.conn_count()?;
        Ok(abi::rv_conn_get_conn_count_params_out { count })
    }

    pub(crate) fn conn_stats(
        &self,
        params: &abi::rv_conn_get_stats_params_in,
    ) -> Result<abi::rv_conn_get_stats_params_out> {
        // CAST: It is 255.
        const ALL: u8 = abi::RV_CONN_STAT_AGGREGATE as u8;
        let mut sum = Aggregate::new();
        let index = match (params.handle, params.index) {
            (0, _) => {
                for conn in self.handles.lock().conns.iter().flatten() {
                    conn.add_stats(&mut sum);
                }
                ALL
            }
            (handle, ALL) => {
                self.conn(handle)?.add_stats(&mut sum);
                ALL
            }
            (handle, index) => {
                self.conn(handle)?
                    .add_stats_of(index, &mut sum)
                    .ok_or(EINVAL)?;
                index
            }
        };
        Ok(sum.finish(index))
    }

    // --- Data ------------------------------------------------------------------------------------

    /// POST_RDMA_WR_IMMED.
    pub(crate) fn post(
        &self,
        params: &abi::rv_post_write_params_in,
    ) -> Result<abi::rv_post_write_params_out> {
        self.cache.check_task()?;
        let conn = self.conn(params.handle)?;
        let len = u32::try_from(params.length).map_err(|_| EINVAL)?;
        if len > self.job().max_msg_sz() || params.loc_mr_access & abi::IBV_ACCESS_KERNEL == 0 {
            return Err(EINVAL);
        }
        let outstanding = conn.next()?;
        let mr = self.cache.lookup(
            params.loc_mr_addr,
            params.loc_mr_length,
            params.loc_mr_access,
        )?;
        let offset = params.loc_addr.checked_sub(mr.start()).ok_or(EINVAL)?;
        let end = offset.checked_add(u64::from(len)).ok_or(EINVAL)?;
        if end > mr.mr().length() {
            return Err(EINVAL);
        }
        let write = Write {
            mr,
            ring: self.ring.clone(),
            wr_id: params.wr_id,
            len,
        };
        let target = Target {
            remote: Remote {
                addr: params.rem_addr,
                rkey: params.rkey,
            },
            imm: params.immed,
        };
        let receipt = outstanding.post(write, offset, target)?;
        Ok(abi::rv_post_write_params_out {
            sconn_index: receipt.index,
            hole0: [0; 3],
            conn_count: receipt.conn_count,
        })
    }
}

/// The path of CONN_CONNECT, in host order.
fn record(path: &abi::ib_user_path_rec) -> Record {
    Record {
        dgid: Gid(path.dgid),
        sgid: Gid(path.sgid),
        dlid: u32::from(u16::from_be(path.dlid)),
        slid: u32::from(u16::from_be(path.slid)),
        flow_label: u32::from_be(path.flow_label),
        hop_limit: path.hop_limit,
        traffic_class: path.traffic_class,
        reversible: path.reversible != 0,
        numb_path: path.numb_path,
        pkey: u16::from_be(path.pkey),
        sl: path.sl,
        mtu_selector: path.mtu_selector,
        // CAST: The encoding has 6 bits; PSM3 sends the enum.
        mtu: path.mtu as u8,
        rate_selector: path.rate_selector,
        rate: path.rate,
        packet_life_time_selector: path.packet_life_time_selector,
        packet_life_time: path.packet_life_time,
        preference: path.preference,
    }
}
