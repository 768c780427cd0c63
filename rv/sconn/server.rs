// SPDX-License-Identifier: GPL-2.0

//! The server's way up: accept a REQ, then wait until the client is ready. All of it runs under
//! `control`.

use super::{
    cm_param,
    data::Pipe,
    state::{
        Event,
        State,
        Step, //
    },
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
        let mut guard = self.control.lock();
        let control = &mut *guard;
        self.trace_req();
        self.count(|stats| stats.req_recv += 1);
        self.check_req(control, request)
            .and_then(|()| self.check_state(control))
            .inspect_err(|_| self.count(|stats| stats.rej_sent += 1))?;
        let id = request
            .accept(self.clone())
            .map_err(|_| Refusal::LocalError)?;
        if let Err(e) = self.answer(request, &id) {
            rdma::ratelimited!(pr_warn, "a REQ could not be answered: {:?}\n", e);
            self.refuse(&id, reject::NO_RESOURCES, Refusal::LocalError);
            self.fail(control, Some("the queue pair could not be brought up"));
        }
        // There was none: it goes before a server waits again.
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
        Ok(())
    }

    /// Returns whether a REQ is waited for. If the peer has begun anew, this side must do so, too;
    /// the peer is told to come again then.
    fn check_state(self: &Arc<Self>, control: &mut Control) -> Result<(), Refusal> {
        let state = self.state();
        if control.closed || state == State::Error {
            return Err(Refusal::InError);
        }
        if self.shared.role == Role::Client {
            return Err(Refusal::NotListener);
        }
        match self.step(Event::Req) {
            Step::Proceed => Ok(()),
            Step::Recover => {
                if let Some(id) = &control.id {
                    control.port_was_up = true;
                    // Else it would end without a reason, which is how it looks in peace.
                    self.part(id, Disconnect::QpError, true);
                }
                self.recover(control, "it has begun to connect anew");
                Err(Refusal::Connecting)
            }
            _ if state == State::Disconnecting => Err(Refusal::Disconnecting),
            _ => Err(Refusal::LocalError),
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
        // One for each write that the peer can have under way, and one for its heartbeat.
        for _ in 0..=self.shared.job.params().qp_depth() {
            qp.post_recv(())?;
        }
        Ok(())
    }

    /// The peer is ready, by its word or by its first data.
    pub(super) fn on_ready(self: &Arc<Self>, control: &mut Control, id: &IdRef) {
        let step = match self.shared.role {
            Role::Server => self.step(Event::Ready),
            Role::Client => Step::Fail,
        };
        match step {
            Step::Ignore => return,
            Step::Proceed => {}
            Step::Recover | Step::Fail => {
                let _ = self.disconnect(id, Disconnect::UnexpectedRtu, false);
                self.fail(control, Some("an RTU has come when none was due"));
                return;
            }
        }
        let ready = self
            .qp()
            .and_then(|qp| qp.modify(&mut id.qp_attr(QpState::Rts)?));
        match ready {
            Ok(()) => self.come_up(control),
            Err(e) => {
                rdma::ratelimited!(pr_warn, "a connection could not be established: {:?}\n", e);
                let _ = self.disconnect(id, Disconnect::UnexpectedRtu, self.can_recover());
                self.apply(control, Event::QpLost, "the queue pair is in error");
            }
        }
    }
}
