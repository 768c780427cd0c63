// SPDX-License-Identifier: GPL-2.0

//! Single connections: one queue pair to another node, from the first REQ to its end.
//!
//! A single connection is one of the `num_conn` that make up a [`Conn`](crate::conn::Conn). Its
//! states, and what an event means in each, are in [`state`], the ways up in [`client`] and
//! [`server`], the way back after a loss in [`recovery`], the data path in [`data`]; this file has
//! what they share, and takes it down.
//!
//! What happens comes from four sides, each in process context: the CONNECT ioctl, address
//! resolution, the connection manager, and work items (timers, and what is noticed where one must
//! not sleep). All of them take `control` first and then work on the state, so they are serialised.
//!
//! Lock order: `control` (may sleep), then `link` (spins; the data path takes only this). Neither
//! is held where one would wait for a handler: connection identifiers, resolutions and queue pairs
//! are taken out under the lock and dropped after it.
//!
//! A timer that is not wanted any more is not waited for: it looks at the state when it runs, and
//! holds a reference until then. Teardown lets all of them run at once.
//!
//! Teardown, in [`Sconn::take_down`]: no more attempts, no more timers; the identifier goes (which
//! tells the peer); the queue pair is drained for a bounded time and destroyed, which hands what is
//! left in it back as flushed.

mod client;
pub(crate) mod data;
mod heartbeat;
mod link;
mod recovery;
mod row;
mod server;
pub(crate) mod state;
mod trace;

pub(crate) use data::Outstanding;

use crate::{
    conn::Shared,
    stats::Stats,
    wire::{
        Disconnect,
        Farewell,
        Refusal,
        Role, //
    }, //
};
use data::Pipe;
use kernel::{
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_mutex,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        Mutex,
        SpinLock, //
    },
    time::{
        msecs_to_jiffies,
        Msecs, //
    },
    workqueue::{
        DelayedWork,
        HasDelayedWork,
        Work,
        WorkItem, //
    }, //
};
use link::{
    Link,
    QpLease, //
};
use rdma::{
    addr::{
        Resolution,
        Resolve, //
    },
    cm::{
        self,
        Event,
        Id,
        IdRef, //
    },
    lease::Owner,
    path::{
        Record,
        Route, //
    },
    qp::{
        Init,
        PollContext,
        Qp, //
    }, //
};
use recovery::Deadline;
use state::{
    State,
    Step, //
};

/// How long teardown waits for outstanding writes to be flushed.
const DRAIN_TIMEOUT: Msecs = 2_000;

/// Parameters of REQ and REP. Both nodes need not agree on them.
mod cm_param {
    /// Resends without an ACK. 7 would be endless on soft-RoCE, where a dead link would never be
    /// noticed.
    pub(super) const RETRY_COUNT: u8 = 6;
    /// Resends when the peer has no receive: endless.
    pub(super) const RNR_RETRY_COUNT: u8 = 7;
    /// Repetitions of a message of the connection manager.
    pub(super) const MAX_CM_RETRIES: u8 = 15;
    /// Time to answer a message: 4.096 µs · 2^17, about half a second.
    pub(super) const RESPONSE_TIMEOUT: u8 = 17;
    /// The delay that a missing receive asks for: 0.64 ms.
    pub(super) const MIN_RNR_TIMER: u8 = 12;
}

/// The cold part of a single connection.
struct Control {
    id: Option<Id<Sconn>>,
    /// That of a connection which was lost with the port, so that the peer was not told.
    untold: Option<Id<Sconn>>,
    /// Whether the port was up when it was last looked at.
    port_was_up: bool,
    resolution: Option<Resolution<Sconn>>,
    /// The path of CONN_CONNECT.
    path: Option<Record>,
    /// Attempts left to resolve the address.
    resolve_retries: u32,
    /// Attempts left to send a REQ.
    req_retries: u32,
    /// When a recovery that is under way is given up.
    reconnect: Option<Deadline>,
    /// When the queue pair must have given everything back.
    drain: Option<Deadline>,
    /// What had moved when the last heartbeat was due.
    activity: u64,
    /// Being taken down: nothing is begun any more.
    closed: bool,
}

/// A single connection.
#[pin_data]
pub(crate) struct Sconn {
    pub(in crate::sconn) shared: Arc<Shared>,
    pub(in crate::sconn) index: u8,
    #[pin]
    control: Mutex<Control>,
    #[pin]
    pub(in crate::sconn) link: SpinLock<Link>,
    #[pin]
    noticed: Work<Sconn, { work::NOTICED }>,
    #[pin]
    teardown: Work<Sconn, { work::TEARDOWN }>,
    #[pin]
    retry: DelayedWork<Sconn, { work::RETRY }>,
    #[pin]
    drain: DelayedWork<Sconn, { work::DRAIN }>,
    #[pin]
    reconnect: DelayedWork<Sconn, { work::RECONNECT }>,
    #[pin]
    heartbeat: DelayedWork<Sconn, { work::HEARTBEAT }>,
}

/// Numbers of the work items.
mod work {
    pub(super) const NOTICED: u64 = 0;
    pub(super) const TEARDOWN: u64 = 1;
    pub(super) const RETRY: u64 = 2;
    pub(super) const DRAIN: u64 = 3;
    pub(super) const RECONNECT: u64 = 4;
    pub(super) const HEARTBEAT: u64 = 5;
}

impl_has_work! {
    impl HasWork<Self, { work::NOTICED }> for Sconn { self.noticed }
    impl HasWork<Self, { work::TEARDOWN }> for Sconn { self.teardown }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { work::RETRY }> for Sconn { self.retry }
    impl HasDelayedWork<Self, { work::DRAIN }> for Sconn { self.drain }
    impl HasDelayedWork<Self, { work::RECONNECT }> for Sconn { self.reconnect }
    impl HasDelayedWork<Self, { work::HEARTBEAT }> for Sconn { self.heartbeat }
}

impl Sconn {
    /// Makes a single connection with its queue pair.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the device's queues are too short, or the driver's error.
    pub(crate) fn new(shared: &Arc<Shared>, index: u8) -> Result<Arc<Self>> {
        let depth = shared.job.params().qp_depth();
        let sconn = Arc::pin_init(
            pin_init!(Self {
                shared: shared.clone(),
                index,
                control <- new_mutex!(Control {
                    id: None,
                    untold: None,
                    port_was_up: true,
                    resolution: None,
                    path: None,
                    resolve_retries: client::RESOLVE_RETRIES,
                    req_retries: client::REQ_RETRIES,
                    reconnect: None,
                    drain: None,
                    activity: 0,
                    closed: false,
                }),
                link <- new_spinlock!(Link::new(shared, *index, depth)),
                noticed <- new_work!("rv_sconn::noticed"),
                teardown <- new_work!("rv_sconn::teardown"),
                retry <- new_delayed_work!("rv_sconn::retry"),
                drain <- new_delayed_work!("rv_sconn::drain"),
                reconnect <- new_delayed_work!("rv_sconn::reconnect"),
                heartbeat <- new_delayed_work!("rv_sconn::heartbeat"),
            }),
            GFP_KERNEL,
        )?;
        let qp = sconn.make_qp()?;
        sconn.link.lock().qp = Some(qp);
        Ok(sconn)
    }

    /// Makes a queue pair. Beside the writes a heartbeat must fit into it, on either side.
    fn make_qp(self: &Arc<Self>) -> Result<Owner<Qp<Pipe>>> {
        let requests = self.shared.job.params().qp_depth() + 1;
        let init = Init {
            max_send_wr: requests,
            max_recv_wr: requests,
            poll: PollContext::Workqueue,
        };
        Owner::new(Qp::new(self.shared.job.pd(), &init, Pipe::new(self)?)?)
    }

    /// Enters a state, if it may follow the present one.
    fn enter(&self, next: State) -> bool {
        self.link.lock().enter(next)
    }

    fn state(&self) -> State {
        self.link.lock().state()
    }

    fn qp(&self) -> Result<QpLease> {
        self.link.lock().qp().ok_or(EIO)
    }

    /// What `event` means now.
    fn step(&self, event: state::Event) -> Step {
        self.state().on(event, self.can_recover())
    }

    /// Does what `event` means, if that is going down.
    fn apply(self: &Arc<Self>, control: &mut Control, event: state::Event, why: &str) -> Step {
        let step = self.step(event);
        match step {
            Step::Recover => self.recover(control, why),
            Step::Fail => self.fail(control, Some(why)),
            Step::Proceed | Step::Ignore => {}
        }
        step
    }

    /// Sets a timer, or sets it anew.
    fn set_timer<const ID: u64>(self: &Arc<Self>, delay: Msecs)
    where
        Self: WorkItem<ID, Pointer = Arc<Self>> + HasDelayedWork<Self, ID>,
    {
        let queue = self.shared.job.device().workqueue();
        queue.set_timer::<Self, ID>(self.clone(), msecs_to_jiffies(delay));
    }

    /// Changes the statistics.
    fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.link.lock().stats);
    }

    // --- What the ioctls ask -----------------------------------------------------------------

    /// Connects along `path`, or compares it with the path there is already.
    ///
    /// # Errors
    ///
    /// `EEXIST` if that is another one; `ENOMEM`.
    pub(crate) fn connect(self: &Arc<Self>, path: &Record) -> Result {
        let mut control = self.control.lock();
        match &control.path {
            // Without a LID, which only RoCE has, a path counts as none: the last one holds.
            Some(known) if known.dlid != 0 => {
                return if is_same_path(known, path) {
                    Ok(())
                } else {
                    Err(EEXIST)
                };
            }
            _ => control.path = Some(*path),
        }
        if self.shared.role == Role::Server || self.state() != State::Init || control.closed {
            return Ok(());
        }
        match self.new_id() {
            Ok(id) => {
                control.id = Some(id);
                self.begin(&mut control);
                Ok(())
            }
            Err(e) => {
                self.fail(&mut control, Some("no memory"));
                Err(e)
            }
        }
    }

    /// Returns whether the connection is up, or was.
    ///
    /// # Errors
    ///
    /// `EIO` if it is in error.
    pub(crate) fn is_connected(&self) -> Result<bool> {
        let link = self.link.lock();
        match link.state() {
            State::Connected => Ok(true),
            State::Error => Err(EIO),
            _ => Ok(link.was_connected),
        }
    }

    /// How often the connection has come up.
    ///
    /// # Errors
    ///
    /// `EIO` if it is in error.
    pub(crate) fn conn_count(&self) -> Result<u32> {
        let link = self.link.lock();
        match link.state() {
            State::Error => Err(EIO),
            _ => Ok(link.conn_count()),
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state() == State::Error
    }

    pub(crate) fn was_connected(&self) -> bool {
        self.link.lock().was_connected
    }

    pub(crate) fn stats(&self) -> Stats {
        self.link.lock().snapshot(self.index)
    }

    // --- Going down ------------------------------------------------------------------------------

    fn refuse(&self, id: &IdRef, code: u32, refusal: Refusal) {
        let sent = id.send_rej(code, &Farewell::refuse(refusal).emit());
        // CAST: The enum is a `u32`.
        if self.trace_sent(c"REJ", refusal as u32, sent).is_ok() {
            self.count(|stats| stats.rej_sent += 1);
        }
    }

    fn disconnect(&self, id: &IdRef, why: Disconnect, recoverable: bool) -> Result {
        let sent = id.send_dreq(&Farewell::disconnect(why, recoverable).emit());
        // CAST: The enum is a `u32`.
        self.trace_sent(c"DREQ", why as u32, sent)?;
        self.count(|stats| stats.dreq_sent += 1);
        Ok(())
    }

    /// The connection is up.
    fn come_up(self: &Arc<Self>, control: &mut Control) {
        let again = self.was_connected();
        if !self.enter(State::Connected) {
            return;
        }
        control.reconnect = None;
        if again {
            rdma::ratelimited!(pr_info, "reconnected to {}\n", self.shared);
        }
        self.start_heartbeat(control);
    }

    /// Enters `Error`: what is outstanding is flushed, and with it every process is told. Says why,
    /// unless this is how connections normally end.
    fn fail(self: &Arc<Self>, control: &mut Control, why: Option<&str>) {
        let (before, was_connected) = {
            let link = self.link.lock();
            (link.state(), link.was_connected)
        };
        if !self.enter(State::Error) {
            return;
        }
        if let Some(why) = why {
            let what = match (before, was_connected) {
                (State::Connected, _) => "lost the connection",
                (_, true) => "unable to reconnect",
                (_, false) => "unable to connect",
            };
            rdma::ratelimited!(pr_info, "{} to {}: {}\n", what, self.shared, why);
        }
        self.drain(control);
    }

    /// The peer disconnects. Without a reason it has just come to its end.
    fn on_dreq(self: &Arc<Self>, control: &mut Control, id: &IdRef, private: &[u8]) {
        if self.trace_sent(c"DREP", 0, id.send_drep()).is_ok() {
            self.count(|stats| stats.drep_sent += 1);
        }
        let farewell = Farewell::parse(private);
        if farewell == Farewell::NONE && self.state() != State::Disconnecting {
            self.fail(control, None);
            return;
        }
        let recoverable = farewell.recoverable;
        let event = state::Event::Dreq { recoverable };
        self.apply(control, event, "the peer has disconnected");
    }

    /// What the queue pair has said of itself; called in process context.
    fn on_notice(self: &Arc<Self>, control: &mut Control) {
        let Ok(qp) = self.qp() else {
            return;
        };
        let notices = qp.handler().notices();
        if notices.take_comm_est() && self.state() == State::Connecting {
            if let Some(id) = &control.id {
                // An RTU that came meanwhile makes this superfluous, and then it is refused.
                let _ = id.notify_established();
            }
        }
        if notices.take_path_mig() && self.state() == State::Connected {
            if let Some(id) = &control.id {
                // Refused if there is no alternate path, which nobody has asked for.
                let _ = id.notify_migrated();
            }
        }
        if notices.cq_lost() {
            let why = "a completion queue is in error";
            self.on_lost(control, state::Event::CqLost, Disconnect::CqError, why);
        } else if notices.lost() {
            let why = "the queue pair is in error";
            self.on_lost(control, state::Event::QpLost, Disconnect::QpError, why);
        }
    }

    /// The queues are of no use any more: tells the peer, and goes down.
    fn on_lost(
        self: &Arc<Self>,
        control: &mut Control,
        event: state::Event,
        code: Disconnect,
        why: &str,
    ) {
        let step = self.step(event);
        if step == Step::Ignore || self.state() == State::Error {
            return;
        }
        // A message could not be sent, and trying to ruins the CM's own queue pair on rxe.
        control.port_was_up = self.port_is_up();
        if let (true, Some(id)) = (control.port_was_up, &control.id) {
            self.part(id, code, step == Step::Recover);
        }
        self.apply(control, event, why);
    }

    /// Tells the peer that this side goes down, in the words that fit how far they have come.
    fn part(&self, id: &IdRef, code: Disconnect, recoverable: bool) {
        let unconfirmed = self.disconnect(id, code, recoverable).is_err();
        // A REP is out. (A REQ that is out ends with the identifier: the CM would send it on
        // and on after a REJ.)
        if unconfirmed && recoverable && self.shared.role == Role::Server {
            self.refuse(id, cm::reject::CONSUMER_DEFINED, Refusal::Connecting);
        }
    }

    /// Lets what has been noted about the queue pair be looked at, from any context.
    pub(in crate::sconn) fn notice(self: &Arc<Self>) {
        let queue = self.shared.job.device().workqueue().queue();
        let _ = queue.enqueue::<_, { work::NOTICED }>(self.clone());
    }

    /// Takes the connection down, in the background. To be called once.
    pub(crate) fn shut_down(self: &Arc<Self>) {
        let queue = self.shared.job.device().workqueue().queue();
        let _ = queue.enqueue::<_, { work::TEARDOWN }>(self.clone());
    }

    fn take_down(self: &Arc<Self>) {
        let (ids, resolution) = {
            let mut control = self.control.lock();
            control.closed = true;
            let ids = (control.id.take(), control.untold.take());
            (ids, control.resolution.take())
        };
        drop(resolution);
        // Tells the peer: without private data, which is how a normal end looks.
        drop(ids);
        self.enter(State::Error);
        // Whatever is due comes now, finds the connection closed, and lets go of it.
        self.set_timer::<{ work::RETRY }>(0);
        self.set_timer::<{ work::DRAIN }>(0);
        self.set_timer::<{ work::RECONNECT }>(0);
        self.set_timer::<{ work::HEARTBEAT }>(0);
        let qp = self.link.lock().qp.take();
        let drained = match qp.as_ref().and_then(Owner::lease) {
            Some(qp) => qp.drain(DRAIN_TIMEOUT),
            None => true,
        };
        if !drained {
            pr_warn!("{}: the device has not flushed all requests\n", self.shared);
        }
    }
}

/// Returns whether two processes ask for the same path.
fn is_same_path(one: &Record, other: &Record) -> bool {
    let essence = |path: &Record| {
        Record {
            // Not part of what makes a path.
            reversible: false,
            numb_path: 0,
            mtu_selector: 0,
            rate_selector: 0,
            packet_life_time_selector: 0,
            preference: 0,
            ..*path
        }
    };
    essence(one) == essence(other)
}

impl Resolve for Sconn {
    fn resolved(self: ArcBorrow<'_, Self>, outcome: Result<Route>) {
        let sconn = Arc::from(self);
        let mut control = sconn.control.lock();
        if sconn.state() != State::Resolving || control.closed {
            return;
        }
        match outcome {
            Ok(route) => sconn.send_req(&mut control, Some(route)),
            Err(e) => sconn.on_unresolved(&mut control, e),
        }
    }
}

impl cm::Handler for Sconn {
    fn event(self: ArcBorrow<'_, Self>, id: &IdRef, event: Event<'_>) {
        let sconn = Arc::from(self);
        sconn.count(|stats| count_event(stats, &event));
        let mut guard = sconn.control.lock();
        let control = &mut *guard;
        let current = control.id.as_ref().is_some_and(|own| own.is(id));
        if !current {
            return;
        }
        sconn.trace_event(&event);
        match event {
            Event::Rep(rep) => sconn.on_rep(control, id, &rep),
            Event::Rtu | Event::Established => sconn.on_ready(control, id),
            Event::Rej { reason, private } => sconn.on_rej(control, reason, private),
            Event::Dreq(private) => sconn.on_dreq(control, id, private),
            Event::ReqError | Event::RepError => {
                sconn.apply(control, state::Event::NoAnswer, "the peer does not answer");
            }
            _ => {}
        }
    }
}

/// Counts an event, be it of the present identifier or of one that is about to go.
fn count_event(stats: &mut Stats, event: &Event<'_>) {
    let counter = match event {
        Event::Rep(_) => &mut stats.rep_recv,
        Event::Rtu => &mut stats.rtu_recv,
        Event::Established => &mut stats.established,
        Event::Rej { .. } => &mut stats.rej_recv,
        Event::Dreq(_) => &mut stats.dreq_recv,
        Event::ReqError => &mut stats.req_error,
        Event::RepError => &mut stats.rep_error,
        Event::DreqError => &mut stats.dreq_error,
        Event::Drep => &mut stats.drep_recv,
        Event::TimewaitExit => &mut stats.timewait,
        Event::Mra => &mut stats.mra_recv,
        Event::LapError => &mut stats.lap_error,
        Event::Lap => &mut stats.lap_recv,
        Event::Apr => &mut stats.apr_recv,
        Event::Other(_) => &mut stats.unexp_event,
    };
    *counter += 1;
}

/// What was noticed where one must not sleep.
impl WorkItem<{ work::NOTICED }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.on_notice(&mut this.control.lock());
        this.retire_if_drained();
    }
}

/// The last user has gone.
impl WorkItem<{ work::TEARDOWN }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.take_down();
    }
}
