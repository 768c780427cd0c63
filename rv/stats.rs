// SPDX-License-Identifier: GPL-2.0

//! Statistics of connections: those of one part, and sums of several.

use crate::{
    abi::{
        self,
        rv_conn_get_stats_params_out, //
    },
    wire::Role, //
};
use core::cmp::max;

/// The statistics of one single connection, in the form of the ABI.
pub(crate) type Stats = rv_conn_get_stats_params_out;

/// Sums up statistics.
pub(crate) struct Aggregate {
    sum: Stats,
    /// None seen yet that was never connected.
    all_were_connected: bool,
}

impl Aggregate {
    pub(crate) fn new() -> Self {
        Self {
            sum: Stats::default(),
            all_were_connected: true,
        }
    }

    /// Adds one part: counters add up, times count with the longest.
    pub(crate) fn add(&mut self, part: &Stats, role: Role, was_connected: bool) {
        let sum = &mut self.sum;
        sum.num_conn += 1;
        sum.flags |= role_flag(role);
        self.all_were_connected &= was_connected;
        add_counters(sum, part);
        take_longest(sum, part);
    }

    /// The sum, for `index`.
    pub(crate) fn finish(mut self, index: u8) -> Stats {
        self.sum.index = index;
        if self.all_were_connected {
            // CAST: The flags fit the field.
            self.sum.flags |= abi::RV_CONN_STAT_FLAG_WAS_CONNECTED as u8;
        }
        self.sum
    }
}

fn role_flag(role: Role) -> u8 {
    let flag = match role {
        Role::Server => abi::RV_CONN_STAT_FLAG_SERVER,
        Role::Client => abi::RV_CONN_STAT_FLAG_CLIENT,
    };
    // CAST: The flags fit the field.
    flag as u8
}

/// Applies `$combine` to the same fields of two structures.
macro_rules! combine {
    ($sum:ident, $part:ident, $combine:expr, $($field:ident)*) => {
        $( $sum.$field = $combine($sum.$field, $part.$field); )*
    };
}

fn add_counters(sum: &mut Stats, part: &Stats) {
    combine!(sum, part, u32::wrapping_add,
        req_error req_recv rep_error rep_recv rtu_recv established dreq_error dreq_recv drep_recv
        timewait mra_recv rej_recv lap_error lap_recv apr_recv unexp_event req_sent rep_sent
        rtu_sent rej_sent dreq_sent drep_sent resolve resolve_fail conn_recovery reresolve
        reresolve_fail outstand_send_write);
    combine!(sum, part, u64::wrapping_add,
        post_write post_write_fail post_write_bytes send_write_cqe send_write_cqe_fail
        recv_write_cqe recv_write_bytes recv_cqe_fail post_hb post_hb_fail send_hb_cqe
        send_hb_cqe_fail recv_hb_cqe);
}

fn take_longest(sum: &mut Stats, part: &Stats) {
    combine!(sum, part, max,
        wait_time resolve_time connect_time connected_time rewait_time reresolve_time
        reconnect_time max_rewait_time max_reresolve_time max_reconnect_time);
}
