// SPDX-License-Identifier: GPL-2.0

//! The server's way up: accept a REQ, then wait until the client is ready. All of it runs under
//! `control`.

use super::{
    cm_param,
    data::Pipe,
    state::State,
    Control,
    Sconn, //
};
use crate::wire::{
    self,
    Disconnect,
    Refusal,
    Role, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::{
    cm::{
        reject,
        IdRef,
        RepParam,
        Request, //
    },
    qp::{
        Qp,
        QpState, //
    },
    user::random, //
};

impl Sconn {
    /// A REQ for this connection has come and has passed all tests but that of the state.
    ///
    /// # Errors
    ///
    /// Why the peer is refused.
    pub(crate) fn on_req(self: &Arc<Self>, request: &mut Request<'_>) -> Result<(), Refusal> {
        let mut control = self.control.lock();
        self.trace_req();
        self.count(|stats| stats.req_recv += 1);
        self.check_req(&control, request)
            .inspect_err(|_| self.count(|stats| stats.rej_sent += 1))?;
        let id = request
            .accept(self.clone())
            .map_err(|_| Refusal::LocalError)?;
        if let Err(e) = self.answer(request, &id) {
            rdma::ratelimited!(pr_warn, "a REQ could not be answered: {:?}\n", e);
            self.refuse(&id, reject::NO_RESOURCES, Refusal::LocalError);
            self.fail();
        }
        control.id = Some(id);
        Ok(())
    }

    fn check_req(&self, control: &Control, request: &Request<'_>) -> Result<(), Refusal> {
        if let Some(known) = &control.path {
            let path = request.path();
            let roce = self.shared.job.is_roce();
            let same = (known.pkey, known.mtu, known.sl, known.traffic_class)
                == (path.pkey, path.mtu, path.sl, path.traffic_class)
                && (known.flow_label, known.rate) == (path.flow_label, path.rate)
                && (roce || known.hop_limit == path.hop_limit)
                && path.packet_life_time >= known.packet_life_time;
            // On RoCE a record without a LID says nothing.
            if known.dlid != 0 && !same {
                return Err(Refusal::Mismatch);
            }
        }
        match self.state() {
            State::Waiting if !control.closed => Ok(()),
            State::Waiting | State::Error => Err(Refusal::InError),
            State::Connecting | State::Connected if self.shared.role == Role::Server => {
                Err(Refusal::LocalError)
            }
            _ => Err(Refusal::NotListener),
        }
    }

    /// Brings the queue pair up to receive, and accepts.
    fn answer(&self, request: &Request<'_>, id: &IdRef) -> Result {
        let qp = self.qp()?;
        let psn = random() & 0xff_ffff;
        self.make_ready_to_receive(&qp, id, Some(psn))?;
        let sent = id.send_rep(&RepParam {
            qp_num: qp.number(),
            starting_psn: psn,
            private: &wire::emit_rep(),
            rnr_retry_count: request.rnr_retry_count().min(cm_param::RNR_RETRY_COUNT),
        });
        self.trace_sent(c"REP", 0, sent)?;
        self.count(|stats| stats.rep_sent += 1);
        self.enter(State::Connecting);
        Ok(())
    }

    /// Moves the queue pair through INIT to RTR and fills its receive queue.
    ///
    /// `rq_psn` is the first PSN expected, if the connection manager cannot know it yet.
    pub(super) fn make_ready_to_receive(
        &self,
        qp: &Qp<Pipe>,
        id: &IdRef,
        rq_psn: Option<u32>,
    ) -> Result {
        qp.modify(&mut id.qp_attr(QpState::Init)?)?;
        let mut attr = id.qp_attr(QpState::Rtr)?;
        attr.min_rnr_timer(cm_param::MIN_RNR_TIMER);
        if let Some(psn) = rq_psn {
            attr.rq_psn(psn);
        }
        qp.modify(&mut attr)?;
        for _ in 0..self.shared.job.params().qp_depth() {
            qp.post_recv(())?;
        }
        Ok(())
    }

    /// The peer is ready, by its word or by its first data.
    pub(super) fn on_ready(&self, id: &IdRef) {
        if self.state() != State::Connecting || self.shared.role == Role::Client {
            self.disconnect(id, Disconnect::UnexpectedRtu);
            self.fail();
            return;
        }
        let ready = self
            .qp()
            .and_then(|qp| qp.modify(&mut id.qp_attr(QpState::Rts)?));
        match ready {
            Ok(()) => {
                self.enter(State::Connected);
            }
            Err(e) => {
                rdma::ratelimited!(pr_warn, "a connection could not be established: {:?}\n", e);
                self.disconnect(id, Disconnect::UnexpectedRtu);
                self.fail();
            }
        }
    }
}
