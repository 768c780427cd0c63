// SPDX-License-Identifier: GPL-2.0

//! What the data path sees of a single connection: state, queue pair, statistics.

use super::{
    data::Pipe,
    state::State, //
};
use crate::{
    conn::Shared,
    stats::Stats,
    trace,
    wire::Role, //
};
use core::cmp::max;
use kernel::time::{
    Instant,
    Monotonic, //
};
use rdma::{
    lease::{
        Lease,
        Owner, //
    },
    qp::Qp, //
};

/// The queue pair of a single connection, borrowed for a moment. Its owner waits for all of these.
pub(super) type QpLease = Lease<Qp<Pipe>>;

/// The hot part of a single connection, behind a spin lock.
pub(super) struct Link {
    /// The connection's name and its own, for traces.
    conn_handle: u64,
    index: u8,
    state: State,
    /// When `state` was entered.
    since: Instant<Monotonic>,
    pub(super) was_connected: bool,
    /// None while it is being replaced, and when the connection is done for.
    pub(super) qp: Option<Owner<Qp<Pipe>>>,
    /// Writes that fit into the send queue.
    pub(super) depth: u32,
    /// A heartbeat is under way.
    pub(super) heartbeat: bool,
    pub(super) stats: Stats,
}

impl Link {
    pub(super) fn new(shared: &Shared, index: u8, depth: u32) -> Self {
        Self {
            conn_handle: shared.conn_handle,
            index,
            state: match shared.role {
                Role::Server => State::Waiting,
                Role::Client => State::Init,
            },
            since: Instant::now(),
            was_connected: false,
            qp: None,
            depth,
            heartbeat: false,
            stats: Stats::default(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn qp(&self) -> Option<QpLease> {
        self.qp.as_ref()?.lease()
    }

    /// How often the connection has come up.
    pub(super) fn conn_count(&self) -> u32 {
        self.stats.conn_recovery + u32::from(self.was_connected)
    }

    /// What has moved over the connection: if this grows, no heartbeat is needed.
    pub(super) fn activity(&self) -> u64 {
        let stats = &self.stats;
        stats
            .post_write
            .wrapping_add(stats.recv_write_cqe)
            .wrapping_add(stats.recv_hb_cqe)
    }

    /// Enters `next` if it may follow, and adds the time spent in the state before.
    pub(super) fn enter(&mut self, next: State) -> bool {
        if !self.state.may_become(next) {
            return false;
        }
        let spent = self.in_state();
        self.stats.add_time(self.state, spent, self.was_connected);
        trace::conn_state(self.conn_handle, self.index, &self.state, &next, spent);
        self.state = next;
        self.since = Instant::now();
        if next == State::Connected {
            self.stats.conn_recovery += u32::from(self.was_connected);
            self.was_connected = true;
        }
        true
    }

    /// Microseconds since the state was entered.
    pub(super) fn in_state(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros_ceil()).unwrap_or(0)
    }

    /// The statistics up to now.
    pub(super) fn snapshot(&self, index: u8) -> Stats {
        let mut stats = self.stats;
        stats.index = index;
        if self.state == State::Connected {
            stats.connected_time += self.in_state();
        }
        stats
    }
}

impl Stats {
    /// Adds the microseconds spent in a state that is left. The first connection and recoveries
    /// are counted apart.
    fn add_time(&mut self, state: State, spent: u64, recovery: bool) {
        let (sum, longest) = match (state, recovery) {
            (State::Waiting, false) => (&mut self.wait_time, None),
            (State::Resolving, false) => (&mut self.resolve_time, None),
            (State::Connecting, false) => (&mut self.connect_time, None),
            (State::Connected, _) => (&mut self.connected_time, None),
            (State::Waiting, true) => (&mut self.rewait_time, Some(&mut self.max_rewait_time)),
            (State::Resolving, true) => {
                (&mut self.reresolve_time, Some(&mut self.max_reresolve_time))
            }
            (State::Connecting, true) => {
                (&mut self.reconnect_time, Some(&mut self.max_reconnect_time))
            }
            _ => return,
        };
        *sum += spent;
        if let Some(longest) = longest {
            *longest = max(*longest, spent);
        }
    }
}
