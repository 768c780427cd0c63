// SPDX-License-Identifier: GPL-2.0

//! Check sums.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rv_client::Buffer;
use sha2::{
    Digest,
    Sha256, //
};

/// Bytes that are looked at in one go.
const CHUNK: usize = 256 << 10;

/// A SHA-256 in the making.
#[derive(Default)]
pub(crate) struct Checksum {
    state: Sha256,
    chunk: Vec<u8>,
}

impl Checksum {
    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// Adds `length` bytes of a buffer.
    pub(crate) fn update_from(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        length: usize,
    ) -> rv_client::Result<()> {
        let mut done = 0;
        while done < length {
            self.chunk.resize(CHUNK.min(length - done), 0);
            buffer.copy_out(offset.saturating_add(done), &mut self.chunk)?;
            self.state.update(&self.chunk);
            done += self.chunk.len();
        }
        Ok(())
    }

    /// Returns the sum in hexadecimal form.
    pub(crate) fn finish(self) -> String {
        format!("{:x}", self.state.finalize())
    }
}

/// Sums up a file, and calls `between` now and then.
pub(crate) fn of_file<E: From<io::Error>>(
    file: &File,
    mut between: impl FnMut() -> Result<(), E>,
) -> Result<String, E> {
    let mut sum = Checksum::default();
    let mut chunk = vec![0; CHUNK];
    let mut position = 0;
    loop {
        let n = match file.read_at(&mut chunk, position) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        if n == 0 {
            return Ok(sum.finish());
        }
        sum.update(chunk.get(..n).unwrap_or_default());
        // CAST: `usize` has at most 64 bits.
        position += n as u64;
        between()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn known_sums() {
        assert_eq!(Checksum::default().finish(), EMPTY);
        let mut sum = Checksum::default();
        sum.update(b"a");
        sum.update(b"bc");
        assert_eq!(sum.finish(), ABC);
    }

    #[test]
    fn files_and_buffers() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abc").unwrap();
        let mut calls = 0;
        let sum = of_file(&file, || {
            calls += 1;
            Ok::<_, io::Error>(())
        });
        assert_eq!((sum.unwrap().as_str(), calls), (ABC, 1));

        let buffer = Buffer::new(4096).unwrap();
        buffer.copy_in(77, b"abc").unwrap();
        let mut sum = Checksum::default();
        sum.update_from(&buffer, 77, 3).unwrap();
        assert_eq!(sum.finish(), ABC);
    }
}
