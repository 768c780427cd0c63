// SPDX-License-Identifier: GPL-2.0

//! Attachments: what an open file has once ATTACH has succeeded.
//!
//! In KERNEL mode an attachment is a membership in a job, an MR cache, a ring and a table of handles
//! for connections. In USER mode it is the MR cache alone.
//!
//! Teardown, in [`Attachment::close`]: the handles go, and with the last one of each its
//! connection; the cache forgets everything that no write under way needs; the membership goes with
//! the last reference to the attachment.

mod handles;
mod request;
mod row;

pub(crate) use request::{
    user_mr_enabled,
    Request, //
};
pub(crate) use row::Row;

use crate::{
    abi::{
        self,
        Revision, //
    },
    cache::{
        KernelDomain,
        MrCache,
        Registered,
        UserDomain, //
    },
    conn::{
        Address,
        Conn, //
    },
    device::RvDevice,
    job::{
        Job,
        Member, //
    },
    ring::Ring,
    sconn::data::{
        Target,
        Write, //
    },
    stats::Aggregate,
    trace,
    wire::Role, //
};
use handles::Handles;
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
    qp::Remote, //
};

impl From<abi::rv_mem_params_in_r4> for abi::rv_mem_params_in {
    fn from(old: abi::rv_mem_params_in_r4) -> Self {
        Self {
            ibv_pd_handle: old.ibv_pd_handle,
            cmd_fd_int: old.cmd_fd_int,
            addr: old.addr,
            length: old.length,
            access: old.access,
            ulen: old.ulen,
            udata: old.udata,
            ..Default::default()
        }
    }
}

impl From<abi::rv_mem_params_in_r1> for abi::rv_mem_params_in {
    fn from(old: abi::rv_mem_params_in_r1) -> Self {
        Self {
            ibv_pd_handle: old.ibv_pd_handle,
            cmd_fd_int: old.cmd_fd_int,
            addr: old.addr,
            length: old.length,
            access: old.access,
            ulen: old.ulen,
            udata: old.udata,
            ..Default::default()
        }
    }
}

/// What an attached file has.
#[pin_data]
pub(crate) struct Attachment {
    device: Arc<RvDevice>,
    /// `None` in USER mode.
    member: Option<Member>,
    cache: Arc<MrCache>,
    cache_mib: u32,
    ring: Option<Arc<Ring>>,
    /// Held by CONN_CREATE, so that of two at a time the second sees what the first has made.
    /// `handles` nests inside.
    #[pin]
    create: Mutex<()>,
    /// Held for a look or an entry only: POST takes it.
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
        let mut ring = None;
        let mut member = None;
        if let Some(kernel) = &request.kernel {
            if kernel.cq_entries > 0 {
                ring = Some(Ring::new(kernel.cq_entries)?);
            }
            let joined = Job::join(&device, &kernel.identity, &kernel.params, ring.clone())?;
            member = Some(joined);
        }
        let cache = MrCache::new(
            device.rdma(),
            member.as_ref().map(|member| KernelDomain {
                pd: member.job().pd(),
                port: member.job().identity().port,
                gid_index: member.job().identity().gid_index,
            }),
            request.cache_mib,
            request.fr_pages,
            device.workqueue().clone(),
        )?;
        Arc::pin_init(
            pin_init!(Self {
                device,
                member,
                cache,
                cache_mib: request.cache_mib,
                ring,
                create <- new_mutex!(()),
                handles <- new_mutex!(Handles::new()),
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
            rv_index: u32::from(self.index()),
            mr_cache_size: self.cache_mib,
            q_depth: match &self.member {
                Some(member) => member.job().params().q_depth,
                None => 0,
            },
            reconnect_timeout: match &self.member {
                Some(member) => member.job().params().reconnect_timeout,
                None => 0,
            },
            max_fmr_size: if revision > Revision::R1_3 {
                max_fmr_size
            } else {
                0
            },
        }
    }

    /// The job.
    ///
    /// # Errors
    ///
    /// `EINVAL` in USER mode.
    fn job(&self) -> Result<&Arc<Job>> {
        self.member.as_ref().map(Member::job).ok_or(EINVAL)
    }

    pub(crate) fn device(&self) -> &Arc<RvDevice> {
        &self.device
    }

    pub(crate) fn ring(&self) -> Option<&Arc<Ring>> {
        self.ring.as_ref()
    }

    /// The process's index in its job. In USER mode there is no job, and this no index.
    pub(crate) fn index(&self) -> u16 {
        self.member.as_ref().map_or(u16::MAX, Member::index)
    }

    pub(crate) fn trace_detach(&self) {
        trace::detach(
            &self.device().name(),
            self.job().map_or(0, |job| job.identity().port),
            i32::from(self.index()),
        );
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
        if let Ok(job) = self.job() {
            for conn in conns.into_iter().flatten() {
                job.put_conn(&conn);
            }
        }
        self.cache.close();
    }

    // --- Memory ----------------------------------------------------------------------------------

    pub(crate) fn reg_mem(&self, params: &abi::rv_mem_params_in) -> Result<abi::rv_mem_params_out> {
        self.cache.check_task()?;
        let user = UserDomain {
            fd: params.cmd_fd_int,
            pd_handle: params.ibv_pd_handle,
            // CAST: An address of the caller.
            data: params.udata.addr() as u64,
            data_len: params.ulen,
        };
        let Registered {
            handle,
            iova,
            lkey,
            rkey,
        } = self
            .cache
            .register(params.addr, params.length, params.access, &user)?;
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

    pub(crate) fn evict(
        &self,
        params: &abi::rv_evict_params_in,
    ) -> Result<abi::rv_evict_params_out> {
        self.cache.check_task()?;
        Ok(self.cache.evict(params.selection()?)?.into())
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
        let job = self.job()?;
        let key = address.key();
        let _turn = self.create.lock();
        let known = |conn: &Arc<Conn>| conn.has_key(&key) && !conn.is_dead();
        if self.handles.lock().conns.iter().flatten().any(known) {
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
        let entered = self.handles.lock().insert(conn.clone());
        let handle = entered.inspect_err(|_| job.put_conn(&conn))?;
        Ok(abi::rv_conn_create_params_out {
            handle,
            conn_handle,
        })
    }

    /// Checks the address of CONN_CREATE.
    fn address(&self, params: &abi::rv_conn_create_params_in) -> Result<Address> {
        let ah = &params.ah;
        let job = self.job()?;
        let identity = job.identity();
        let is_global = ah.is_global != 0;
        if (ah.dlid == 0 && !job.is_roce())
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
        let job = self.job()?;
        address
            .role(&job.params().loc_gid, job.identity().loc_addr)
            .ok_or(EINVAL)
    }

    /// Takes a handle back.
    pub(crate) fn put_handle(&self, handle: u64) {
        let conn = self.handles.lock().remove(handle);
        if let (Some(conn), Ok(job)) = (conn, self.job()) {
            job.put_conn(&conn);
        }
    }

    fn conn(&self, handle: u64) -> Result<Arc<Conn>> {
        self.handles.lock().get(handle).cloned()
    }

    /// CONN_CONNECT. If it fails once the handle is found, the handle is gone.
    pub(crate) fn conn_connect(&self, params: &abi::rv_conn_connect_params_in) -> Result {
        let path = record(&params.path);
        if path.sgid != self.job()?.params().loc_gid {
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
        // There are none in USER mode.
        self.job()?;
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
        if len > self.job()?.max_msg_sz() || params.loc_mr_access & abi::IBV_ACCESS_KERNEL == 0 {
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
