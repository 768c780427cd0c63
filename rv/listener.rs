// SPDX-License-Identifier: GPL-2.0

//! Listeners: one for each device and service, shared by all jobs with that service.
//!
//! A REQ names its job and its connection; the checks are in the order of the protocol, and each
//! has the reason that the peer is told.

use crate::{
    conn::Conn,
    device::RvDevice,
    job::Job,
    trace,
    wire::{
        Farewell,
        Refusal,
        Req, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};
use rdma::cm::{
    self,
    reject,
    Listen,
    Request, //
};

/// A service that is listened for, and by how many jobs.
struct Service {
    id: u64,
    jobs: usize,
    listener: cm::Listener<Acceptor>,
}

/// The services of one device.
pub(crate) struct Listeners(KVec<Service>);

/// A job's share in a listener; dropping it gives the share back.
pub(crate) struct Listening {
    device: Arc<RvDevice>,
    service_id: u64,
}

impl Listeners {
    pub(crate) fn new() -> Self {
        Self(KVec::new())
    }

    /// The number of services.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Listening {
    /// Listens for `service_id` on `device`, with those who do already.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EBUSY` if somebody outside of rv listens there.
    pub(crate) fn new(device: &Arc<RvDevice>, service_id: u64) -> Result<Self> {
        let mut services = device.listeners.lock();
        if let Some(service) = services.0.iter_mut().find(|s| s.id == service_id) {
            service.jobs += 1;
        } else {
            let acceptor = Arc::new(
                Acceptor {
                    device: device.clone(),
                },
                GFP_KERNEL,
            )?;
            services.0.reserve(1, GFP_KERNEL)?;
            let service = Service {
                id: service_id,
                jobs: 1,
                listener: cm::Listener::new(device.rdma(), service_id, acceptor)?,
            };
            services
                .0
                .push_within_capacity(service)
                .map_err(|_| ENOMEM)?;
        }
        Ok(Self {
            device: device.clone(),
            service_id,
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut services = self.device.listeners.lock();
        let Some(at) = services.0.iter().position(|s| s.id == self.service_id) else {
            return;
        };
        let last = match services.0.get_mut(at) {
            Some(service) => {
                service.jobs -= 1;
                service.jobs == 0
            }
            None => false,
        };
        // Destroying the listener waits for its handler, which does not take this lock; keeping it
        // lets nobody find the service busy that is about to end.
        if last {
            if let Ok(service) = services.0.remove(at) {
                drop(service.listener);
            }
        }
    }
}

/// Who answers the REQs of a service.
pub(crate) struct Acceptor {
    device: Arc<RvDevice>,
}

impl Acceptor {
    /// Finds the connection that a REQ is for, or says why there is none.
    fn find(&self, request: &Request<'_>) -> Result<(Arc<Conn>, Req), Refusal> {
        let req = Req::parse(request.private())?;
        if !request.is_rc() || request.has_srq() || request.has_alternate_path() {
            return Err(Refusal::InvalidReq);
        }
        let path = request.path();
        let conn = Job::find(&self.device, |job| {
            if job.is_asked_for(&req, request.port(), &path) {
                job.find_conn(&path, req.index)
            } else {
                None
            }
        })
        .ok_or(Refusal::NotFound)?;
        conn.check_path(&path)?;
        Ok((conn, req))
    }
}

impl Listen for Acceptor {
    fn request(self: ArcBorrow<'_, Self>, request: &mut Request<'_>) {
        let outcome = self.find(request).and_then(|(conn, req)| {
            let sconn = conn.sconn(req.index).ok_or(Refusal::NotFound)?;
            sconn.on_req(request)
        });
        if let Err(refusal) = outcome {
            let why = Farewell::refuse(refusal).emit();
            let sent = request.id().send_rej(reject::CONSUMER_DEFINED, &why);
            // CAST: The enum is a `u32`.
            trace::cm_send(0, 0, c"REJ", refusal as u32, trace::errno(&sent));
            if let Err(e) = sent {
                rdma::ratelimited!(pr_warn, "a REJ could not be sent: {:?}\n", e);
            }
        }
    }
}
