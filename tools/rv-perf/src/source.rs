// SPDX-License-Identifier: GPL-2.0

//! Where the data comes from.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{
    Path,
    PathBuf, //
};

use rv_client::Buffer;

use crate::digest::{
    self,
    Checksum, //
};
use crate::failure::{
    Failure,
    Result, //
};
use crate::interrupt::Interrupt;

/// The data to send.
pub(crate) enum Source {
    /// A file.
    File {
        /// Its path, for messages.
        path: PathBuf,
        /// The file.
        file: File,
        /// Its length when it was opened.
        length: u64,
    },
    /// Data made up, whose check sum is wanted: each write differs.
    Checked(Box<Checksum>),
    /// Data made up, which nobody looks at.
    Any,
}

impl Source {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Failure::file("open", path))?;
        let metadata = file.metadata().map_err(Failure::file("open", path))?;
        if !metadata.is_file() {
            return Err(Failure::Usage(format!(
                "{} is no regular file",
                path.display()
            )));
        }
        Ok(Source::File {
            path: path.into(),
            file,
            length: metadata.len(),
        })
    }

    /// Returns the last part of the name of a file.
    pub(crate) fn file_name(&self) -> Option<String> {
        match self {
            Source::File { path, .. } => Some(path.file_name()?.to_string_lossy().into_owned()),
            _ => None,
        }
    }

    /// Tells whether each write has its own data, so that memory must be filled for each.
    pub(crate) fn counts(&self) -> bool {
        !matches!(self, Source::Any)
    }

    /// Fills memory with the data of a write.
    pub(crate) fn load(
        &mut self,
        number: u64,
        position: u64,
        buffer: &Buffer,
        range: Range<usize>,
    ) -> Result<()> {
        match self {
            Source::File { path, file, .. } => buffer
                .fill_from(range, file, position)
                .map_err(Failure::file("read", path)),
            Source::Checked(sum) => {
                let data = pattern(number, range.len());
                sum.update(&data);
                Ok(buffer.copy_in(range.start, &data)?)
            }
            Source::Any => Ok(()),
        }
    }

    /// Returns the check sum of everything that was loaded, or of the file.
    pub(crate) fn checksum(self, interrupt: &Interrupt) -> Result<Option<String>> {
        match self {
            Source::File { path, file, .. } => {
                let sum = digest::of_file(&file, || interrupt.check().map_err(Stop::Failure));
                sum.map(Some).map_err(|stop| stop.at(&path))
            }
            Source::Checked(sum) => Ok(Some(sum.finish())),
            Source::Any => Ok(None),
        }
    }
}

/// Why the check sum of a file was not finished.
pub(crate) enum Stop {
    /// The file could not be read.
    Read(io::Error),
    /// Something else.
    Failure(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Read(error)
    }
}

impl Stop {
    /// Names the file.
    pub(crate) fn at(self, path: &Path) -> Failure {
        match self {
            Stop::Read(error) => Failure::file("read", path)(error),
            Stop::Failure(failure) => failure,
        }
    }
}

/// Makes data that depends on the number of the write (xorshift64).
fn pattern(number: u64, length: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut data = Vec::with_capacity(length.next_multiple_of(8));
    while data.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data.extend_from_slice(&state.to_le_bytes());
    }
    data.truncate(length);
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn patterns_differ() {
        assert_eq!(pattern(1, 1001).len(), 1001);
        assert_ne!(pattern(0, 64), pattern(1, 64));
        assert_eq!(pattern(5, 64), pattern(5, 64));
        assert!(pattern(3, 0).is_empty());
    }

    #[test]
    fn a_file_is_loaded_by_position() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0123456789").unwrap();
        let mut source = Source::open(file.path()).unwrap();
        let buffer = Buffer::new(4096).unwrap();
        source.load(2, 4, &buffer, 10..13).unwrap();
        let mut data = [0; 3];
        buffer.copy_out(10, &mut data).unwrap();
        assert_eq!(&data, b"456");
        let failure = source.load(2, 9, &buffer, 10..13).unwrap_err();
        assert!(failure.to_string().contains("cannot read"), "{failure}");
        assert!(source.checksum(&Interrupt::default()).unwrap().is_some());
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Source::open(dir.path()).is_err());
        assert!(Source::open(&dir.path().join("none")).is_err());
    }

    #[test]
    fn the_sum_is_that_of_the_loaded_data() {
        let mut source = Source::Checked(Box::default());
        let buffer = Buffer::new(4096).unwrap();
        source.load(0, 0, &buffer, 0..100).unwrap();
        source.load(1, 0, &buffer, 100..150).unwrap();
        let mut expected = Checksum::default();
        expected.update_from(&buffer, 0, 150).unwrap();
        let sum = source.checksum(&Interrupt::default()).unwrap();
        assert_eq!(sum, Some(expected.finish()));
    }
}
