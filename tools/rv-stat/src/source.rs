// SPDX-License-Identifier: GPL-2.0

//! Reads the tables, and finds out what is missing if there are none.

use std::fs;
use std::io;
use std::path::Path;

use crate::failure::{
    Failure,
    Result, //
};
use crate::record::Record;

/// What there is in the system, for a diagnosis.
pub(crate) struct System<'a> {
    /// The mounted file systems, as `/proc/mounts` has them.
    mounts: &'a Path,
    /// A directory that is there while the module is loaded.
    module: &'a Path,
}

impl Default for System<'_> {
    fn default() -> Self {
        Self {
            mounts: Path::new("/proc/mounts"),
            module: Path::new("/sys/module/rv"),
        }
    }
}

/// Reads a table.
pub(crate) fn table(directory: &Path, name: &str) -> Result<Vec<Record>> {
    let path = directory.join(name);
    let text = fs::read_to_string(&path)
        .map_err(|error| System::default().diagnose(directory, &path, error))?;
    lines(&path, &text)
}

/// Takes the lines of a table apart.
fn lines(path: &Path, text: &str) -> Result<Vec<Record>> {
    text.lines()
        .enumerate()
        .map(|(at, line)| {
            Record::parse(line).map_err(|what| Failure::Format {
                path: path.to_path_buf(),
                line: at + 1,
                what,
            })
        })
        .collect()
}

impl System<'_> {
    /// Why a table of `directory` could not be read.
    fn diagnose(&self, directory: &Path, path: &Path, error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Failure::Permission(directory.to_path_buf()),
            io::ErrorKind::NotFound if !self.module.exists() => Failure::NotLoaded,
            io::ErrorKind::NotFound if !self.has_debugfs() => Failure::NotMounted,
            io::ErrorKind::NotFound => Failure::NoTables(path.to_path_buf()),
            _ => Failure::read(path, error),
        }
    }

    fn has_debugfs(&self) -> bool {
        let mounts = fs::read_to_string(self.mounts).unwrap_or_default();
        let kind = |line: &str| line.split(' ').nth(2).map(str::to_owned);
        mounts
            .lines()
            .filter_map(kind)
            .any(|kind| kind == "debugfs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis(mounts: &str, loaded: bool, kind: io::ErrorKind) -> io::Result<Failure> {
        let root = tempfile::tempdir()?;
        let (mounts_path, module) = (root.path().join("mounts"), root.path().join("rv"));
        fs::write(&mounts_path, mounts)?;
        if loaded {
            fs::create_dir(&module)?;
        }
        let system = System {
            mounts: &mounts_path,
            module: &module,
        };
        Ok(system.diagnose(Path::new("/d"), Path::new("/d/conns"), kind.into()))
    }

    #[test]
    fn each_cause_has_its_cure() -> io::Result<()> {
        use io::ErrorKind::{NotFound, PermissionDenied, TimedOut};
        let debugfs = "sysfs /sys sysfs rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n";
        for (mounts, loaded, kind, said, code) in [
            ("", false, NotFound, "modprobe rv", 3),
            (
                "sysfs /debugfs sysfs rw 0 0\n",
                true,
                NotFound,
                "mount -t debugfs",
                3,
            ),
            (debugfs, true, NotFound, "has no tables", 3),
            (debugfs, true, PermissionDenied, "as root", 3),
            (debugfs, true, TimedOut, "cannot read /d/conns", 1),
        ] {
            let failure = diagnosis(mounts, loaded, kind)?;
            assert!(failure.to_string().contains(said), "{failure} lacks {said}");
            assert!(!failure.to_string().contains('\n'));
            assert_eq!(failure.code(), code, "{failure}");
        }
        Ok(())
    }

    #[test]
    fn a_bad_line_is_named() {
        let failure = lines(Path::new("/d/jobs"), "job=1\njob\n").err();
        let said = failure
            .map(|failure| failure.to_string())
            .unwrap_or_default();
        assert!(said.starts_with("/d/jobs: line 2 "), "{said}");
    }
}
