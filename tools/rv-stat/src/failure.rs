// SPDX-License-Identifier: GPL-2.0

//! Why there is nothing to show, in one line with the cure.

use std::io;
use std::path::{
    Path,
    PathBuf, //
};

/// Result of this program.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The user may not read the tables.
    #[error("no permission to read {}: run rv-stat as root", .0.display())]
    Permission(PathBuf),
    /// The file system is not there.
    #[error("debugfs is not mounted: mount -t debugfs debugfs /sys/kernel/debug")]
    NotMounted,
    /// The module is not there.
    #[error("the module rv is not loaded: modprobe rv")]
    NotLoaded,
    /// A module without tables.
    #[error("{} does not exist: the module that is loaded has no tables", .0.display())]
    NoTables(PathBuf),
    /// A table could not be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Of the table.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A table is not what it should be.
    #[error("{}: line {line} is not understood: {what}", path.display())]
    Format {
        /// Of the table.
        path: PathBuf,
        /// Its number.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The result could not be written.
    #[error("cannot write: {0}")]
    Write(io::Error),
    /// Nobody reads the result any more.
    #[error("the reader has gone")]
    Closed,
}

impl Failure {
    /// The exit code; `rv-stat --help` lists them.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Permission(_)
            | Failure::NotMounted
            | Failure::NotLoaded
            | Failure::NoTables(_) => 3,
            _ => 1,
        }
    }

    pub(crate) fn read(path: &Path, error: io::Error) -> Self {
        let path = path.to_path_buf();
        Failure::Read { path, error }
    }
}

impl From<io::Error> for Failure {
    /// Of writing the result: reading says more.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Write(error),
        }
    }
}
