// SPDX-License-Identifier: GPL-2.0

//! A snapshot for programs: the tables with their own keys, on one line.

use serde_json::{
    Map,
    Value as Json, //
};

use crate::cli::Section;
use crate::rates::{
    counters,
    Interval, //
};
use crate::record::{
    Record,
    Value, //
};
use crate::snapshot::Snapshot;
use crate::units;

/// Returns a snapshot as one line. With an interval, records have `rates` for each second.
pub(crate) fn line(
    snapshot: &Snapshot,
    sections: &[Section],
    interval: Option<&Interval<'_>>,
) -> String {
    let mut object = Map::new();
    object.insert("time".into(), snapshot.time.into());
    if let Some(interval) = interval {
        object.insert("interval".into(), interval.seconds.into());
    }
    for section in sections {
        let records = snapshot.records(*section).iter();
        let records = records.map(|record| Json::Object(record_of(*section, record, interval)));
        object.insert(name(*section).into(), records.collect());
    }
    object.insert("notes".into(), snapshot.notes().into());
    Json::Object(object).to_string()
}

fn name(section: Section) -> &'static str {
    match section {
        Section::Devices => "devices",
        Section::Jobs => "jobs",
        Section::Conns => "conns",
        Section::Files => "files",
    }
}

fn record_of(
    section: Section,
    record: &Record,
    interval: Option<&Interval<'_>>,
) -> Map<String, Json> {
    let mut object: Map<String, Json> = record
        .pairs()
        .map(|(key, value)| (key.to_owned(), value_of(value)))
        .collect();
    if let Some(address) = units::address(record.text("gid")) {
        object.insert("address".into(), address.into());
    }
    if let Some(interval) = interval {
        let rates: Map<String, Json> = counters(section)
            .iter()
            .map(|counter| {
                let rate = interval.rate(section, record, counter);
                ((*counter).to_owned(), rate.into())
            })
            .collect();
        if !rates.is_empty() {
            object.insert("rates".into(), rates.into());
        }
    }
    object
}

fn value_of(value: &Value) -> Json {
    match value {
        Value::Number(number) => (*number).into(),
        Value::Large(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Result;
    use crate::snapshot::tests::sample;

    #[test]
    fn it_is_one_object_on_one_line() -> Result<()> {
        let (before, now) = (sample(10)?, sample(30)?);
        let interval = Interval::new(&before, &now);
        let text = line(&now, &[Section::Conns, Section::Files], Some(&interval));
        assert!(!text.contains('\n'));
        let json: Json = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(json["conns"][0]["post_write"], 30);
        assert_eq!(json["conns"][0]["address"], "10.9.0.1");
        assert_eq!(json["conns"][0]["rem_addr"], "0xa090001");
        assert!(json["conns"][0]["rates"]["post_write_bytes"].as_f64() > Some(0.0));
        assert_eq!(json["files"][0]["comm"], "rv perf");
        assert_eq!(json["notes"][0], "files: 2 more are not listed");
        assert!(json["interval"].as_f64() > Some(0.0));
        assert!(json.get("jobs").is_none());
        Ok(())
    }

    #[test]
    fn without_an_interval_there_are_no_rates() -> Result<()> {
        let text = line(&sample(1)?, &[Section::Jobs, Section::Conns], None);
        let json: Json = serde_json::from_str(&text).unwrap_or_default();
        assert!(json["conns"][0].get("rates").is_none() && json.get("interval").is_none());
        assert_eq!(json["jobs"][0]["service_id"], "0x1000125500000001");
        Ok(())
    }
}
