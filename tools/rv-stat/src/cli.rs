// SPDX-License-Identifier: GPL-2.0

//! The command line.

use std::path::PathBuf;

use clap::{
    Parser,
    ValueEnum, //
};

const LONG_ABOUT: &str = "\
Shows what the rv module does on this host: the RDMA devices it uses, the jobs on them, their \
connections to other hosts, and the open files with their MR caches and event rings.

Without --watch, numbers count from the beginning of the object that a line is about. The tables \
come from debugfs, which only root may read.";

const AFTER_HELP: &str = "\
Columns that need a word:
  OUT        writes under way of those that fit into the queue pair
  FAILED     writes that failed or were flushed, and receives that failed
  RECOVERED  how often the connection was lost and came up again
  HIT RATE   share of memory registrations that the cache answered
  LOST       events that found the ring full

Exit code:
  0  it was shown
  1  a table could not be read or understood
  2  wrong usage
  3  there is nothing to read: no module, no debugfs, no permission

Examples:
  rv-stat
  rv-stat conns files
  rv-stat --watch 2 conns
  rv-stat --json | jq '.conns[] | select(.state != \"connected\")'";

/// Shows what the rv module does: devices, jobs, connections, caches, rates
#[derive(Debug, Parser)]
#[command(version, about, long_about = LONG_ABOUT, after_long_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// What to show [default: all]
    #[arg(value_name = "SECTION")]
    chosen: Vec<Section>,

    /// Show rates, again and again, of so many seconds each
    #[arg(long, short, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          value_parser = seconds)]
    pub(crate) watch: Option<f64>,

    /// With --watch: end after so many times
    #[arg(long, short, value_name = "N", requires = "watch")]
    pub(crate) count: Option<u64>,

    /// Write JSON: one object, with --watch one a line
    #[arg(long, short)]
    pub(crate) json: bool,

    /// Where the tables are
    #[arg(long, value_name = "DIRECTORY", default_value = "/sys/kernel/debug/rv")]
    pub(crate) tables: PathBuf,
}

/// A part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// RDMA devices
    Devices,
    /// Jobs: the processes of a user and key that share a port
    Jobs,
    /// Connections, a line for each queue pair
    Conns,
    /// Attached files: processes with their MR caches and event rings
    Files,
}

impl Cli {
    /// The sections asked for, each once, in the usual order.
    pub(crate) fn sections(&self) -> Vec<Section> {
        Section::value_variants()
            .iter()
            .copied()
            .filter(|section| self.chosen.is_empty() || self.chosen.contains(section))
            .collect()
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds between 0.01 and 86400".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("rv-stat").chain(args.iter().copied()))
    }

    #[test]
    fn sections_come_once_in_their_order() {
        let all = parse(&[]).map(|cli| cli.sections()).ok();
        assert_eq!(all.map(|all| all.len()), Some(4));
        let some = parse(&["files", "jobs", "files"]).map(|cli| cli.sections());
        assert_eq!(some.ok(), Some(vec![Section::Jobs, Section::Files]));
    }

    #[test]
    fn watch_has_a_default_and_limits() {
        assert_eq!(
            parse(&["--watch"]).map(|cli| cli.watch).ok(),
            Some(Some(1.0))
        );
        assert_eq!(
            parse(&["-w", "0.5"]).map(|cli| cli.watch).ok(),
            Some(Some(0.5))
        );
        for bad in ["0", "-1", "x", "1e9", "NaN"] {
            assert!(parse(&[&format!("--watch={bad}")]).is_err(), "{bad}");
        }
        assert!(parse(&["--count", "3"]).is_err());
    }
}
