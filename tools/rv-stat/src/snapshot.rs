// SPDX-License-Identifier: GPL-2.0

//! All tables at one moment.

use std::path::Path;
use std::time::{
    Instant,
    SystemTime,
    UNIX_EPOCH, //
};

use crate::cli::Section;
use crate::failure::Result;
use crate::record::Record;
use crate::source;

/// All tables at one moment. Each was read a little later than the one before.
pub(crate) struct Snapshot {
    pub(crate) taken: Instant,
    /// Seconds since 1970.
    pub(crate) time: f64,
    pub(crate) devices: Vec<Record>,
    pub(crate) jobs: Vec<Record>,
    pub(crate) conns: Vec<Record>,
    pub(crate) files: Vec<Record>,
    /// What a table has left out, or why: see [`Snapshot::notes`].
    notes: Vec<String>,
}

impl Snapshot {
    /// Reads the tables in `directory`.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let mut notes = Vec::new();
        let mut table = |name| -> Result<Vec<Record>> {
            let mut records = source::table(directory, name)?;
            records.retain(|record| match note(name, record) {
                Some(note) => {
                    notes.push(note);
                    false
                }
                None => true,
            });
            Ok(records)
        };
        Ok(Self {
            taken: Instant::now(),
            time: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |since| since.as_secs_f64()),
            devices: table("devices")?,
            jobs: table("jobs")?,
            conns: table("conns")?,
            files: table("files")?,
            notes,
        })
    }

    /// The records of a section.
    pub(crate) fn records(&self, section: Section) -> &[Record] {
        match section {
            Section::Devices => &self.devices,
            Section::Jobs => &self.jobs,
            Section::Conns => &self.conns,
            Section::Files => &self.files,
        }
    }

    /// What is missing in the tables.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// What a line says about its table, if it is no object.
fn note(table: &str, record: &Record) -> Option<String> {
    if record.get("more").is_some() {
        return Some(format!(
            "{table}: {} more are not listed",
            record.number("more")
        ));
    }
    record
        .get("incomplete")
        .map(|_| format!("{table}: incomplete, the kernel had no memory for it"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// Tables as in a transfer between two hosts, with so many bytes and writes.
    pub(crate) fn sample(writes: u64) -> Result<Snapshot> {
        let sample = tempfile::tempdir()?;
        let bytes = writes << 20;
        for (name, text) in [
            (
                "devices",
                "device=rxe0 ports=1 jobs=1 members=1 conns=1 files=1 services=1\n".into(),
            ),
            (
                "jobs",
                "device=rxe0 job=1 port=1 uid=0 gid_index=1 \
                 gid=00000000000000000000ffff0a090002 loc_addr=0xa090002 members=1 \
                 max_members=16 conns=1 num_conn=2 q_depth=4000 service_id=0x1000125500000001 \
                 reconnect_timeout=30 hb_interval=10\n"
                    .to_owned(),
            ),
            (
                "conns",
                format!(
                    "device=rxe0 job=1 conn=1 index=0 role=client state=connected users=1 \
                     rem_addr=0xa090001 gid=00000000000000000000ffff0a090001 lid=0 qp=17 \
                     depth=2100 was_connected=1 state_us=65000000 post_write={writes} \
                     post_write_bytes={bytes} outstand_send_write=3 send_write_cqe={writes}\n\
                     device=rxe0 job=1 conn=1 index=1 role=client state=error users=1 \
                     rem_addr=0xa090001 gid=00000000000000000000ffff0a090001 lid=0 qp=0 \
                     depth=2100 was_connected=1 state_us=500 recv_cqe_fail=2 \
                     recv_write_bytes=1024 recv_write_cqe=1 send_write_cqe_fail=1\n"
                ),
            ),
            (
                "files",
                format!(
                    "device=rxe0 job=1 index=0 port=1 pid=321 comm=rv\\x20perf cache=1 \
                     cache_size=1048576 limit_cache_size=256 count=4 inuse=2 hit={writes} miss=4 \
                     full=0 failed=0 remove=1 evict=2 ring_entries=1024 ring_used=5 \
                     ring_overflows=7 send_write_cqe={writes} recv_write_cqe=0\nmore=2\n"
                ),
            ),
        ] {
            fs::write(sample.path().join(name), text)?;
        }
        Snapshot::read(sample.path())
    }

    #[test]
    fn lines_about_the_table_are_no_objects() -> Result<()> {
        let sample = sample(1)?;
        assert_eq!(sample.files.len(), 1);
        assert_eq!(sample.notes(), ["files: 2 more are not listed"]);
        Ok(())
    }
}
