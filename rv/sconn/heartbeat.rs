// SPDX-License-Identifier: GPL-2.0

//! Heartbeats: a client whose connection is idle sends an empty message now and then.
//!
//! The peer's hardware confirms it, or does not: that is how a connection without traffic is found
//! to be lost. The timer runs as long as the connection is up, whatever became of the last
//! heartbeat, and there is never more than one under way.

use super::{
    data::Sent,
    state::State,
    work,
    Control,
    Sconn, //
};
use crate::{
    trace,
    wire::Role, //
};
use kernel::{
    sync::Arc,
    workqueue::WorkItem, //
};

impl Sconn {
    /// Starts the timer of a connection that has come up.
    pub(super) fn start_heartbeat(self: &Arc<Self>, control: &mut Control) {
        let interval = self.shared.job.params().hb_interval;
        if self.shared.role == Role::Client && interval != 0 {
            control.activity = self.link.lock().activity();
            self.set_timer::<{ work::HEARTBEAT }>(interval);
        }
    }

    /// Sends a heartbeat if nothing has moved since the last one was due.
    fn beat(&self, control: &mut Control) {
        let due = {
            let mut link = self.link.lock();
            let activity = link.activity();
            let idle = activity == core::mem::replace(&mut control.activity, activity);
            let due = idle && !link.heartbeat;
            link.heartbeat |= due;
            due
        };
        if !due {
            return;
        }
        let sent = self.qp().and_then(|qp| qp.post_empty_send(Sent::Heartbeat));
        let ret = trace::errno(&sent);
        trace::heartbeat_post(self.shared.conn_handle, self.index, ret);
        let mut link = self.link.lock();
        match sent {
            Ok(()) => link.stats.post_hb += 1,
            Err(_) => {
                link.stats.post_hb_fail += 1;
                link.heartbeat = false;
            }
        }
    }
}

impl WorkItem<{ work::HEARTBEAT }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut control = this.control.lock();
        if control.closed || this.state() != State::Connected {
            return;
        }
        this.beat(&mut control);
        this.set_timer::<{ work::HEARTBEAT }>(this.shared.job.params().hb_interval);
    }
}
