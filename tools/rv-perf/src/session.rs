// SPDX-License-Identifier: GPL-2.0

//! What both sides do with `/dev/rv` before and after the data moves.

use rv_client::{
    AttachConfig,
    Attachment,
    Conn,
    Device,
    Endpoint,
    ImmLayout,
    JobKey,
    PortChoice,
    Ring,
    Sysfs, //
};

use crate::cli::Common;
use crate::control::Control;
use crate::failure::{
    Failure,
    Result, //
};
use crate::message::Side;
use crate::wait::{
    Backoff,
    Deadline, //
};

/// The cache limit of the module if none is asked for, in MiB.
const DEFAULT_CACHE_MIB: u64 = 256;

/// What the two sides agree on for attaching.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// The job to join.
    pub(crate) key: JobKey,
    /// Queue pairs between the two nodes.
    pub(crate) num_conn: u8,
    /// Bits of the immediate that are the receiver's index.
    pub(crate) index_bits: u8,
}

/// An attachment that is not connected yet.
pub(crate) struct Attached {
    /// The attachment.
    pub(crate) attachment: Attachment,
    /// Its event ring.
    pub(crate) ring: Ring,
    /// Our port.
    pub(crate) endpoint: Endpoint,
}

/// An attachment with its connection to the peer.
pub(crate) struct Session {
    /// The attachment.
    pub(crate) attachment: Attachment,
    /// Its event ring.
    pub(crate) ring: Ring,
    /// The connection.
    pub(crate) conn: Conn,
    /// How immediates are split.
    pub(crate) layout: ImmLayout,
    /// Our port.
    endpoint: Endpoint,
}

/// Finds the port that the options and the TCP connection name.
pub(crate) fn find_port(common: &Common, control: &Control) -> Result<Endpoint> {
    let choice = PortChoice {
        device: common.device.clone(),
        port: common.ib_port,
        gid_index: common.gid_index,
    };
    Ok(Sysfs::default().select(&choice, control.local_ip()?)?)
}

/// Joins the job, with a ring for `events` events and a cache for `bytes` bytes.
pub(crate) fn attach(endpoint: Endpoint, job: &Job, events: u64, bytes: u64) -> Result<Attached> {
    // One entry stays free.
    let ring_entries = u32::try_from(events.saturating_add(1)).unwrap_or(u32::MAX);
    let config = AttachConfig {
        endpoint: endpoint.clone(),
        job_key: job.key,
        num_conn: job.num_conn,
        index_bits: job.index_bits,
        ring_entries,
        cache_mib: cache_mib(bytes),
        q_depth: 0,
        // A transfer that lost its connection is over.
        reconnect_timeout: 0,
        heartbeat_interval: 0,
        fr_pages: 0,
    };
    let attachment = Device::open()?.attach(&config)?;
    let ring = attachment.map_ring()?;
    Ok(Attached {
        attachment,
        ring,
        endpoint,
    })
}

/// Returns the cache limit to ask for: room for all memory twice, if the default has not that.
fn cache_mib(bytes: u64) -> u32 {
    let wanted = bytes.div_ceil(1 << 20).saturating_mul(2);
    if wanted <= DEFAULT_CACHE_MIB {
        return 0;
    }
    u32::try_from(wanted).unwrap_or(u32::MAX)
}

impl Attached {
    /// Makes the connection to `remote`, without any traffic.
    pub(crate) fn create_conn(self, job: &Job, remote: &Endpoint) -> Result<Session> {
        let conn = self.attachment.create_conn(remote)?;
        Ok(Session {
            attachment: self.attachment,
            ring: self.ring,
            conn,
            layout: ImmLayout::new(job.index_bits)?,
            endpoint: self.endpoint,
        })
    }
}

impl Session {
    /// Connects, which the peer must do as well, and waits until the connection is up.
    pub(crate) fn connect(&self, control: &mut Control) -> Result<()> {
        self.conn.connect()?;
        self.await_up(control)
    }

    /// Waits until the connection is up.
    pub(crate) fn await_up(&self, control: &mut Control) -> Result<()> {
        let deadline = Deadline::new(control.timeout());
        let mut backoff = Backoff::default();
        while !self.conn.connected().map_err(refused)? {
            control.watch()?;
            control.interrupt().check()?;
            deadline.check("the RDMA connection did not come up")?;
            backoff.wait();
        }
        Ok(())
    }

    /// Collects what this side has to report.
    pub(crate) fn side(&self, writes: u64, bytes: u64) -> Result<Side> {
        Ok(Side {
            endpoint: self.endpoint.clone(),
            rv_index: self.attachment.rv_index(),
            role: self.conn.role(),
            writes,
            bytes,
            cache: self.attachment.cache_stats()?,
            events: self.attachment.event_stats()?,
            conn: self.conn.stats()?,
        })
    }
}

/// Says what it means when the connection does not come up.
fn refused(error: rv_client::Error) -> Failure {
    match Failure::from(error) {
        Failure::Peer(_) => Failure::Peer(
            "the RDMA connection could not be made: the peer refused it or cannot be reached; \
             `dmesg` on both sides may tell more"
                .into(),
        ),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_has_room() {
        assert_eq!(cache_mib(32 << 20), 0);
        assert_eq!(cache_mib(128 << 20), 0);
        assert_eq!(cache_mib((128 << 20) + 1), 258);
        assert_eq!(cache_mib(u64::MAX), u32::MAX);
    }
}
