//! Reads small text files that people write. Anything may be in their place.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::text::plain;

/// In bytes; a ConfigMap cannot be larger either.
const MAX_SIZE: u64 = 1024 * 1024;

/// The text of a file. The error completes a sentence that begins with the file's name.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let bytes = read_bytes(path).map_err(|error| format!("cannot be read: {}", plain(&error)))?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err("is larger than 1 MiB".into());
    }
    if let Some(index) = bytes.iter().position(|byte| *byte == 0) {
        return Err(format!("is binary, not text: byte {index} is NUL"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        format!("is not UTF-8 text: byte {valid} is invalid")
    })
}

/// At most one byte more than allowed, whatever size the file claims to have. Only of a regular file: a read of a pipe
/// that nobody writes to would never return.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
