// SPDX-License-Identifier: GPL-2.0

//! Page-aligned memory that a device may write while the program runs.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::error::{
    Error,
    Result, //
};
use crate::mapping::Mapping;

/// Page-aligned, zeroed memory for transfers.
///
/// The peer's device may write a registered part of it at any time, so there is no way to borrow
/// the bytes as a slice; they are copied in and out. Concurrent access gives unspecified bytes,
/// never undefined behaviour: all copies are made by the kernel or by raw copies of `u8`.
#[derive(Debug)]
pub struct Buffer {
    mapping: Mapping,
}

impl Buffer {
    /// Allocates `len` bytes, which must not be 0.
    ///
    /// # Errors
    ///
    /// [`Error::Map`] when there is not so much memory.
    pub fn new(len: usize) -> Result<Self> {
        Ok(Self {
            mapping: Mapping::anonymous("a buffer", len)?,
        })
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Tells whether the buffer has no bytes; it never is.
    pub fn is_empty(&self) -> bool {
        self.mapping.len() == 0
    }

    /// Returns the first address, for other libraries that register memory.
    pub fn as_ptr(&self) -> *mut u8 {
        self.mapping.start().as_ptr()
    }

    /// Returns the address of the byte at `offset`.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        // CAST: An address has at most 64 bits.
        (self.mapping.start().as_ptr() as u64).wrapping_add(offset as u64)
    }

    /// Checks that `range` is inside, and returns its first byte and its length.
    pub(crate) fn span(&self, range: &Range<usize>) -> Result<(*mut u8, usize)> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::Argument(format!(
                "range {}..{} is outside of a buffer of {} bytes",
                range.start,
                range.end,
                self.len()
            )));
        }
        let start = self.mapping.start().as_ptr().wrapping_add(range.start);
        Ok((start, range.end - range.start))
    }

    /// Copies `data` to `offset`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it does not fit.
    pub fn copy_in(&self, offset: usize, data: &[u8]) -> Result<()> {
        let (to, len) = self.span(&(offset..offset.saturating_add(data.len())))?;
        // SAFETY: `span()` checked the target; the memory is private to `self` and never lent as
        // a slice, so it cannot overlap `data`.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, len) };
        Ok(())
    }

    /// Copies from `offset` into `data`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the buffer is too short.
    pub fn copy_out(&self, offset: usize, data: &mut [u8]) -> Result<()> {
        let (from, len) = self.span(&(offset..offset.saturating_add(data.len())))?;
        // SAFETY: As in `copy_in()`, with the roles changed.
        unsafe { std::ptr::copy_nonoverlapping(from, data.as_mut_ptr(), len) };
        Ok(())
    }

    /// Fills `range` from `file` at `position`.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the file is too short, or what reading it gave.
    pub fn fill_from(&self, range: Range<usize>, file: &File, position: u64) -> io::Result<()> {
        let (start, len) = self.span(&range).map_err(io::Error::other)?;
        let mut done = 0;
        while done < len {
            let at = offset(position, done)?;
            // SAFETY: `start + done .. start + len` is inside the buffer, which nobody borrows.
            let n = unsafe {
                let to = start.wrapping_add(done);
                libc::pread(file.as_raw_fd(), to.cast(), len - done, at)
            };
            done += progress(n, io::ErrorKind::UnexpectedEof)?;
        }
        Ok(())
    }

    /// Writes `range` to `file` at `position`.
    ///
    /// # Errors
    ///
    /// What writing the file gave.
    pub fn write_to(&self, range: Range<usize>, file: &File, position: u64) -> io::Result<()> {
        let (start, len) = self.span(&range).map_err(io::Error::other)?;
        let mut done = 0;
        while done < len {
            let at = offset(position, done)?;
            // SAFETY: `start + done .. start + len` is inside the buffer.
            let n = unsafe {
                let from = start.wrapping_add(done);
                libc::pwrite(file.as_raw_fd(), from.cast(), len - done, at)
            };
            done += progress(n, io::ErrorKind::WriteZero)?;
        }
        Ok(())
    }
}

/// Adds a position in a file and an offset.
fn offset(position: u64, done: usize) -> io::Result<i64> {
    // CAST: `usize` has at most 64 bits.
    position
        .checked_add(done as u64)
        .and_then(|at| i64::try_from(at).ok())
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Takes the result of a read or write call: bytes moved, or 0 where it has to be tried again.
fn progress(n: isize, nothing: io::ErrorKind) -> io::Result<usize> {
    match usize::try_from(n) {
        Ok(0) => Err(nothing.into()),
        Ok(n) => Ok(n),
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        let buffer = Buffer::new(8192).unwrap();
        buffer.copy_in(4000, b"rendezvous").unwrap();
        let mut back = [0; 10];
        buffer.copy_out(4000, &mut back).unwrap();
        assert_eq!(&back, b"rendezvous");
    }

    #[test]
    fn ranges_outside_are_refused() {
        let buffer = Buffer::new(4096).unwrap();
        assert!(buffer.copy_in(4090, b"too long").is_err());
        assert!(buffer.copy_in(usize::MAX, b"wraps").is_err());
        let range = Range { start: 9, end: 3 };
        assert!(buffer.span(&range).is_err());
        assert!(buffer.span(&(4096..4096)).is_ok());
    }

    #[test]
    fn files_are_read_and_written_at_positions() {
        let source = tempfile::tempfile().unwrap();
        let target = tempfile::tempfile().unwrap();
        let buffer = Buffer::new(4096).unwrap();
        buffer.copy_in(0, b"0123456789").unwrap();
        buffer.write_to(0..10, &source, 5).unwrap();
        buffer.fill_from(100..104, &source, 8).unwrap();
        buffer.write_to(100..104, &target, 0).unwrap();
        buffer.fill_from(0..4, &target, 0).unwrap();
        let mut back = [0; 4];
        buffer.copy_out(0, &mut back).unwrap();
        assert_eq!(&back, b"3456");
        let error = buffer.fill_from(0..100, &source, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
