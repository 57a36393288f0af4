//! Reads small files. Their paths may also lead to pipes, devices, directories or huge files.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::text::io_message;

/// In bytes; a ConfigMap cannot be larger either.
pub(crate) const MAX_TEXT_BYTES: u64 = 1024 * 1024;

/// The text of a file. The error completes a sentence that begins with the file's name.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    text(read_bytes(path, MAX_TEXT_BYTES).map(|(bytes, _)| bytes))
}

/// The same for the text on standard input.
pub(crate) fn read_standard_input() -> Result<String, String> {
    text(read_at_most(io::stdin().lock(), MAX_TEXT_BYTES))
}

fn text(read: io::Result<Vec<u8>>) -> Result<String, String> {
    let bytes = read.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => "is larger than 1 MiB".into(),
        _ => format!("cannot be read: {}", io_message(&error)),
    })?;
    if let Some(index) = bytes.iter().position(|byte| *byte == 0) {
        return Err(format!("is binary, not text: byte {index} is NUL"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        format!("is not UTF-8 text: byte {valid} is invalid")
    })
}

/// The contents of a regular file of at most `limit` bytes, and its metadata. The error of a larger file is
/// [`ErrorKind::FileTooLarge`].
pub(crate) fn read_bytes(path: &Path, limit: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let (file, metadata) = open(path)?;
    // The size in the metadata may be wrong, or change.
    Ok((read_at_most(file, limit)?, metadata))
}

/// Opens a regular file, and nothing else: a read of a pipe without a writer would never return.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok((file, metadata))
}

fn read_at_most(file: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let reason = format!("larger than {limit} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}
