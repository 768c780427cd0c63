// SPDX-License-Identifier: GPL-2.0

//! The module's part of debugfs, `/sys/kernel/debug/rv`: tables of what there is, and a switch.
//!
//! A table has a line for each object, of pairs `key=value` with a blank between. Keys never change
//! their meaning; new ones come at any place. `rv-stat` and scripts read them.
//!
//! A read takes the locks of rv one after another, in their order, and only to copy references or
//! numbers; text is made with none of them held. So tables are right line by line, while objects
//! come and go between the lines. References that a read holds end with it.
//!
//! When the files are removed, reads under way have ended: they find all that they need.

use crate::{
    attach::Row,
    cache::{
        self,
        policy::Switch, //
    },
    conn::Conn,
    device::RvDevice,
    job::Job,
    ring,
    stats,
    trace::Named, //
};
use core::fmt::{
    self,
    Display,
    Formatter, //
};
use kernel::{
    debugfs::{
        Dir,
        File,
        Writer, //
    },
    prelude::*,
    sync::Arc, //
};

/// The most lines of a table. What is beyond is counted in a last line, `more=`.
const MAX_LINES: usize = 16_384;

/// The files. They go when it is dropped.
#[pin_data]
pub(crate) struct DebugFs {
    #[pin]
    _registration: File<Switch>,
    #[pin]
    _devices: File<Table>,
    #[pin]
    _jobs: File<Table>,
    #[pin]
    _conns: File<Table>,
    #[pin]
    _files: File<Table>,
    _dir: Dir,
}

impl DebugFs {
    /// Creates the files.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        let dir = Dir::new(c"rv");
        try_pin_init!(Self {
            _registration <- dir.read_write_file(c"registration", Switch),
            _devices <- dir.read_only_file(c"devices", Table(devices)),
            _jobs <- dir.read_only_file(c"jobs", Table(jobs)),
            _conns <- dir.read_only_file(c"conns", Table(conns)),
            _files <- dir.read_only_file(c"files", Table(files)),
            _dir: dir,
        }? Error)
    }
}

/// A table, by what prints its lines.
struct Table(fn(&mut Lines<'_, '_>) -> Result);

impl Writer for Table {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut lines = Lines {
            f,
            left: MAX_LINES,
            more: 0,
        };
        let outcome = (self.0)(&mut lines);
        let more = lines.more;
        if more != 0 {
            writeln!(f, "more={more}")?;
        }
        match outcome {
            Ok(()) => Ok(()),
            Err(e) => writeln!(f, "incomplete={}", e.to_errno()),
        }
    }
}

/// Takes the lines of a table, up to so many.
struct Lines<'a, 'b> {
    f: &'a mut Formatter<'b>,
    left: usize,
    more: usize,
}

impl Lines<'_, '_> {
    fn line(&mut self, args: fmt::Arguments<'_>) -> Result {
        if self.left == 0 {
            self.more += 1;
            return Ok(());
        }
        self.left -= 1;
        writeln!(self.f, "{args}").map_err(|_| EIO)
    }
}

fn devices(lines: &mut Lines<'_, '_>) -> Result {
    for device in RvDevice::all()? {
        let (mut members, mut conns) = (0, 0);
        let jobs = Job::all(&device)?;
        for job in &jobs {
            members += job.member_count();
            conns += job.conns()?.len();
        }
        lines.line(format_args!(
            "device={} ports={} jobs={} members={members} conns={conns} files={} services={}",
            Text(&device.name()),
            device.rdma().port_count(),
            jobs.len(),
            device.file_count(),
            device.service_count(),
        ))?;
    }
    Ok(())
}

fn jobs(lines: &mut Lines<'_, '_>) -> Result {
    for device in RvDevice::all()? {
        for job in Job::all(&device)? {
            let (identity, params) = (job.identity(), job.params());
            lines.line(format_args!(
                "device={} job={} port={} uid={} gid_index={} gid={} loc_addr={:#x} members={} \
                 max_members={} conns={} num_conn={} q_depth={} service_id={:#x} \
                 reconnect_timeout={} hb_interval={}",
                Text(&device.name()),
                job.id(),
                identity.port,
                identity.uid,
                identity.gid_index,
                Hex(&params.loc_gid.0),
                identity.loc_addr,
                job.member_count(),
                1_u32 << params.index_bits,
                job.conns()?.len(),
                params.num_conn,
                params.q_depth,
                params.service_id,
                params.reconnect_timeout,
                params.hb_interval,
            ))?;
        }
    }
    Ok(())
}

fn conns(lines: &mut Lines<'_, '_>) -> Result {
    for device in RvDevice::all()? {
        for job in Job::all(&device)? {
            for conn in job.conns()? {
                parts(lines, &device, &job, &conn)?;
            }
        }
    }
    Ok(())
}

/// The single connections of a connection.
fn parts(lines: &mut Lines<'_, '_>, device: &RvDevice, job: &Job, conn: &Arc<Conn>) -> Result {
    let address = conn.address();
    for sconn in conn.parts() {
        let row = sconn.row();
        lines.line(format_args!(
            "device={} job={} conn={} index={} role={} state={} users={} rem_addr={:#x} \
             gid={} lid={} qp={} depth={} was_connected={} state_us={}{}",
            Text(&device.name()),
            job.id(),
            conn.handle(),
            row.index,
            conn.role().name().to_str().unwrap_or("?"),
            row.state.name().to_str().unwrap_or("?"),
            conn.users(),
            address.rem_addr,
            Hex(&address.dgid.0),
            address.dlid,
            row.qp,
            row.depth,
            u8::from(row.was_connected),
            row.state_us,
            ConnStats(&row.stats),
        ))?;
    }
    Ok(())
}

fn files(lines: &mut Lines<'_, '_>) -> Result {
    for device in RvDevice::all()? {
        for row in device.file_rows()? {
            file(lines, &device, &row)?;
        }
    }
    Ok(())
}

fn file(lines: &mut Lines<'_, '_>, device: &RvDevice, row: &Row) -> Result {
    lines.line(format_args!(
        "device={} mode={} job={} index={} port={} pid={} comm={} cache={}{}{}",
        Text(&device.name()),
        row.mode,
        row.job,
        row.index,
        row.port,
        row.pid,
        Text(&row.comm),
        row.cache,
        CacheStats(&row.cache_stats),
        RingState(&row.ring),
    ))
}

/// Declares how the fields of a structure are printed: a blank, name and value of each.
macro_rules! pairs {
    ($(#[$meta:meta])* $name:ident($from:ty): $($field:ident)*) => {
        $(#[$meta])*
        struct $name<'a>(&'a $from);

        impl Display for $name<'_> {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                $( write!(f, concat!(" ", stringify!($field), "={}"), self.0.$field)?; )*
                Ok(())
            }
        }
    };
}

pairs! {
    /// The statistics of a single connection, with the names that CONN_GET_STATS has.
    ConnStats(stats::Stats):
    req_error req_recv rep_error rep_recv rtu_recv established dreq_error dreq_recv drep_recv
    timewait mra_recv rej_recv lap_error lap_recv apr_recv unexp_event req_sent rep_sent rtu_sent
    rej_sent dreq_sent drep_sent wait_time resolve_time connect_time connected_time resolve
    resolve_fail conn_recovery rewait_time reresolve_time reconnect_time max_rewait_time
    max_reresolve_time max_reconnect_time reresolve reresolve_fail post_write post_write_fail
    post_write_bytes outstand_send_write send_write_cqe send_write_cqe_fail recv_write_cqe
    recv_write_bytes recv_cqe_fail post_hb post_hb_fail send_hb_cqe send_hb_cqe_fail recv_hb_cqe
}

pairs! {
    /// The statistics of an MR cache, with the names that GET_CACHE_STATS has.
    CacheStats(cache::Stats):
    cache_size max_cache_size limit_cache_size count max_count inuse max_inuse inuse_bytes
    max_inuse_bytes max_refcount hit miss full failed remove evict
}

pairs! {
    /// A ring, and its statistics with the names that GET_EVENT_STATS has.
    RingState(ring::Row):
    ring_entries ring_used ring_overflows ring_mapped send_write_cqe send_write_cqe_fail
    send_write_bytes recv_write_cqe recv_write_bytes
}

/// A name with NUL or without. What could be taken for the end of a value is escaped.
struct Text<'a>(&'a [u8]);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for byte in self.0.iter().take_while(|byte| **byte != 0) {
            match byte {
                b'\\' | b'=' => write!(f, "\\x{byte:02x}")?,
                _ if byte.is_ascii_graphic() => write!(f, "{}", char::from(*byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

/// A GID, as the 32 digits that its bytes have.
struct Hex<'a>(&'a [u8; 16]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
