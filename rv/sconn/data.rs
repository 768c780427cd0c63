// SPDX-License-Identifier: GPL-2.0

//! The data path of a single connection: writes out, writes in, and their completions.
//!
//! All of it runs in process context: posts in the ioctl, completions on the RDMA core's work
//! queue.

use super::{
    link::QpLease,
    state::State,
    Sconn, //
};
use crate::{
    cache::MrRef,
    ring::{
        Event,
        Ring, //
    },
    trace, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::{
    mr::Mr,
    qp::{
        AsyncEvent,
        Handler,
        Remote,
        Repost,
        Source, //
    },
    wc::{
        Opcode,
        Status,
        Wc, //
    }, //
};

/// A write that counts as outstanding, from before it is posted until it has completed.
pub(crate) struct Outstanding {
    sconn: Arc<Sconn>,
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.sconn.link.lock().stats.outstand_send_write -= 1;
    }
}

/// What a write needs until it has completed.
pub(crate) struct Write {
    /// Keeps the local memory registered. Dropped before the process is told.
    pub(crate) mr: MrRef,
    /// Where the process is told.
    pub(crate) ring: Option<Arc<Ring>>,
    pub(crate) wr_id: u64,
    pub(crate) len: u32,
}

/// Where a write goes.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) remote: Remote,
    pub(crate) imm: u32,
}

/// A posted write.
pub(crate) struct Posted {
    outstanding: Outstanding,
    write: Write,
}

/// A request on the send queue.
pub(crate) enum Sent {
    Write(Posted),
    Heartbeat,
}

impl Source for Sent {
    fn region(&self) -> Option<&Mr> {
        match self {
            Self::Write(posted) => Some(posted.write.mr.mr()),
            Self::Heartbeat => None,
        }
    }
}

/// What a successful post tells the process.
pub(crate) struct Receipt {
    /// The single connection that was used.
    pub(crate) index: u8,
    /// How often it has been connected.
    pub(crate) conn_count: u32,
}

/// What a queue pair has said of itself where one must not sleep.
pub(super) struct Notices {
    /// Data has come before the RTU.
    comm_est: AtomicFlag,
    /// The path has migrated.
    path_mig: AtomicFlag,
    /// The queue pair is broken. Stays set.
    lost: AtomicFlag,
    /// A completion queue is broken. Stays set.
    cq_lost: AtomicFlag,
    /// Everything has been given back. Stays set.
    drained: AtomicFlag,
}

impl Notices {
    fn new() -> Self {
        Self {
            comm_est: AtomicFlag::new(false),
            path_mig: AtomicFlag::new(false),
            lost: AtomicFlag::new(false),
            cq_lost: AtomicFlag::new(false),
            drained: AtomicFlag::new(false),
        }
    }

    pub(super) fn take_comm_est(&self) -> bool {
        self.comm_est.xchg(false, Full)
    }

    pub(super) fn take_path_mig(&self) -> bool {
        self.path_mig.xchg(false, Full)
    }

    pub(super) fn lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    pub(super) fn cq_lost(&self) -> bool {
        self.cq_lost.load(Relaxed)
    }

    pub(super) fn drained(&self) -> bool {
        self.drained.load(Relaxed)
    }
}

/// Handles the completions of one queue pair of a single connection.
pub(crate) struct Pipe {
    sconn: Arc<Sconn>,
    notices: Notices,
}

impl Pipe {
    pub(super) fn new(sconn: &Arc<Sconn>) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                sconn: sconn.clone(),
                notices: Notices::new(),
            },
            GFP_KERNEL,
        )?)
    }

    pub(super) fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Sets a flag, and has it looked at if it was not set before.
    fn note(&self, flag: &AtomicFlag) {
        if !flag.xchg(true, Full) {
            self.sconn.notice();
        }
    }
}

impl Sconn {
    /// Counts one more outstanding write, if it fits.
    pub(crate) fn reserve(self: &Arc<Self>) -> Option<Outstanding> {
        let mut link = self.link.lock();
        if link.stats.outstand_send_write >= link.depth {
            return None;
        }
        link.stats.outstand_send_write += 1;
        Some(Outstanding {
            sconn: self.clone(),
        })
    }
}

impl Outstanding {
    /// Posts `write`, whose first byte is `offset` bytes into its region.
    ///
    /// # Errors
    ///
    /// `EIO` if the connection is in error, `EAGAIN` if it is being recovered, `EINVAL` if it was
    /// never connected, `ENOMEM` if the queue is full, else the driver's error. The process gets no
    /// event then.
    pub(crate) fn post(self, write: Write, offset: u64, target: Target) -> Result<Receipt> {
        let sconn = self.sconn.clone();
        let (wr_id, len) = (write.wr_id, write.len);
        let outcome = self.try_post(write, offset, target);
        trace::post(
            sconn.shared.conn_handle,
            sconn.index,
            wr_id,
            target.remote.addr,
            len,
            target.imm,
            trace::errno(&outcome),
        );
        if outcome.is_err() {
            sconn.link.lock().stats.post_write_fail += 1;
        }
        outcome
    }

    fn try_post(self, write: Write, offset: u64, target: Target) -> Result<Receipt> {
        let sconn = self.sconn.clone();
        let (qp, conn_count) = sconn.usable_qp()?;
        if qp.handler().notices().lost() {
            return Err(sconn.refusal(&qp, ESHUTDOWN));
        }
        let len = write.len;
        let posted = Posted {
            outstanding: self,
            write,
        };
        qp.post_write_imm(Sent::Write(posted), offset, len, target.remote, target.imm)
            .map_err(|e| sconn.refusal(&qp, e))?;
        let mut link = sconn.link.lock();
        link.stats.post_write += 1;
        link.stats.post_write_bytes += u64::from(len);
        Ok(Receipt {
            index: sconn.index,
            conn_count,
        })
    }
}

impl Sconn {
    /// The queue pair, if it may be posted to, and how often the connection has come up with it.
    fn usable_qp(&self) -> Result<(QpLease, u32)> {
        let link = self.link.lock();
        match link.state() {
            State::Connected => Ok((link.qp().ok_or(EIO)?, link.conn_count())),
            State::Error => Err(EIO),
            _ if link.was_connected => Err(EAGAIN),
            _ => Err(EINVAL),
        }
    }

    /// What a process is told of a failed post: if the queue pair has broken meanwhile, what it
    /// would be told by now.
    fn refusal(&self, qp: &QpLease, e: Error) -> Error {
        let broken = e == ESHUTDOWN || qp.handler().notices().lost();
        match self.state() {
            State::Error => EIO,
            State::Connected if !broken => e,
            State::Connected if !self.can_recover() => EIO,
            _ => EAGAIN,
        }
    }
}

impl Handler for Pipe {
    type Send = Sent;
    type Recv = ();

    fn send_done(&self, sent: Sent, wc: &Wc) {
        match sent {
            Sent::Write(posted) => self.on_written(posted, wc),
            Sent::Heartbeat => self.on_heartbeat_sent(wc),
        }
    }

    fn recv_done(&self, (): (), wc: &Wc) -> Repost<()> {
        if !wc.is_ok() {
            self.trace_recv(0, 0, wc);
            if wc.status != Status::FLUSHED {
                self.sconn.link.lock().stats.recv_cqe_fail += 1;
            }
            self.on_bad(wc, "receive");
            return Repost::No;
        }
        match (wc.opcode, wc.imm) {
            (Opcode::RecvRdmaWithImm, Some(imm)) => {
                self.trace_recv(imm, wc.byte_len, wc);
                self.on_arrival(imm, wc.byte_len);
            }
            (Opcode::Recv, _) => {
                trace::heartbeat_recv(self.sconn.shared.conn_handle, self.sconn.index);
                self.sconn.link.lock().stats.recv_hb_cqe += 1;
            }
            _ => rdma::ratelimited!(pr_warn, "a receive completed without an immediate\n"),
        }
        Repost::Again(())
    }

    fn event(&self, event: AsyncEvent) {
        self.sconn.trace_qp_event(&event);
        let notices = &self.notices;
        match event {
            AsyncEvent::CommEst => self.note(&notices.comm_est),
            AsyncEvent::PathMig => self.note(&notices.path_mig),
            AsyncEvent::Fatal | AsyncEvent::ReqErr | AsyncEvent::AccessErr => {
                self.note(&notices.lost);
            }
            AsyncEvent::CqErr => self.note(&notices.cq_lost),
            AsyncEvent::Other(_) => {}
        }
    }

    fn drained(&self) {
        self.note(&self.notices.drained);
    }
}

impl Pipe {
    /// A write has ended: its process is told.
    fn on_written(&self, posted: Posted, wc: &Wc) {
        let Posted { outstanding, write } = posted;
        let Write {
            mr,
            ring,
            wr_id,
            len,
        } = write;
        trace::send_done(
            self.sconn.shared.conn_handle,
            self.sconn.index,
            wr_id,
            len,
            wc.status.number(),
        );
        // First of all: who knows of the failure is not to get another write accepted.
        if !wc.is_ok() {
            self.on_bad(wc, "write");
        }
        {
            let mut link = self.sconn.link.lock();
            if wc.is_ok() {
                link.stats.send_write_cqe += 1;
            } else {
                link.stats.send_write_cqe_fail += 1;
            }
        }
        drop(outstanding);
        drop(mr);
        if let Some(ring) = ring {
            let event = Event::Sent {
                status: wc.status,
                wr_id,
                len,
            };
            ring.push(event, self.sconn.shared.conn_handle);
        }
    }

    /// A heartbeat has been confirmed, or not.
    fn on_heartbeat_sent(&self, wc: &Wc) {
        {
            let mut link = self.sconn.link.lock();
            link.heartbeat = false;
            if wc.is_ok() {
                link.stats.send_hb_cqe += 1;
            } else {
                link.stats.send_hb_cqe_fail += 1;
            }
        }
        if !wc.is_ok() {
            self.on_bad(wc, "heartbeat");
        }
    }

    fn trace_recv(&self, imm: u32, len: u32, wc: &Wc) {
        let sconn = &self.sconn;
        let status = wc.status.number();
        trace::recv_done(sconn.shared.conn_handle, sconn.index, imm, len, status);
    }

    /// A write has arrived for some process of the job.
    fn on_arrival(&self, imm: u32, len: u32) {
        {
            let mut link = self.sconn.link.lock();
            link.stats.recv_write_cqe += 1;
            link.stats.recv_write_bytes += u64::from(len);
        }
        let shared = &self.sconn.shared;
        shared.job.deliver(imm, len, shared.conn_handle);
    }

    /// A queue pair with a bad completion is of no use any more. Software devices may raise no
    /// event for it, so this is a way in of its own.
    fn on_bad(&self, wc: &Wc, what: &str) {
        if wc.status != Status::FLUSHED {
            rdma::ratelimited!(
                pr_warn,
                "{}: a {} has ended with status {}\n",
                self.sconn.shared,
                what,
                wc.status.number()
            );
        }
        self.note(&self.notices.lost);
    }
}
