// SPDX-License-Identifier: GPL-2.0

//! The open node, before it is attached.

use std::fs::{
    File,
    OpenOptions, //
};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::Path;

use crate::abi;
use crate::attachment::{
    AttachConfig,
    Attachment, //
};
use crate::error::{
    Error,
    Result, //
};
use crate::ioctl;

/// The node of the module.
const NODE: &str = "/dev/rv";

/// An open `/dev/rv` on which the ABI revision is agreed.
#[derive(Debug)]
pub struct Device {
    file: File,
    major: u16,
    minor: u16,
}

impl Device {
    /// Opens `/dev/rv`.
    ///
    /// # Errors
    ///
    /// Says what is missing: the node, the permission, or a module of the right revision.
    pub fn open() -> Result<Self> {
        Self::open_at(Path::new(NODE))
    }

    /// Opens a node at another place.
    ///
    /// # Errors
    ///
    /// As [`open()`](Self::open).
    pub fn open_at(path: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|source| open_error(path, source))?;
        let answer = agree(&file).map_err(|error| match error {
            Error::Ioctl { source, .. } => Error::NotRv {
                path: path.display().to_string(),
                source,
            },
            other => other,
        })?;
        check_revision(answer.major_rev, answer.minor_rev)?;
        Ok(Self {
            file,
            major: answer.major_rev,
            minor: answer.minor_rev,
        })
    }

    /// Returns the ABI revision of the module.
    pub fn abi_version(&self) -> (u16, u16) {
        (self.major, self.minor)
    }

    /// Joins the job that `config` describes.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] for an unknown device, [`Error::Argument`] for values that the ABI
    /// cannot express, else the errno of `ATTACH`.
    pub fn attach(self, config: &AttachConfig) -> Result<Attachment> {
        Attachment::new(self.file, config)
    }
}

/// Tells the module our revision and asks for its own.
fn agree(file: &File) -> Result<abi::rv_capability_params> {
    // CAST: Small constants.
    let input = abi::rv_capability_params {
        major_rev: abi::RV_ABI_VER_MAJOR as u16,
        minor_rev: abi::RV_ABI_VER_MINOR as u16,
        ..Default::default()
    };
    ioctl::call(file.as_fd(), &ioctl::CAPABILITY, input)
}

/// Checks that the module knows all ioctls in the form we use.
fn check_revision(major: u16, minor: u16) -> Result<()> {
    // CAST: Small constants.
    let (want_major, want_minor) = (abi::RV_ABI_VER_MAJOR as u16, abi::RV_ABI_VER_MINOR as u16);
    if major == want_major && minor >= want_minor {
        return Ok(());
    }
    Err(Error::AbiVersion {
        major,
        minor,
        want_major,
        want_minor,
    })
}

/// Says why the node could not be opened.
fn open_error(path: &Path, source: std::io::Error) -> Error {
    let missing = [libc::ENODEV, libc::ENXIO];
    let path = path.display().to_string();
    match source.kind() {
        ErrorKind::NotFound => Error::NoNode { path },
        ErrorKind::PermissionDenied => Error::NoPermission { path },
        // The node is left over from a module that is gone.
        _ if missing.contains(&source.raw_os_error().unwrap_or(0)) => Error::NoNode { path },
        _ => Error::Open { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_node() {
        let dir = tempfile::tempdir().unwrap();
        let error = Device::open_at(&dir.path().join("rv")).unwrap_err();
        assert!(matches!(error, Error::NoNode { .. }), "{error}");
        assert!(error.to_string().contains("modprobe rv"), "{error}");
    }

    #[test]
    fn another_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Device::open_at(file.path()).unwrap_err();
        assert!(matches!(error, Error::NotRv { .. }), "{error}");
    }

    #[test]
    fn revisions() {
        assert!(check_revision(1, 6).is_ok());
        assert!(check_revision(1, 7).is_ok());
        for (major, minor) in [(1, 5), (0, 9), (2, 0)] {
            let error = check_revision(major, minor).unwrap_err();
            assert!(
                error.to_string().contains(&format!("ABI {major}.{minor}")),
                "{error}"
            );
        }
    }
}
