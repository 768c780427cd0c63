// SPDX-License-Identifier: GPL-2.0

//! The result, as a table or as JSON.

use std::fs;
use std::io::{
    self,
    Write, //
};
use std::path::Path;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{
    CellAlignment,
    Table, //
};
use serde_json::{
    json,
    Value, //
};

use crate::failure::{
    Failure,
    Result, //
};
use crate::latency::Latency;
use crate::message::Side;
use crate::plan::Plan;
use crate::units::{
    mib_per_second,
    size, //
};

/// What was moved.
pub(crate) struct Transfer {
    /// Name of the file.
    pub(crate) file: Option<String>,
    /// How it was cut.
    pub(crate) plan: Plan,
    /// Most writes under way.
    pub(crate) window: u32,
    /// From the first write until all data had arrived and was stored.
    pub(crate) seconds: f64,
    /// From the first write to the last completion.
    pub(crate) completion_seconds: f64,
    /// How long the writes took, if known here.
    pub(crate) latency: Option<Latency>,
    /// Where the server put the file.
    pub(crate) stored: Option<String>,
    /// Check sum of the sender, if wanted and known here.
    pub(crate) sha256_sent: Option<String>,
    /// Check sum of the receiver, if wanted.
    pub(crate) sha256_received: Option<String>,
}

/// A result.
pub(crate) struct Report {
    /// What was moved.
    pub(crate) transfer: Transfer,
    /// Who reports.
    pub(crate) side: &'static str,
    /// The sender's numbers.
    pub(crate) client: Side,
    /// The receiver's numbers.
    pub(crate) server: Side,
}

impl Report {
    /// Prints it: as a table, and as JSON to `json`, where `-` is standard output in place of the
    /// table.
    pub(crate) fn print(&self, json: Option<&Path>) -> Result<()> {
        let line = || format!("{}\n", self.to_json());
        let text = match json {
            Some(path) if path == Path::new("-") => line(),
            Some(path) => {
                fs::write(path, line()).map_err(Failure::file("write", path))?;
                self.to_text()
            }
            None => self.to_text(),
        };
        match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Local(
                format!("cannot write to standard output: {error}"),
            )),
            _ => Ok(()),
        }
    }

    /// Fails if the check sums differ.
    pub(crate) fn verdict(&self) -> Result<()> {
        match self.verified() {
            Some(false) => Err(Failure::Mismatch(
                "SHA-256 differs: what arrived is not what was sent".into(),
            )),
            _ => Ok(()),
        }
    }

    /// Tells whether the check sums are the same, if both are known here.
    fn verified(&self) -> Option<bool> {
        let transfer = &self.transfer;
        match (&transfer.sha256_sent, &transfer.sha256_received) {
            (Some(sent), Some(received)) => Some(sent == received),
            _ => None,
        }
    }

    /// Returns everything as one object.
    fn to_json(&self) -> Value {
        let transfer = &self.transfer;
        let plan = &transfer.plan;
        json!({
            "tool": "rv-perf",
            "version": env!("CARGO_PKG_VERSION"),
            "side": self.side,
            "file": transfer.file,
            "stored": transfer.stored,
            "bytes": plan.bytes(),
            "writes": plan.writes(),
            "block": plan.block,
            "message": plan.message,
            "iterations": plan.iterations,
            "window": transfer.window,
            "seconds": transfer.seconds,
            "completion_seconds": transfer.completion_seconds,
            "mib_per_s": mib_per_second(plan.bytes(), transfer.seconds),
            "post_to_event_us": transfer.latency.as_ref().map(Latency::to_json),
            "sha256_sent": transfer.sha256_sent,
            "sha256_received": transfer.sha256_received,
            "verified": self.verified(),
            "client": self.client,
            "server": self.server,
        })
    }

    /// Returns it for people.
    fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.table());
        text.push_str(&self.summary());
        if let Some(latency) = &self.transfer.latency {
            text.push_str(&latency.to_text());
        }
        if let Some(stored) = &self.transfer.stored {
            text.push_str(&format!("stored as {stored}\n"));
        }
        if let Some(sum) = &self.transfer.sha256_received {
            let verdict = match self.verified() {
                Some(true) => ", equal on both sides",
                Some(false) => ", NOT what was sent",
                None => "",
            };
            text.push_str(&format!("sha256 {sum}{verdict}\n"));
        }
        text
    }

    /// Says in one line what was moved how fast.
    fn summary(&self) -> String {
        let transfer = &self.transfer;
        let plan = &transfer.plan;
        format!(
            "{} bytes in {:.3} s: {:.2} MiB/s, {} writes of up to {}, {} under way\n",
            plan.bytes(),
            transfer.seconds,
            mib_per_second(plan.bytes(), transfer.seconds),
            plan.writes(),
            size(plan.block),
            transfer.window
        )
    }

    /// Compares the two sides.
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(UTF8_BORDERS_ONLY);
        table.set_header(["", "client", "server"]);
        for (name, value) in rows() {
            table.add_row([name.to_owned(), value(&self.client), value(&self.server)]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// A row of the table.
type Row = (&'static str, fn(&Side) -> String);

/// Returns the rows of the table.
fn rows() -> [Row; 16] {
    [
        ("device", |side| {
            format!("{} port {}", side.endpoint.device, side.endpoint.port)
        }),
        ("address", |side| side.endpoint.gid.to_ip().to_string()),
        ("index in the job", |side| side.rv_index.to_string()),
        ("role", |side| format!("{:?}", side.role).to_lowercase()),
        ("writes", |side| side.writes.to_string()),
        ("bytes", |side| side.bytes.to_string()),
        ("cache hits", |side| side.cache.hit.to_string()),
        ("cache misses", |side| side.cache.miss.to_string()),
        ("cache, most bytes", |side| {
            side.cache.max_cache_size.to_string()
        }),
        ("queue pairs", |side| side.conn.num_conn.to_string()),
        ("connected after, us", |side| {
            let conn = &side.conn;
            (conn.wait_time + conn.resolve_time + conn.connect_time).to_string()
        }),
        ("connection: posted", |side| {
            side.conn.post_write.to_string()
        }),
        ("connection: completed", |side| {
            side.conn.send_write_cqe.to_string()
        }),
        ("connection: received", |side| {
            side.conn.recv_write_cqe.to_string()
        }),
        ("connection: failed", |side| {
            let conn = &side.conn;
            let failed = conn.post_write_fail + conn.send_write_cqe_fail + conn.recv_cqe_fail;
            failed.to_string()
        }),
        ("connection: recoveries", |side| {
            side.conn.conn_recovery.to_string()
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rv_client::{
        CacheStats,
        ConnStats,
        Endpoint,
        EventStats,
        Gid,
        LinkLayer,
        Role, //
    };

    fn side(host: u8, role: Role) -> Side {
        Side {
            endpoint: Endpoint {
                device: "rxe0".into(),
                port: 1,
                link_layer: LinkLayer::Ethernet,
                gid_index: 1,
                gid: Gid::from(std::net::IpAddr::from([10, 9, 0, host])),
                lid: 0,
                rate: 2,
                mtu: 5,
                pkey: 0xffff,
            },
            rv_index: 3,
            role,
            writes: 3,
            bytes: 2500,
            cache: CacheStats {
                hit: 41,
                miss: 17,
                ..CacheStats::default()
            },
            events: EventStats::default(),
            conn: ConnStats {
                post_write: 3,
                ..ConnStats::default()
            },
        }
    }

    fn report(received: Option<&str>) -> Report {
        Report {
            transfer: Transfer {
                file: Some("data".into()),
                plan: Plan {
                    message: 2500,
                    iterations: 1,
                    block: 1024,
                },
                window: 16,
                seconds: 0.5,
                completion_seconds: 0.4,
                latency: None,
                stored: Some("/tmp/data".into()),
                sha256_sent: Some("aa".into()),
                sha256_received: received.map(String::from),
            },
            side: "client",
            client: side(1, Role::Listener),
            server: side(2, Role::Connector),
        }
    }

    #[test]
    fn text_has_the_figures() {
        let text = report(Some("aa")).to_text();
        for part in [
            "10.9.0.1",
            "10.9.0.2",
            "41",
            "17",
            "listener",
            "connector",
            "2500 bytes in 0.500 s: 0.00 MiB/s, 3 writes of up to 1 KiB, 16 under way",
            "stored as /tmp/data",
            "sha256 aa, equal on both sides",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }

    #[test]
    fn json_has_the_figures() {
        let value = report(Some("aa")).to_json();
        assert_eq!(value["bytes"], 2500);
        assert_eq!(value["writes"], 3);
        assert_eq!(value["verified"], true);
        assert_eq!(value["client"]["cache"]["hit"], 41);
        assert_eq!(value["server"]["endpoint"]["device"], "rxe0");
        assert_eq!(value["server"]["conn"]["post_write"], 3);
    }

    #[test]
    fn json_can_go_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result");
        report(None).print(Some(&path)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with('{') && text.ends_with("}\n"), "{text}");
        assert!(report(None).print(Some(dir.path())).is_err());
    }

    #[test]
    fn a_difference_is_a_failure() {
        let wrong = report(Some("bb"));
        assert!(wrong.to_text().contains("NOT what was sent"));
        assert_eq!(wrong.verdict().unwrap_err().code(), 6);
        assert!(report(Some("aa")).verdict().is_ok());
        assert!(report(None).verdict().is_ok());
    }
}
