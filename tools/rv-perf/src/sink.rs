// SPDX-License-Identifier: GPL-2.0

//! Where the data goes.

use std::fs::{
    self,
    File,
    OpenOptions, //
};
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
use crate::source::Stop;

/// What becomes of the data.
pub(crate) enum Sink {
    /// It is written to a file.
    File(Target),
    /// Only its check sum is wanted.
    Checked(Box<Checksum>),
    /// Nobody looks at it.
    Discard,
}

/// A file in the making: it gets its name when it is complete, and is removed if it never is.
pub(crate) struct Target {
    file: File,
    /// The name it gets.
    path: PathBuf,
    /// The name it has; `None` when it is written in place (a device), or is complete.
    part: Option<PathBuf>,
}

impl Sink {
    /// Decides what becomes of the data of a client: `name` is the file it sends.
    pub(crate) fn new(output: Option<&Path>, name: Option<&str>, verify: bool) -> Result<Self> {
        match (output, name) {
            (Some(output), Some(name)) => {
                let path = if output.is_dir() {
                    output.join(plain_name(name)?)
                } else {
                    output.into()
                };
                Target::create(path).map(Sink::File)
            }
            _ if verify => Ok(Sink::Checked(Box::default())),
            _ => Ok(Sink::Discard),
        }
    }

    /// Tells whether somebody looks at the data, so that memory must not be written again before
    /// it is stored.
    pub(crate) fn counts(&self) -> bool {
        !matches!(self, Sink::Discard)
    }

    /// Takes a block that arrived, in any order.
    pub(crate) fn store(&self, position: u64, buffer: &Buffer, range: Range<usize>) -> Result<()> {
        match self {
            Sink::File(target) => buffer
                .write_to(range, &target.file, position)
                .map_err(Failure::file("write", &target.path)),
            _ => Ok(()),
        }
    }

    /// Takes a block in the order in which it was sent.
    pub(crate) fn in_order(&mut self, buffer: &Buffer, range: Range<usize>) -> Result<()> {
        match self {
            Sink::Checked(sum) => Ok(sum.update_from(buffer, range.start, range.len())?),
            _ => Ok(()),
        }
    }

    /// Returns the check sum of what was stored; `busy` is called now and then.
    pub(crate) fn checksum(
        &mut self,
        verify: bool,
        mut busy: impl FnMut() -> Result<()>,
    ) -> Result<Option<String>> {
        match self {
            Sink::File(target) if verify => {
                let sum = digest::of_file(&target.file, || busy().map_err(Stop::Failure));
                sum.map(Some).map_err(|stop| stop.at(&target.path))
            }
            Sink::Checked(sum) => Ok(Some(std::mem::take(&mut **sum).finish())),
            _ => Ok(None),
        }
    }

    /// Gives a complete file its name, and returns it.
    pub(crate) fn finish(self) -> Result<Option<String>> {
        match self {
            Sink::File(target) => target.finish().map(Some),
            _ => Ok(None),
        }
    }
}

impl Target {
    /// Creates the file beside its final place.
    fn create(path: PathBuf) -> Result<Self> {
        let in_place = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file());
        let part = (!in_place).then(|| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}.part", std::process::id()));
            PathBuf::from(name)
        });
        let name = part.as_ref().unwrap_or(&path);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(!in_place)
            .truncate(!in_place)
            .open(name)
            .map_err(Failure::file("create", name))?;
        Ok(Self { file, path, part })
    }

    /// Gives the file its name.
    fn finish(mut self) -> Result<String> {
        if let Some(part) = self.part.take() {
            fs::rename(&part, &self.path).map_err(|error| {
                let _ = fs::remove_file(&part);
                Failure::file("create", &self.path)(error)
            })?;
        }
        Ok(self.path.display().to_string())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

/// Checks that the name a client sent leads nowhere else.
fn plain_name(name: &str) -> Result<&str> {
    let bad = name.contains(['/', '\0']) || matches!(name, "" | "." | "..");
    if bad || name.len() > 255 {
        return Err(Failure::Peer(format!(
            "the client's file name `{}` is not acceptable",
            name.escape_default()
        )));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> Buffer {
        let buffer = Buffer::new(4096).unwrap();
        buffer.copy_in(0, b"worldhello ").unwrap();
        buffer
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = Sink::new(Some(dir.path()), Some("greeting"), true).unwrap();
        assert!(sink.counts());
        sink.store(6, &buffer(), 0..5).unwrap();
        sink.store(0, &buffer(), 5..11).unwrap();
        let path = dir.path().join("greeting");
        assert!(!path.exists());
        let mut calls = 0;
        let sum = sink.checksum(true, || {
            calls += 1;
            Ok(())
        });
        assert_eq!((sum.unwrap().unwrap().len(), calls), (64, 1));
        assert_eq!(sink.finish().unwrap().unwrap(), path.display().to_string());
        assert_eq!(fs::read(&path).unwrap(), b"hello world");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_incomplete_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let sink = Sink::new(Some(&dir.path().join("x")), Some("y"), false).unwrap();
        sink.store(0, &buffer(), 0..5).unwrap();
        drop(sink);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_stay_in_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\0b"] {
            assert!(
                Sink::new(Some(dir.path()), Some(name), false).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_device_is_written_in_place() {
        let output = Path::new("/dev/null");
        let sink = Sink::new(Some(output), Some("y"), false).unwrap();
        sink.store(0, &buffer(), 0..5).unwrap();
        assert_eq!(sink.finish().unwrap().unwrap(), "/dev/null");
        assert!(output.exists());
    }

    #[test]
    fn without_output_only_the_sum_is_kept() {
        let mut sink = Sink::new(None, Some("y"), true).unwrap();
        sink.in_order(&buffer(), 5..11).unwrap();
        sink.in_order(&buffer(), 0..5).unwrap();
        let mut expected = Checksum::default();
        expected.update(b"hello world");
        assert_eq!(
            sink.checksum(true, || Ok(())).unwrap(),
            Some(expected.finish())
        );
        assert!(!Sink::new(None, None, false).unwrap().counts());
    }
}
