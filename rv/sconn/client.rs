// SPDX-License-Identifier: GPL-2.0

//! The client's way up: find the way to the peer, send a REQ, bring the queue pair up with the REP.
//!
//! An attempt that fails for a reason that passes is made again after a pause. All of it runs under
//! `control`.

use super::{
    cm_param,
    state::State,
    work,
    Control,
    Sconn, //
};
use crate::wire::{
    self,
    Farewell,
    Refusal,
    Role, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Msecs, //
    }, //
};
use rdma::{
    addr::Resolution,
    cm::{
        self,
        reject,
        Id,
        IdRef,
        ReqParam, //
    },
    path::Route,
    qp::QpState,
    user::random, //
};

/// How long one attempt of address resolution may take.
const RESOLVE_TIMEOUT: Msecs = 10_000;
/// The pause before another attempt.
const RETRY_DELAY: Msecs = 100;
/// How often address resolution is tried again.
pub(super) const RESOLVE_RETRIES: u32 = 5;
/// How often a REQ is sent again to a peer that does not know of the connection yet.
pub(super) const REQ_RETRIES: u32 = 50;

impl Sconn {
    pub(super) fn new_id(self: &Arc<Self>) -> Result<Id<Self>> {
        Id::new(self.shared.job.device().rdma(), self.clone())
    }

    /// Begins an attempt: finds the way to the peer, then sends a REQ.
    pub(super) fn begin(self: &Arc<Self>, control: &mut Control) {
        if !self.enter(State::Resolving) {
            return;
        }
        self.count(|stats| stats.resolve += 1);
        if !self.shared.job.is_roce() {
            self.send_req(control, None);
            return;
        }
        let started = self.resolve(control);
        match started {
            Ok(resolution) => control.resolution = Some(resolution),
            Err(e) => self.on_unresolved(control, e),
        }
    }

    fn resolve(self: &Arc<Self>, control: &Control) -> Result<Resolution<Self>> {
        let path = control.path.as_ref().ok_or(EINVAL)?;
        let identity = self.shared.job.identity();
        let device = self.shared.job.device().rdma();
        let sgid = device.gid(identity.port, identity.gid_index)?;
        Resolution::start(sgid, path.dgid, RESOLVE_TIMEOUT, self.clone())
    }

    /// The way to the peer was not found. Trying again does not help if there can be none, as
    /// between an IPv4 and an IPv6 address.
    pub(super) fn on_unresolved(self: &Arc<Self>, control: &mut Control, e: Error) {
        self.count(|stats| stats.resolve_fail += 1);
        if control.resolve_retries == 0 || e == EINVAL {
            rdma::ratelimited!(
                pr_info,
                "connection {}.{}: the peer's address cannot be resolved: {:?}\n",
                self.shared.conn_handle,
                self.index,
                e
            );
            self.fail();
            return;
        }
        control.resolve_retries -= 1;
        self.pause();
    }

    /// Makes a pause, after which [`Sconn::begin`] is called again.
    fn pause(self: &Arc<Self>) {
        if self.enter(State::Delay) {
            let queue = self.shared.job.device().workqueue().queue();
            let _ = queue
                .enqueue_delayed::<_, { work::RETRY }>(self.clone(), msecs_to_jiffies(RETRY_DELAY));
        }
    }

    pub(super) fn send_req(self: &Arc<Self>, control: &mut Control, route: Option<Route>) {
        let sent = self.try_send_req(control, route);
        match self.trace_sent(c"REQ", 0, sent) {
            Ok(()) => {
                self.count(|stats| stats.req_sent += 1);
                self.enter(State::Connecting);
            }
            Err(e) => {
                rdma::ratelimited!(pr_warn, "a REQ could not be sent: {:?}\n", e);
                self.fail();
            }
        }
    }

    fn try_send_req(&self, control: &Control, route: Option<Route>) -> Result {
        let id = control.id.as_ref().ok_or(EINVAL)?;
        let job = &self.shared.job;
        let private = wire::Req {
            index: self.index,
            job_key: job.identity().key,
            uid: job.identity().uid,
        };
        id.send_req(&ReqParam {
            path: control.path.as_ref().ok_or(EINVAL)?,
            route,
            sgid: &self.shared.sgid,
            service_id: job.params().service_id,
            qp_num: self.qp()?.number(),
            starting_psn: random(),
            private: &private.emit(),
            retry_count: cm_param::RETRY_COUNT,
            rnr_retry_count: cm_param::RNR_RETRY_COUNT,
            max_cm_retries: cm_param::MAX_CM_RETRIES,
            local_cm_response_timeout: cm_param::RESPONSE_TIMEOUT,
            remote_cm_response_timeout: cm_param::RESPONSE_TIMEOUT,
        })
    }

    /// The peer has accepted.
    pub(super) fn on_rep(&self, id: &IdRef, rep: &cm::Rep<'_>) {
        self.count(|stats| stats.rep_recv += 1);
        if self.state() != State::Connecting {
            self.refuse(id, reject::CONSUMER_DEFINED, Refusal::InError);
            self.fail();
            return;
        }
        if rep.srq || wire::parse_rep(rep.private).is_err() {
            self.refuse(id, reject::CONSUMER_DEFINED, Refusal::InvalidRep);
            self.fail();
            return;
        }
        match self.establish(id) {
            Ok(()) => {
                self.count(|stats| stats.rtu_sent += 1);
                self.enter(State::Connected);
            }
            Err(e) => {
                rdma::ratelimited!(pr_warn, "a connection could not be established: {:?}\n", e);
                self.refuse(id, reject::NO_RESOURCES, Refusal::LocalError);
                self.fail();
            }
        }
    }

    /// Brings the queue pair up and says so to the peer.
    fn establish(&self, id: &IdRef) -> Result {
        let qp = self.qp()?;
        self.make_ready_to_receive(&qp, id, None)?;
        qp.modify(&mut id.qp_attr(QpState::Rts)?)?;
        self.trace_sent(c"RTU", 0, id.send_rtu())
    }

    /// The peer has refused, or somebody for it.
    pub(super) fn on_rej(self: &Arc<Self>, control: &mut Control, reason: u32, private: &[u8]) {
        self.count(|stats| stats.rej_recv += 1);
        if self.state() != State::Connecting {
            self.fail();
            return;
        }
        // The peer's application may not have created the connection yet, or nobody there listens
        // at all so far; or the peer still remembers an old connection of this queue pair's number.
        let not_yet = matches!(reason, reject::INVALID_SERVICE_ID | reject::STALE_CONN)
            || (reason == reject::CONSUMER_DEFINED
                // CAST: The enum is a `u32`.
                && Farewell::parse(private).reason == Refusal::NotFound as u32);
        if not_yet && self.shared.role == Role::Client && control.req_retries > 0 {
            control.req_retries -= 1;
            self.pause();
        } else {
            rdma::ratelimited!(
                pr_info,
                "connection {}.{} was refused: code {}, reason {}\n",
                self.shared.conn_handle,
                self.index,
                reason,
                Farewell::parse(private).reason
            );
            self.fail();
        }
    }
}
