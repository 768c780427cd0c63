// SPDX-License-Identifier: GPL-2.0

//! Membership in a job on one port: what everything else hangs on.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{
    AsFd,
    BorrowedFd, //
};
use std::str::FromStr;
use std::sync::Arc;

use serde::{
    Deserialize,
    Serialize, //
};

use crate::abi;
use crate::buffer::Buffer;
use crate::conn::Conn;
use crate::error::{
    Error,
    Result, //
};
use crate::ioctl;
use crate::mr::{
    Access,
    Mr, //
};
use crate::path::Endpoint;
use crate::port::Sysfs;
use crate::ring::Ring;
use crate::stats::{
    CacheStats,
    EventStats, //
};

/// The 16 bytes that all processes of a job share.
#[derive(Clone, Copy, Eq, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobKey(pub [u8; 16]);

/// The text is no UUID.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no UUID: 32 hexadecimal digits are wanted, hyphens are ignored")]
pub struct ParseJobKeyError(String);

impl FromStr for JobKey {
    type Err = ParseJobKeyError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let error = || ParseJobKeyError(text.chars().take(64).collect());
        let digits: Vec<u8> = text.bytes().filter(|c| *c != b'-').collect();
        if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(error());
        }
        let digits = String::from_utf8(digits).map_err(|_| error())?;
        let number = u128::from_str_radix(&digits, 16).map_err(|_| error())?;
        Ok(JobKey(number.to_be_bytes()))
    }
}

impl TryFrom<String> for JobKey {
    type Error = ParseJobKeyError;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<JobKey> for String {
    fn from(key: JobKey) -> String {
        key.to_string()
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", u128::from_be_bytes(self.0));
        let (a, b, c) = (&hex[..8], &hex[8..12], &hex[12..16]);
        write!(f, "{a}-{b}-{c}-{}-{}", &hex[16..20], &hex[20..])
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What [`Device::attach`](crate::Device::attach) needs to know. A value of 0 leaves the choice to
/// the module, where nothing else is said.
#[derive(Clone, Debug)]
pub struct AttachConfig {
    /// Device, port and GID of this node.
    pub endpoint: Endpoint,
    /// The job to join.
    pub job_key: JobKey,
    /// Queue pairs to each other node.
    pub num_conn: u8,
    /// Bits of an immediate that carry the receiver's index.
    pub index_bits: u8,
    /// Entries of the event ring, of which one stays free; 0 for no ring.
    pub ring_entries: u32,
    /// Limit of the MR cache in MiB.
    pub cache_mib: u32,
    /// Queue depth to each other node.
    pub q_depth: u32,
    /// Seconds in which a lost connection may come back; 0 for never.
    pub reconnect_timeout: u32,
    /// Milliseconds between heartbeats; 0 for none.
    pub heartbeat_interval: u32,
    /// Pages of each region that is kept ready for fast registration.
    pub fr_pages: u32,
}

impl AttachConfig {
    /// Puts the values into the ABI struct.
    fn to_raw(&self) -> Result<abi::rv_attach_params_in> {
        // CAST: Constants below 256.
        let (mode, key_len) = (abi::RV_RDMA_MODE_KERNEL as u8, self.job_key.0.len() as u8);
        let mut raw = abi::rv_attach_params_in {
            mr_cache_size: self.cache_mib,
            rdma_mode: mode,
            port_num: self.endpoint.port,
            num_conn: self.num_conn,
            loc_addr: self.endpoint.number(),
            index_bits: self.index_bits,
            loc_gid_index: self.endpoint.gid_index,
            loc_gid: self.endpoint.gid.0,
            job_key: self.job_key.0,
            job_key_len: key_len,
            cq_entries: self.ring_entries,
            q_depth: self.q_depth,
            reconnect_timeout: self.reconnect_timeout,
            hb_interval: self.heartbeat_interval,
            fr_page_list_len: self.fr_pages,
            ..Default::default()
        };
        let name = self.endpoint.device.as_bytes();
        // One byte less than the array, so that a NUL stays at the end.
        let room = raw.dev_name.len() - 1;
        if name.is_empty() || name.len() > room || name.contains(&0) {
            return Err(Error::Argument(format!(
                "`{}` is no device name: 1 to {room} characters are wanted",
                self.endpoint.device.escape_default()
            )));
        }
        for (to, from) in raw.dev_name.iter_mut().zip(name) {
            // CAST: The same byte, signed as C's char is on x86.
            *to = *from as std::ffi::c_char;
        }
        Ok(raw)
    }
}

/// An open `/dev/rv` that belongs to a job.
#[derive(Debug)]
pub struct Attachment {
    file: Arc<File>,
    endpoint: Endpoint,
    rv_index: u32,
    cache_mib: u32,
    q_depth: u32,
    max_registration: u64,
    ring_entries: u32,
}

impl Attachment {
    /// Attaches `file`.
    pub(crate) fn new(file: File, config: &AttachConfig) -> Result<Self> {
        let input = config.to_raw()?;
        let out = ioctl::call(file.as_fd(), &ioctl::ATTACH, input)
            .map_err(|error| name_device(error, config))?;
        Ok(Self {
            file: Arc::new(file),
            endpoint: config.endpoint.clone(),
            rv_index: out.rv_index,
            cache_mib: out.mr_cache_size,
            q_depth: out.q_depth,
            max_registration: match out.max_fmr_size {
                0 => u64::MAX,
                limit => limit,
            },
            ring_entries: config.ring_entries,
        })
    }

    /// Returns the port that it is attached to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns our number in the job on this node, which senders put into their immediates.
    pub fn rv_index(&self) -> u32 {
        self.rv_index
    }

    /// Returns the limit of the MR cache in MiB.
    pub fn cache_mib(&self) -> u32 {
        self.cache_mib
    }

    /// Returns the queue depth in force.
    pub fn q_depth(&self) -> u32 {
        self.q_depth
    }

    /// Returns the longest range, in bytes, that can be registered in one piece.
    pub fn max_registration(&self) -> u64 {
        self.max_registration
    }

    /// Maps the event ring; works once.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it was attached without one, [`Error::Map`] when it is mapped
    /// already or there is no memory.
    pub fn map_ring(&self) -> Result<Ring> {
        if self.ring_entries == 0 {
            return Err(Error::Argument("attached without an event ring".into()));
        }
        Ring::map(self.fd(), self.ring_entries)
    }

    /// Makes the connection to a remote node, or shares the one that the job has.
    ///
    /// # Errors
    ///
    /// The errno of `CONN_CREATE`.
    pub fn create_conn(&self, remote: &Endpoint) -> Result<Conn> {
        Conn::create(self.file.clone(), &self.endpoint, remote)
    }

    /// Registers a range of `buffer` on the device.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a range outside of the buffer, else the errno of `REG_MEM`.
    pub fn register(&self, buffer: &Buffer, range: Range<usize>, access: Access) -> Result<Mr> {
        Mr::register(self.file.clone(), buffer, range, access)
    }

    /// Reads the counters of the MR cache.
    ///
    /// # Errors
    ///
    /// The errno of `GET_CACHE_STATS`.
    pub fn cache_stats(&self) -> Result<CacheStats> {
        ioctl::call(self.fd(), &ioctl::GET_CACHE_STATS, ()).map(CacheStats::from)
    }

    /// Reads the counters of the event ring.
    ///
    /// # Errors
    ///
    /// The errno of `GET_EVENT_STATS`.
    pub fn event_stats(&self) -> Result<EventStats> {
        ioctl::call(self.fd(), &ioctl::GET_EVENT_STATS, ()).map(EventStats::from)
    }

    /// Issues an ioctl that no version of rv knows and that fails at once, for measurements.
    pub fn unknown_ioctl(&self) {
        let _ = ioctl::call(self.fd(), &ioctl::UNKNOWN, ());
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Says which devices there are when the one asked for is not.
fn name_device(error: Error, config: &AttachConfig) -> Error {
    match error.errno() {
        Some(libc::ENODEV) => Error::NoDevice {
            name: config.endpoint.device.clone(),
            present: Sysfs::default().devices(),
        },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(device: &str) -> AttachConfig {
        let endpoint = Endpoint {
            device: device.into(),
            ..Endpoint::sample(1)
        };
        AttachConfig {
            endpoint,
            job_key: JobKey([7; 16]),
            num_conn: 4,
            index_bits: 9,
            ring_entries: 192,
            cache_mib: 0,
            q_depth: 0,
            reconnect_timeout: 30,
            heartbeat_interval: 1000,
            fr_pages: 0,
        }
    }

    #[test]
    fn values_land_in_the_struct() {
        let raw = config("rxe0").to_raw().unwrap();
        assert_eq!(raw.dev_name[..5], [114, 120, 101, 48, 0]);
        assert_eq!(raw.rdma_mode, 1);
        assert_eq!(raw.loc_addr, 0x0a09_0001);
        assert_eq!(raw.loc_gid[12..], [10, 9, 0, 1]);
        assert_eq!((raw.job_key, raw.job_key_len), ([7; 16], 16));
        assert_eq!((raw.cq_entries, raw.num_conn, raw.index_bits), (192, 4, 9));
        assert_eq!((raw.reconnect_timeout, raw.hb_interval), (30, 1000));
    }

    #[test]
    fn device_names() {
        assert!(config("").to_raw().is_err());
        assert!(config("a\0b").to_raw().is_err());
        assert!(config(&"x".repeat(63)).to_raw().is_ok());
        assert!(config(&"x".repeat(64)).to_raw().is_err());
    }

    #[test]
    fn job_keys() {
        let text = "00ff00ff-0000-0000-0000-00ff0f0f00ff";
        let key: JobKey = text.parse().unwrap();
        assert_eq!(key.0[..4], [0, 0xff, 0, 0xff]);
        assert_eq!(key.to_string(), text);
        assert_eq!(text.replace('-', "").parse::<JobKey>().unwrap(), key);
        for bad in ["", "00ff", "zz", &"+".repeat(32), &"0".repeat(33)] {
            assert!(bad.parse::<JobKey>().is_err(), "{bad}");
        }
    }
}
