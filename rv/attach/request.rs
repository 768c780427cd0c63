// SPDX-License-Identifier: GPL-2.0

//! The input of ATTACH: checks and defaults.

use crate::{
    abi,
    job::{
        Identity,
        Params, //
    },
    module_parameters,
    trace,
    wire::JobKey, //
};
use kernel::prelude::*;
use rdma::{
    gid::Gid,
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
    pub(super) dev_name: [u8; 64],
    pub(super) cache_mib: u32,
    /// Pages of a region that is kept ready for fast registration.
    pub(super) fr_pages: u32,
    /// `None` in USER mode: nothing but the cache is wanted.
    pub(super) kernel: Option<KernelRequest>,
}

/// What KERNEL mode takes.
pub(super) struct KernelRequest {
    pub(super) identity: Identity,
    pub(super) params: Params,
    pub(super) cq_entries: u32,
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
        let cache_mib = or_default(input.mr_cache_size, default_cache_mib(input.rdma_mode));
        if cache_mib > limit::CACHE_MIB {
            return Err(EINVAL);
        }
        let timeout_ms = u64::from(input.reconnect_timeout) * 1000;
        if timeout_ms != 0 && timeout_ms <= u64::from(input.hb_interval) {
            return Err(EINVAL);
        }
        let kernel = match u32::from(input.rdma_mode) & !abi::RV_RDMA_MODE_UPSIZE_CPU {
            abi::RV_RDMA_MODE_USER if user_mr_enabled() => None,
            abi::RV_RDMA_MODE_KERNEL => Some(KernelRequest::new(input)?),
            // Flags for GPUs, among others.
            _ => return Err(EINVAL),
        };
        Ok(Self {
            dev_name,
            cache_mib,
            fr_pages: or_default(
                input.fr_page_list_len,
                *module_parameters::fr_page_list_len.value_ref(),
            ),
            kernel,
        })
    }

    /// Traces how it ended: with an index, or not. What only KERNEL mode has is 0 in USER mode.
    pub(crate) fn trace(&self, outcome: &Result<u16>) {
        let kernel = self.kernel.as_ref();
        let identity = kernel.map(|kernel| &kernel.identity);
        let params = kernel.map(|kernel| &kernel.params);
        trace::attach(
            &self.dev_name,
            identity.map_or(0, |identity| identity.port),
            identity.map_or(0, |identity| identity.gid_index),
            current_uid(),
            params.map_or(0, |params| params.num_conn),
            params.map_or(0, |params| params.q_depth),
            self.cache_mib,
            kernel.map_or(0, |kernel| kernel.cq_entries),
            outcome.as_ref().map_or(-1, |index| i32::from(*index)),
            trace::errno(outcome),
        );
    }
}

impl KernelRequest {
    fn new(input: &abi::rv_attach_params_in) -> Result<Self> {
        if input.port_num == 0
            || u32::from(input.num_conn) > abi::RV_MAX_NUM_CONN
            || u32::from(input.index_bits) > abi::RV_MAX_INDEX_BITS
            || input.cq_entries > abi::RV_MAX_CQ_ENTRIES
        {
            return Err(EINVAL);
        }
        let key = JobKey::new(input.job_key, input.job_key_len).ok_or(EINVAL)?;
        let q_depth = or_default(input.q_depth, default_q_depth());
        if q_depth > limit::Q_DEPTH {
            return Err(EINVAL);
        }
        Ok(Self {
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

/// Whether memory may be registered in protection domains of processes.
pub(crate) fn user_mr_enabled() -> bool {
    *module_parameters::enable_user_mr.value_ref() != 0
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
