// SPDX-License-Identifier: GPL-2.0

//! The data path of a single connection: writes out, writes in, and their completions.
//!
//! All of it runs in process context: posts in the ioctl, completions on the RDMA core's work
//! queue.

use super::{
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
    sync::Arc, //
};
use rdma::{
    mr::Mr,
    qp::{
        self,
        AsyncEvent,
        Handler,
        Remote,
        Repost, //
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

impl AsRef<Mr> for Posted {
    fn as_ref(&self) -> &Mr {
        self.write.mr.mr()
    }
}

/// What a successful post tells the process.
pub(crate) struct Receipt {
    /// The single connection that was used.
    pub(crate) index: u8,
    /// How often it has been connected.
    pub(crate) conn_count: u32,
}

/// Handles the completions of one queue pair of a single connection.
pub(crate) struct Pipe {
    sconn: Arc<Sconn>,
}

impl Pipe {
    pub(super) fn new(sconn: &Arc<Sconn>) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                sconn: sconn.clone(),
            },
            GFP_KERNEL,
        )?)
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
    /// `EIO` if the connection is in error, `EINVAL` if it was never connected, `ENOMEM` if the
    /// queue is full, else the driver's error. The process gets no event then.
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
        let qp = sconn.usable_qp()?;
        let len = write.len;
        let posted = Posted {
            outstanding: self,
            write,
        };
        qp.post_write_imm(posted, offset, len, target.remote, target.imm)
            .map_err(|e| if e == ESHUTDOWN { EIO } else { e })?;
        let mut link = sconn.link.lock();
        link.stats.post_write += 1;
        link.stats.post_write_bytes += u64::from(len);
        Ok(Receipt {
            index: sconn.index,
            conn_count: link.stats.conn_recovery + 1,
        })
    }
}

impl Sconn {
    /// The queue pair, if it may be posted to.
    fn usable_qp(&self) -> Result<Arc<qp::Qp<Pipe>>> {
        let link = self.link.lock();
        match link.state() {
            State::Connected => link.qp.clone().ok_or(EIO),
            State::Error => Err(EIO),
            _ => Err(EINVAL),
        }
    }
}

impl Handler for Pipe {
    type Send = Posted;
    type Recv = ();

    fn send_done(&self, posted: Posted, wc: &Wc) {
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
        if !wc.is_ok() {
            self.on_bad(wc, "write");
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
        match event {
            AsyncEvent::CommEst => self.sconn.notice_comm_est(),
            AsyncEvent::Fatal | AsyncEvent::ReqErr | AsyncEvent::AccessErr => {
                self.sconn.notice_loss();
            }
            AsyncEvent::PathMig | AsyncEvent::Other(_) => {}
        }
    }
}

impl Pipe {
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
                "connection {}.{}: a {} has ended with status {}\n",
                self.sconn.shared.conn_handle,
                self.sconn.index,
                what,
                wc.status.number()
            );
        }
        self.sconn.notice_loss();
    }
}
