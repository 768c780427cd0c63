// SPDX-License-Identifier: GPL-2.0

//! What can go wrong, each in one line that names the cause and the cure.

use std::io;
use std::time::Duration;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `/dev/rv` does not exist.
    #[error("{path} does not exist: the module is not loaded; load it with `modprobe rv`")]
    NoNode {
        /// The node that was tried.
        path: String,
    },
    /// `/dev/rv` may not be opened.
    #[error(
        "no permission to open {path}: install the udev rule of rv, which makes the node mode \
         0666, or run as root"
    )]
    NoPermission {
        /// The node that was tried.
        path: String,
    },
    /// `/dev/rv` cannot be opened for another reason.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The node that was tried.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The module speaks an ABI that is too old or of another major version.
    #[error(
        "the rv module speaks ABI {major}.{minor}, this program needs {want_major}.{want_minor} \
         or a later {want_major}.x: load the rv module that belongs to this program"
    )]
    AbiVersion {
        /// Major version of the module.
        major: u16,
        /// Minor version of the module.
        minor: u16,
        /// Major version that is needed.
        want_major: u16,
        /// Lowest minor version that is needed.
        want_minor: u16,
    },
    /// The file is no rv node, or a module that does not know the call.
    #[error("{path} does not answer as rv does ({source}): is it another driver's node?")]
    NotRv {
        /// The node that was tried.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No RDMA device of that name, or rv does not use it.
    #[error("unknown RDMA device `{name}`; present: {}", list(.present))]
    NoDevice {
        /// The name asked for.
        name: String,
        /// The devices that sysfs lists.
        present: Vec<String>,
    },
    /// The device has no such port.
    #[error("RDMA device {device} has no port {port}")]
    NoPort {
        /// The device.
        device: String,
        /// The port asked for.
        port: u8,
    },
    /// No RDMA device carries the address of the connection.
    #[error(
        "no RDMA device has the address {address}; present: {}. Name one with --device, or make \
         one, e.g. `rdma link add rxe0 type rxe netdev eth0`",
        list(.present)
    )]
    NoDeviceForAddress {
        /// The local IP address.
        address: String,
        /// The devices that sysfs lists.
        present: Vec<String>,
    },
    /// The port has no RoCE v2 GID.
    #[error(
        "port {port} of {device} has no RoCE v2 GID: give its network interface an IP address \
         and bring it up, then look at /sys/class/infiniband/{device}/ports/{port}/gids"
    )]
    NoGid {
        /// The device.
        device: String,
        /// The port.
        port: u8,
    },
    /// The GID index asked for is empty.
    #[error("GID index {index} of {device} port {port} is empty")]
    EmptyGid {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// The index asked for.
        index: u16,
    },
    /// A file under /sys does not read as expected.
    #[error("{path}: {reason}")]
    Sysfs {
        /// The file.
        path: String,
        /// Why it is of no use.
        reason: String,
    },
    /// An argument that the ABI cannot express.
    #[error("{0}")]
    Argument(String),
    /// An ioctl failed.
    #[error("{name}: {source}{}", hint(.name, .source))]
    Ioctl {
        /// Name of the ioctl.
        name: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Memory could not be mapped.
    #[error("cannot map {what} ({len} bytes): {source}{}", memlock_hint(.source))]
    Map {
        /// What was to be mapped.
        what: &'static str,
        /// Its length.
        len: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel dropped events, for nobody took them in time.
    #[error("the event ring overflowed: {0} events lost; use a larger ring or a smaller window")]
    RingOverflow(u64),
    /// The ring holds a value the kernel never writes.
    #[error("the event ring is damaged: tail {tail} of {entries} entries")]
    RingDamaged {
        /// The tail found.
        tail: u32,
        /// Number of entries.
        entries: u32,
    },
    /// The connection was not up in time.
    #[error("the connection was not up after {} s", .0.as_secs())]
    ConnectTimeout(Duration),
}

impl Error {
    /// Returns the `errno` of a failed ioctl.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Ioctl { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Tells whether the same call may succeed a moment later.
    ///
    /// `ENOMEM` and `EBUSY` of a post mean that all queues are full, `EAGAIN` that the
    /// connection is being recovered.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.errno(),
            Some(libc::ENOMEM | libc::EBUSY | libc::EAGAIN)
        )
    }
}

/// Prints a list of names, or that there are none.
fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

/// Says what an errno of an ioctl means, where the kernel's text does not.
fn hint(name: &str, source: &io::Error) -> &'static str {
    match (name, source.raw_os_error().unwrap_or(0)) {
        ("ATTACH", libc::EBUSY) => {
            " (another process of this job attached with other parameters, or the file is \
             attached already)"
        }
        ("ATTACH", libc::ENOENT) => " (the GID at that index is not the one of the port)",
        ("ATTACH", libc::ENOMEM) => " (no memory, or all slots of the job are taken)",
        ("REG_MEM", libc::ENOMEM) => {
            " (the MR cache is full of memory in use, or the limit of locked memory is reached: \
             raise `ulimit -l`)"
        }
        ("REG_MEM", libc::EINVAL) => " (longer than the device can register in one piece?)",
        ("CONN_CREATE", libc::EBUSY) => " (this file has a connection to that node already)",
        ("CONN_CREATE", libc::EEXIST) => {
            " (another process of this job reaches that node with other attributes)"
        }
        ("CONN_CONNECTED" | "POST_RDMA_WR_IMMED", libc::EIO) => {
            " (the connection failed: peer gone, refused, or the link went down)"
        }
        (_, libc::ENXIO) => " (the RDMA device was removed)",
        _ => "",
    }
}

/// Says what to do when locked memory ran out.
fn memlock_hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EAGAIN) => " (limit of locked memory: raise `ulimit -l`)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_device_lists_those_present() {
        let error = Error::NoDevice {
            name: "rxe9".into(),
            present: vec!["rxe0".into(), "siw0".into()],
        };
        assert_eq!(
            error.to_string(),
            "unknown RDMA device `rxe9`; present: rxe0, siw0"
        );
        let error = Error::NoDevice {
            name: "rxe9".into(),
            present: Vec::new(),
        };
        assert_eq!(
            error.to_string(),
            "unknown RDMA device `rxe9`; present: none"
        );
    }

    #[test]
    fn ioctl_errors_say_what_the_errno_means() {
        let error = Error::Ioctl {
            name: "POST_RDMA_WR_IMMED",
            source: io::Error::from_raw_os_error(libc::EIO),
        };
        assert!(error.to_string().contains("peer gone"), "{error}");
        assert_eq!(error.errno(), Some(libc::EIO));
        assert!(!error.is_transient());
    }

    #[test]
    fn full_queues_are_transient() {
        for errno in [libc::ENOMEM, libc::EBUSY, libc::EAGAIN] {
            let error = Error::Ioctl {
                name: "POST_RDMA_WR_IMMED",
                source: io::Error::from_raw_os_error(errno),
            };
            assert!(error.is_transient());
        }
    }
}
