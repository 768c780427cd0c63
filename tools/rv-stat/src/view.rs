// SPDX-License-Identifier: GPL-2.0

//! A snapshot for people: a table for each section, with totals.

use comfy_table::presets::NOTHING;
use comfy_table::{
    CellAlignment,
    Table, //
};

use crate::cli::Section;
use crate::rates::Interval;
use crate::record::Record;
use crate::snapshot::Snapshot;
use crate::units::{
    address,
    count,
    percent,
    size,
    time, //
};

/// Where counters come from: since the beginning of an object, or for each second.
struct Source<'a> {
    section: Section,
    interval: Option<&'a Interval<'a>>,
}

impl Source<'_> {
    /// The sum of some counters of a record.
    fn sum(&self, record: &Record, counters: &[&str]) -> f64 {
        let one = |counter: &&str| match self.interval {
            Some(interval) => interval.rate(self.section, record, counter),
            // CAST: Exact below 2^53, and a figure for people above.
            None => record.number(counter) as f64,
        };
        counters.iter().map(one).sum()
    }

    /// The same over all records.
    fn total(&self, records: &[Record], counters: &[&str]) -> f64 {
        records
            .iter()
            .map(|record| self.sum(record, counters))
            .sum()
    }

    /// A name for a column of counters.
    fn head(&self, name: &str) -> String {
        match self.interval {
            Some(_) => format!("{name}/s"),
            None => name.to_owned(),
        }
    }
}

/// Returns the sections as tables.
pub(crate) fn text(
    snapshot: &Snapshot,
    sections: &[Section],
    interval: Option<&Interval<'_>>,
) -> String {
    let mut parts = Vec::new();
    for section in sections {
        let source = Source {
            section: *section,
            interval,
        };
        let records = snapshot.records(*section);
        let (title, table) = match section {
            Section::Devices => ("Devices", devices(records)),
            Section::Jobs => ("Jobs", jobs(records)),
            Section::Conns => ("Connections", conns(records, &source)),
            Section::Files => ("Files", files(records, &source)),
        };
        parts.push(if records.is_empty() {
            format!("{title}: none")
        } else {
            format!("{title}\n{}", lines(&table))
        });
    }
    parts.extend(snapshot.notes().iter().map(|note| format!("note: {note}")));
    parts.join("\n\n")
}

/// The lines of a table, without blanks at their ends.
fn lines(table: &Table) -> String {
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// A table with these columns; those that begin with `<` are aligned to the left.
fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(columns.iter().map(|name| name.trim_start_matches('<')));
    for (column, name) in table.column_iter_mut().zip(columns) {
        if !name.starts_with('<') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn devices(records: &[Record]) -> Table {
    let columns = [
        "<DEVICE",
        "PORTS",
        "JOBS",
        "PROCESSES",
        "CONNECTIONS",
        "FILES",
        "SERVICES",
    ];
    let mut table = table(&columns);
    for device in records {
        let mut row = vec![device.text("device").to_owned()];
        for key in ["ports", "jobs", "members", "conns", "files", "services"] {
            row.push(device.number(key).to_string());
        }
        table.add_row(row);
    }
    table
}

fn jobs(records: &[Record]) -> Table {
    let mut table = table(&[
        "JOB",
        "<DEVICE",
        "PORT",
        "UID",
        "<ADDRESS",
        "PROCESSES",
        "CONNECTIONS",
        "QUEUE PAIRS",
        "DEPTH",
        "<SERVICE",
    ]);
    for job in records {
        table.add_row([
            job.number("job").to_string(),
            job.text("device").to_owned(),
            job.number("port").to_string(),
            job.number("uid").to_string(),
            address(job.text("gid")).unwrap_or_else(|| job.text("loc_addr").to_owned()),
            format!("{}/{}", job.number("members"), job.number("max_members")),
            job.number("conns").to_string(),
            (job.number("conns") * job.number("num_conn")).to_string(),
            job.number("q_depth").to_string(),
            job.text("service_id").to_owned(),
        ]);
    }
    table
}

/// Counters of writes that ended badly.
const FAILED: [&str; 3] = ["post_write_fail", "send_write_cqe_fail", "recv_cqe_fail"];

fn conns(records: &[Record], source: &Source<'_>) -> Table {
    let (writes, sent) = (source.head("WRITES"), source.head("SENT"));
    let (arrivals, received) = (source.head("ARRIVALS"), source.head("RECEIVED"));
    let failed = source.head("FAILED");
    let mut table = table(&[
        "CONN",
        "JOB",
        "<PEER",
        "<ROLE",
        "<STATE",
        "FOR",
        "QP",
        "OUT",
        &writes,
        &sent,
        &arrivals,
        &received,
        &failed,
        "RECOVERED",
    ]);
    for conn in records {
        table.add_row([
            format!("{}.{}", conn.number("conn"), conn.number("index")),
            conn.number("job").to_string(),
            peer(conn),
            conn.text("role").to_owned(),
            conn.text("state").to_owned(),
            time(conn.number("state_us")),
            match conn.number("qp") {
                0 => "-".to_owned(),
                qp => qp.to_string(),
            },
            format!(
                "{}/{}",
                conn.number("outstand_send_write"),
                conn.number("depth")
            ),
            count(source.sum(conn, &["post_write"])),
            size(source.sum(conn, &["post_write_bytes"])),
            count(source.sum(conn, &["recv_write_cqe"])),
            size(source.sum(conn, &["recv_write_bytes"])),
            count(source.sum(conn, &FAILED)),
            conn.number("conn_recovery").to_string(),
        ]);
    }
    if records.len() > 1 {
        let mut total = vec!["total".to_owned()];
        total.resize(7, String::new());
        let sum = |key| records.iter().map(|conn| conn.number(key)).sum::<u64>();
        total.push(sum("outstand_send_write").to_string());
        total.push(count(source.total(records, &["post_write"])));
        total.push(size(source.total(records, &["post_write_bytes"])));
        total.push(count(source.total(records, &["recv_write_cqe"])));
        total.push(size(source.total(records, &["recv_write_bytes"])));
        total.push(count(source.total(records, &FAILED)));
        total.push(sum("conn_recovery").to_string());
        table.add_row(total);
    }
    table
}

/// The node at the other end.
fn peer(conn: &Record) -> String {
    address(conn.text("gid")).unwrap_or_else(|| format!("LID {}", conn.number("lid")))
}

fn files(records: &[Record], source: &Source<'_>) -> Table {
    let (hits, misses) = (source.head("HITS"), source.head("MISSES"));
    let (evicted, failed) = (source.head("EVICTED"), source.head("FAILED"));
    let events = source.head("EVENTS");
    let mut table = table(&[
        "PID", "<COMMAND", "<DEVICE", "JOB", "INDEX", "CACHE", "LIMIT", "ENTRIES", "IN USE", &hits,
        &misses, "HIT RATE", &evicted, &failed, &events, "RING", "LOST",
    ]);
    for file in records {
        let (hit, miss) = (file.number("hit"), file.number("miss"));
        table.add_row([
            file.number("pid").to_string(),
            file.text("comm").to_owned(),
            file.text("device").to_owned(),
            file.number("job").to_string(),
            file.number("index").to_string(),
            // CAST: Figures for people.
            size(file.number("cache_size") as f64),
            size((file.number("limit_cache_size") << 20) as f64),
            file.number("count").to_string(),
            file.number("inuse").to_string(),
            count(source.sum(file, &["hit"])),
            count(source.sum(file, &["miss"])),
            percent(hit, hit.saturating_add(miss)),
            count(source.sum(file, &["evict"])),
            count(source.sum(file, &["full", "failed"])),
            count(source.sum(file, &EVENTS)),
            format!(
                "{}/{}",
                file.number("ring_used"),
                file.number("ring_entries")
            ),
            file.number("ring_overflows").to_string(),
        ]);
    }
    table
}

/// What comes into a ring.
const EVENTS: [&str; 3] = ["send_write_cqe", "send_write_cqe_fail", "recv_write_cqe"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Result;
    use crate::snapshot::tests::sample;

    const ALL: [Section; 4] = [
        Section::Devices,
        Section::Jobs,
        Section::Conns,
        Section::Files,
    ];

    /// The words of the line that begins with one.
    fn row(text: &str, first: &str) -> Vec<String> {
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        text.lines()
            .map(words)
            .find(|words| words.first().is_some_and(|word| word == first))
            .unwrap_or_default()
    }

    #[test]
    fn totals_since_the_beginning() -> Result<()> {
        let text = text(&sample(30)?, &ALL, None);
        assert_eq!(
            row(&text, "1.0").join(" "),
            "1.0 1 10.9.0.1 client connected 1m 5s 17 3/2100 30 30 MiB 0 0 B 0 0"
        );
        assert_eq!(
            row(&text, "1.1").join(" "),
            "1.1 1 10.9.0.1 client error 500 us - 0/2100 0 0 B 1 1 KiB 3 0"
        );
        assert_eq!(
            row(&text, "total").join(" "),
            "total 3 30 30 MiB 1 1 KiB 3 0"
        );
        assert_eq!(
            row(&text, "321").join(" "),
            "321 rv perf rxe0 1 0 1 MiB 256 MiB 4 2 30 4 88.2% 2 0 30 5/1024 7"
        );
        assert_eq!(row(&text, "rxe0").join(" "), "rxe0 1 1 1 1 1 1");
        assert_eq!(
            row(&text, "1").join(" "),
            "1 rxe0 1 0 10.9.0.2 1/16 1 2 4000 0x1000125500000001"
        );
        assert!(text.ends_with("note: files: 2 more are not listed"));
        Ok(())
    }

    #[test]
    fn columns_are_aligned() -> Result<()> {
        let text = text(&sample(30)?, &[Section::Conns], None);
        let lines: Vec<&str> = text.lines().skip(1).take(4).collect();
        // The end of the column, with its header, two lines and their total.
        let ends: Vec<Option<usize>> = ["OUT", "3/2100", "0/2100", "  3  "]
            .iter()
            .zip(&lines)
            .map(|(word, line)| line.find(word).map(|at| at + word.trim_end().len()))
            .collect();
        assert!(
            ends.iter()
                .all(|end| end.is_some() && Some(end) == ends.first()),
            "{text}"
        );
        assert!(lines
            .iter()
            .all(|line| Some(line.len()) == lines.first().map(|first| first.len())));
        Ok(())
    }

    #[test]
    fn rates_say_so() -> Result<()> {
        let (before, now) = (sample(10)?, sample(30)?);
        let interval = Interval::new(&before, &now);
        let text = text(&now, &[Section::Conns], Some(&interval));
        assert!(text.contains("SENT/s") && !text.contains("Files"), "{text}");
        Ok(())
    }

    #[test]
    fn nothing_is_said_to_be_nothing() -> Result<()> {
        let mut empty = sample(1)?;
        empty.conns.clear();
        assert_eq!(
            text(&empty, &[Section::Conns], None).lines().next(),
            Some("Connections: none")
        );
        Ok(())
    }
}
