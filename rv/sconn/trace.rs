// SPDX-License-Identifier: GPL-2.0

//! Trace events of a single connection: what the connection manager and the queue pair tell, and
//! what the peer is told.

use super::Sconn;
use crate::{
    trace::{
        self,
        Named, //
    },
    wire::Farewell, //
};
use kernel::prelude::*;
use rdma::{
    cm::Event,
    qp::AsyncEvent, //
};

impl Named for Event<'_> {
    fn name(&self) -> &'static CStr {
        match self {
            Self::ReqError => c"REQ_ERROR",
            Self::RepError => c"REP_ERROR",
            Self::DreqError => c"DREQ_ERROR",
            Self::Rep(_) => c"REP",
            Self::Rtu => c"RTU",
            Self::Established => c"ESTABLISHED",
            Self::Dreq(_) => c"DREQ",
            Self::Drep => c"DREP",
            Self::TimewaitExit => c"TIMEWAIT_EXIT",
            Self::Mra => c"MRA",
            Self::Rej { .. } => c"REJ",
            Self::LapError => c"LAP_ERROR",
            Self::Lap => c"LAP",
            Self::Apr => c"APR",
            Self::Other(_) => c"OTHER",
        }
    }
}

impl Sconn {
    /// Traces an event of the connection manager.
    pub(super) fn trace_event(&self, event: &Event<'_>) {
        if !trace::cm_event_enabled() {
            return;
        }
        let (code, reason) = match event {
            Event::Rej { reason, private } => (*reason, Farewell::parse(private).reason),
            Event::Dreq(private) => (0, Farewell::parse(private).reason),
            Event::Other(number) => (*number, 0),
            _ => (0, 0),
        };
        let (conn, state) = (self.shared.conn_handle, self.state());
        trace::cm_event(conn, self.index, event.name(), &state, code, reason);
    }

    /// Traces a REQ, which is no event of this connection's own identifier.
    pub(super) fn trace_req(&self) {
        if trace::cm_event_enabled() {
            let (conn, state) = (self.shared.conn_handle, self.state());
            trace::cm_event(conn, self.index, c"REQ", &state, 0, 0);
        }
    }

    /// Traces how sending a message went, and passes that on. `reason` is the one in a REJ or DREQ.
    pub(super) fn trace_sent(&self, message: &'static CStr, reason: u32, sent: Result) -> Result {
        let conn = self.shared.conn_handle;
        trace::cm_send(conn, self.index, message, reason, trace::errno(&sent));
        sent
    }

    /// Traces an event of the queue pair.
    pub(super) fn trace_qp_event(&self, event: &AsyncEvent) {
        let number = match event {
            AsyncEvent::Other(number) => *number,
            _ => 0,
        };
        trace::qp_event(self.shared.conn_handle, self.index, event, number);
    }
}
