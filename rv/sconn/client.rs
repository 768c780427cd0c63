// SPDX-License-Identifier: GPL-2.0

//! The client's way up: find the way to the peer, send a REQ, bring the queue pair up with the REP.
//!
//! An attempt that fails for a reason that passes is made again after a pause. All of it runs under
//! `control`.

use super::{
    cm_param,
    state::{
        Event,
        State,
        Step, //
    },
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
    time::Msecs, //
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
pub(super) const RETRY_DELAY: Msecs = 100;
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
        let recovery = self.was_connected();
        self.count(|stats| match recovery {
            false => stats.resolve += 1,
            true => stats.reresolve += 1,
        });
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
    /// between an IPv4 and an IPv6 address. A recovery tries until its time is over.
    pub(super) fn on_unresolved(self: &Arc<Self>, control: &mut Control, e: Error) {
        let recovery = self.was_connected();
        self.count(|stats| match recovery {
            false => stats.resolve_fail += 1,
            true => stats.reresolve_fail += 1,
        });
        let hopeless = e == EINVAL || control.resolve_retries == 0;
        if hopeless && !self.can_recover() {
            self.fail(control, Some("its address cannot be resolved"));
            return;
        }
        control.resolve_retries = control.resolve_retries.saturating_sub(1);
        self.pause();
    }

    /// Makes a pause, after which [`Sconn::begin`] is called again.
    pub(super) fn pause(self: &Arc<Self>) {
        if self.enter(State::Delay) {
            self.set_timer::<{ work::RETRY }>(RETRY_DELAY);
        }
    }

    pub(super) fn send_req(self: &Arc<Self>, control: &mut Control, route: Option<Route>) {
        let sent = self.try_send_req(control, route);
        match self.trace_sent(c"REQ", 0, sent) {
            Ok(()) => {
                self.count(|stats| stats.req_sent += 1);
                self.enter(State::Connecting);
            }
            // The port may be down for a while.
            Err(_) if self.can_recover() => self.pause(),
            Err(e) => {
                rdma::ratelimited!(pr_warn, "a REQ could not be sent: {:?}\n", e);
                self.fail(control, Some("no REQ could be sent"));
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
    pub(super) fn on_rep(self: &Arc<Self>, control: &mut Control, id: &IdRef, rep: &cm::Rep<'_>) {
        match self.step(Event::Rep) {
            Step::Ignore => return,
            Step::Proceed => {}
            Step::Recover | Step::Fail => {
                self.refuse(id, reject::CONSUMER_DEFINED, Refusal::InError);
                self.fail(control, Some("a REP has come when none was due"));
                return;
            }
        }
        if rep.srq || wire::parse_rep(rep.private).is_err() {
            self.refuse(id, reject::CONSUMER_DEFINED, Refusal::InvalidRep);
            self.fail(control, Some("its REP is not valid"));
            return;
        }
        match self.establish(id) {
            Ok(()) => {
                self.count(|stats| stats.rtu_sent += 1);
                self.come_up(control);
            }
            Err(e) => {
                rdma::ratelimited!(pr_warn, "a connection could not be established: {:?}\n", e);
                self.refuse(id, reject::NO_RESOURCES, Refusal::LocalError);
                self.fail(control, Some("the queue pair could not be brought up"));
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
        let farewell = Farewell::parse(private);
        // CAST: The enum is a `u32`.
        let unknown = reason == reject::CONSUMER_DEFINED
            && farewell.reason == Refusal::NotFound as u32
            || reason == reject::INVALID_SERVICE_ID;
        // The peer still remembers an old connection of this queue pair's number.
        let stale = reason == reject::STALE_CONN;
        // The first time the peer's application may not have created the connection yet, or nobody
        // there listens at all so far (later that means that it has gone); or the peer still has a
        // connection to a process that was here before, which this REQ has told it to give up.
        let not_yet = self.shared.role == Role::Client
            && self.state() == State::Connecting
            && !self.was_connected()
            && (unknown || stale || farewell.recoverable);
        if not_yet && control.req_retries > 0 {
            control.req_retries -= 1;
            self.pause();
            return;
        }
        rdma::ratelimited!(
            pr_info,
            "{} has refused: code {}, reason {}\n",
            self.shared,
            reason,
            farewell.reason
        );
        let recoverable = farewell.recoverable || stale;
        self.apply(control, Event::Rej { recoverable }, "it has refused");
    }
}
