// SPDX-License-Identifier: GPL-2.0

//! The way back after a loss: down, drained, with a new queue pair up again, and not for ever.
//!
//! A connection that is lost and shall come back goes to `Disconnecting`. Its queue pair is moved to
//! ERROR and gives back all it holds, as flushed. Only when every completion has been put in the
//! rings ([`Qp::begin_drain`](rdma::qp::Qp::begin_drain) says when) is the queue pair replaced. So
//! whoever sees a new connection count has all events of the old queue pair before him. A device
//! that does not give back in time has the queue pair taken away, which comes to the same.
//!
//! The timer of a recovery starts when the connection is lost and ends when it is up again.
//!
//! If the port is down, nothing is sent before it has been up for a moment: on rxe the CM's own
//! queue pair does not survive a message that cannot be sent, and the destruction of an identifier
//! sends one. The old identifier is kept until then.

use super::{
    client::RETRY_DELAY,
    state::{
        Event,
        State,
        Step, //
    },
    work,
    Control,
    Pipe,
    Qp,
    Sconn, //
};
use crate::wire::{
    Disconnect,
    Refusal,
    Role, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic,
        Msecs, //
    },
    workqueue::WorkItem, //
};
use rdma::{
    addr::Resolution,
    cm::{
        reject,
        Id, //
    },
    lease::Owner, //
};

/// How long a queue pair may take to give back what it holds.
const DRAIN_LIMIT: Msecs = 20_000;

/// A time at which something is given up.
pub(super) struct Deadline {
    since: Instant<Monotonic>,
    span: Msecs,
}

impl Deadline {
    fn new(span: Msecs) -> Self {
        Self {
            since: Instant::now(),
            span,
        }
    }

    /// Milliseconds that are left; 0 if it is time. A timer may have run a little too early, or may
    /// have been set for an earlier occasion.
    fn left(&self) -> Msecs {
        let elapsed = Msecs::try_from(self.since.elapsed().as_millis()).unwrap_or(Msecs::MAX);
        self.span.saturating_sub(elapsed)
    }
}

/// What has to go without a lock, since that waits for handlers.
#[derive(Default)]
struct Retired {
    resolution: Option<Resolution<Sconn>>,
    ids: (Option<Id<Sconn>>, Option<Id<Sconn>>),
    qp: Option<Owner<Qp<Pipe>>>,
}

impl Retired {
    /// Waits for handlers, so no lock that they take may be held.
    fn end(self) {
        drop(self.resolution);
        drop(self.ids);
        drop(self.qp);
    }
}

impl Sconn {
    /// Returns whether a loss is worth a recovery.
    pub(super) fn can_recover(&self) -> bool {
        let job = &self.shared.job;
        self.was_connected() && job.params().reconnect_timeout != 0 && job.has_members()
    }

    /// Begins a recovery.
    pub(super) fn recover(self: &Arc<Self>, control: &mut Control, why: &str) {
        let was_up = self.state() == State::Connected;
        if !self.enter(State::Disconnecting) {
            return;
        }
        if was_up {
            rdma::ratelimited!(pr_info, "lost the connection to {}: {}\n", self.shared, why);
            let timeout = self.shared.job.params().reconnect_timeout;
            let timeout = timeout.saturating_mul(1000);
            control.reconnect = Some(Deadline::new(timeout));
            self.set_timer::<{ work::RECONNECT }>(timeout);
        }
        self.drain(control);
    }

    /// Lets the queue pair give back what it holds.
    pub(super) fn drain(self: &Arc<Self>, control: &mut Control) {
        let Ok(qp) = self.qp() else {
            return;
        };
        control.drain = Some(Deadline::new(DRAIN_LIMIT));
        self.set_timer::<{ work::DRAIN }>(DRAIN_LIMIT);
        qp.begin_drain();
    }

    /// Lets go of a queue pair that has given everything back.
    pub(super) fn retire_if_drained(self: &Arc<Self>) {
        let drained = self.qp().is_ok_and(|qp| qp.handler().notices().drained());
        if drained {
            self.retire();
        }
    }

    /// Lets go of the queue pair, and goes on with a new one if this is a recovery.
    fn retire(self: &Arc<Self>) {
        let retired = {
            let mut control = self.control.lock();
            let mut link = self.link.lock();
            control.drain = None;
            match link.state() {
                _ if control.closed => return,
                State::Disconnecting if link.qp.is_some() => {
                    let id = control.id.take();
                    let id = match control.port_was_up {
                        true => id,
                        false => core::mem::replace(&mut control.untold, id),
                    };
                    Retired {
                        resolution: control.resolution.take(),
                        ids: (id, None),
                        qp: link.qp.take(),
                    }
                }
                // The identifier stays, to answer the peer.
                State::Error => Retired {
                    qp: link.qp.take(),
                    ..Retired::default()
                },
                _ => return,
            }
        };
        retired.end();
        if self.state() == State::Disconnecting {
            let fresh = self.make_qp();
            let unused = self.renew(fresh);
            drop(unused);
        }
    }

    /// Starts anew with another queue pair; gives back what is of no use any more.
    fn renew(self: &Arc<Self>, fresh: Result<Owner<Qp<Pipe>>>) -> Option<Owner<Qp<Pipe>>> {
        let mut control = self.control.lock();
        if control.closed || self.state() != State::Disconnecting {
            return fresh.ok();
        }
        match fresh {
            Ok(qp) => {
                self.link.lock().qp = Some(qp);
                match self.shared.role {
                    Role::Server => {
                        self.enter(State::Waiting);
                        if control.untold.is_some() {
                            self.set_timer::<{ work::RETRY }>(RETRY_DELAY);
                        }
                    }
                    Role::Client => self.pause(),
                }
            }
            Err(_) => self.fail(&mut control, Some("no new queue pair")),
        }
        None
    }

    pub(super) fn port_is_up(&self) -> bool {
        let job = &self.shared.job;
        let port = job.device().rdma().query_port(job.identity().port);
        port.is_ok_and(|port| port.active)
    }

    /// Returns whether messages can be sent: once the port is up it takes a moment until there is a
    /// route.
    fn can_send(&self, control: &mut Control) -> bool {
        let up = self.port_is_up();
        core::mem::replace(&mut control.port_was_up, up) && up
    }

    /// Returns whether it is time for another attempt, or to tell the peer of the loss; makes a
    /// longer pause while the port is down.
    fn may_retry(self: &Arc<Self>, control: &mut Control) -> bool {
        let is_due = match self.state() {
            State::Delay => true,
            State::Error => false,
            _ => control.untold.is_some(),
        };
        if control.closed || !is_due {
            return false;
        }
        let may = !self.can_recover() || self.can_send(control);
        if !may {
            self.set_timer::<{ work::RETRY }>(RETRY_DELAY);
        }
        may
    }

    /// Tells the peer of the loss, if that is still to be done, and makes another attempt.
    fn retry(self: &Arc<Self>, fresh: Result<Id<Self>>) -> Retired {
        let mut guard = self.control.lock();
        let control = &mut *guard;
        let mut retired = Retired {
            ids: (None, control.untold.take()),
            ..Retired::default()
        };
        if let (_, Some(id)) = &retired.ids {
            let _ = self.disconnect(id, Disconnect::QpError, true);
        }
        if control.closed || self.state() != State::Delay {
            retired.ids.0 = fresh.ok();
            return retired;
        }
        retired.resolution = control.resolution.take();
        match fresh {
            Ok(id) => {
                retired.ids.0 = control.id.replace(id);
                self.begin(control);
            }
            Err(_) => self.fail(control, Some("no memory")),
        }
        retired
    }

    /// The time for a recovery is over. Gives what is to be ended without the lock.
    fn on_timeout(self: &Arc<Self>, control: &mut Control) -> Retired {
        let mut retired = Retired::default();
        if self.step(Event::TimedOut) != Step::Fail {
            return retired;
        }
        match (self.state(), self.shared.role) {
            // The CM would go on sending the REQ, after a REJ too, and in the end break what is
            // made after this; only the end of the identifier stops it.
            (State::Connecting, Role::Client) => retired.ids.0 = control.id.take(),
            (State::Connecting, Role::Server) => {
                if let Some(id) = &control.id {
                    self.refuse(id, reject::TIMEOUT, Refusal::TimedOut);
                    let _ = self.disconnect(id, Disconnect::TimedOut, false);
                }
            }
            _ => {}
        }
        self.fail(control, Some("it has taken too long"));
        retired.resolution = control.resolution.take();
        retired
    }
}

/// The pause before another attempt is over.
impl WorkItem<{ work::RETRY }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.may_retry(&mut this.control.lock()) {
            this.retry(this.new_id()).end();
        }
    }
}

/// The queue pair has been drained, or should have been.
impl WorkItem<{ work::DRAIN }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let left = {
            let control = this.control.lock();
            match &control.drain {
                Some(deadline) if !control.closed => deadline.left(),
                _ => return,
            }
        };
        if left == 0 {
            pr_warn!("{}: the device has not flushed all requests\n", this.shared);
            this.retire();
        } else {
            this.set_timer::<{ work::DRAIN }>(left);
        }
    }
}

/// The recovery is over, or should be.
impl WorkItem<{ work::RECONNECT }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut control = this.control.lock();
        let left = match &control.reconnect {
            Some(deadline) if !control.closed => deadline.left(),
            _ => return,
        };
        if left == 0 {
            let retired = this.on_timeout(&mut control);
            drop(control);
            retired.end();
        } else {
            this.set_timer::<{ work::RECONNECT }>(left);
        }
    }
}
