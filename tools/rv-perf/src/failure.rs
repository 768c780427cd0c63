// SPDX-License-Identifier: GPL-2.0

//! Why a run ended early, and the exit code that says so to scripts.

use std::io;
use std::process::ExitCode;

/// Result of this program.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Something on this host: a file, memory, a call that should have worked.
    #[error("{0}")]
    Local(String),
    /// Arguments that make no sense together.
    #[error("{0}")]
    Usage(String),
    /// rv or the RDMA device cannot be used on this host.
    #[error("{0}")]
    Setup(String),
    /// The connection to the peer cannot be made, failed or ended.
    #[error("{0}")]
    Peer(String),
    /// The peer said that and why it gives up.
    #[error("the peer gave up: {0}")]
    GaveUp(String),
    /// Nothing happened for too long.
    #[error("{0}")]
    Timeout(String),
    /// The data that arrived is not the data that was sent.
    #[error("{0}")]
    Mismatch(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Returns the exit code; `rv-perf --help` lists them.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Local(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Setup(_) => 3,
            Failure::Peer(_) | Failure::GaveUp(_) => 4,
            Failure::Timeout(_) => 5,
            Failure::Mismatch(_) => 6,
            Failure::Interrupted => 130,
        }
    }

    /// Makes a function that names the file an error is about.
    pub(crate) fn file(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Failure {
        let path = path.display().to_string();
        move |error| Failure::Local(format!("cannot {doing} {path}: {error}"))
    }
}

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> Self {
        ExitCode::from(failure.code())
    }
}

impl From<rv_client::Error> for Failure {
    fn from(error: rv_client::Error) -> Self {
        use rv_client::Error;
        /// Input/output error: the connection is lost.
        const EIO: i32 = 5;
        let text = error.to_string();
        match error {
            _ if error.errno() == Some(EIO) => Failure::Peer(text),
            Error::ConnectTimeout(_) => Failure::Timeout(text),
            Error::Ioctl { name: "ATTACH", .. } => Failure::Setup(text),
            Error::NoNode { .. }
            | Error::NoPermission { .. }
            | Error::Open { .. }
            | Error::AbiVersion { .. }
            | Error::NotRv { .. }
            | Error::NoDevice { .. }
            | Error::NoPort { .. }
            | Error::NoDeviceForAddress { .. }
            | Error::NoGid { .. }
            | Error::EmptyGid { .. }
            | Error::Sysfs { .. } => Failure::Setup(text),
            _ => Failure::Local(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_codes() {
        let path = "/dev/rv".to_owned();
        let no_node = Failure::from(rv_client::Error::NoNode { path });
        assert_eq!(no_node.code(), 3);
        let lost = rv_client::Error::Ioctl {
            name: "POST_RDMA_WR_IMMED",
            source: io::Error::from_raw_os_error(5),
        };
        assert_eq!(Failure::from(lost).code(), 4);
        let late = rv_client::Error::ConnectTimeout(std::time::Duration::from_secs(3));
        assert_eq!(Failure::from(late).code(), 5);
        assert_eq!(Failure::Interrupted.code(), 130);
    }
}
