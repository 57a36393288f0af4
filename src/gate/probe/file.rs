//! `file`: a file, directory or socket that exists.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Read};

use super::disk::{self, fault};
use super::lock::ProbeLock;
use super::sightings::{FileState, Sightings};
use crate::bind_mount::deleted;
use crate::boot::{Moment, Uptime};
use crate::config::FileCheck;
use crate::small_file;

/// Bytes of a file that are searched for the text of `contains`.
const SEARCHED_BYTES: u64 = 1024 * 1024;

pub(super) async fn check(spec: &FileCheck, lock: &ProbeLock) -> Result<String, String> {
    let expected = spec.clone();
    disk::run(lock, &spec.path, move |seen| {
        check_blocking(&expected, seen)
    })
    .await
}

fn check_blocking(expected: &FileCheck, seen: &mut Sightings) -> Result<String, String> {
    let path = &expected.path;
    let shown = path.display();
    let began = Moment::now();
    let found = look(expected);
    let name = path.as_os_str().to_owned();
    match &found {
        Ok(_) => seen.list(began, [&name]),
        Err(error) if error.kind() == ErrorKind::NotFound => seen.list(began, []),
        // Nothing is known.
        Err(_) => {}
    }
    let (metadata, beginning) =
        found.map_err(|error| format!("{shown}: {}", fault(path, &error)))?;
    if expected.newer_than_boot {
        let (state, uptime) = (FileState::of(&metadata), Uptime::read()?);
        if let Some(why) = seen.stale(&name, state, uptime, Moment::now()) {
            return Err(format!("{shown}: {why}"));
        }
    }
    if let Some(why) = deleted(path) {
        return Err(format!("{shown} {why}"));
    }
    content(expected, &metadata, &beginning).map_err(|why| format!("{shown} {why}"))?;
    Ok(found_words(expected))
}

/// What is at the path and, for `contains`, how it begins. Both are of the same file, even if another one replaces it.
fn look(expected: &FileCheck) -> io::Result<(Metadata, Vec<u8>)> {
    let metadata = fs::metadata(&expected.path)?;
    // It can have effects to open a pipe or a device.
    if expected.contains.is_none() || !metadata.is_file() {
        return Ok((metadata, Vec::new()));
    }
    let (file, metadata) = small_file::open(&expected.path)?;
    let mut beginning = Vec::new();
    file.take(SEARCHED_BYTES).read_to_end(&mut beginning)?;
    Ok((metadata, beginning))
}

/// `Err` is why the size or the content is not as expected. It completes a sentence that begins with the path, and shows
/// nothing of the content.
fn content(expected: &FileCheck, metadata: &Metadata, beginning: &[u8]) -> Result<(), String> {
    let FileCheck {
        min_bytes,
        contains,
        ..
    } = expected;
    if min_bytes.is_none() && contains.is_none() {
        return Ok(());
    }
    if !metadata.is_file() {
        return Err("is not a regular file, which minBytes and contains need".into());
    }
    let size = metadata.len();
    if let Some(least) = min_bytes
        && size < u64::from(*least)
    {
        return Err(format!(
            "is too small: its size in bytes is {size}, and minBytes is {least}"
        ));
    }
    match contains {
        Some(text) if !has(beginning, text) => Err(if beginning.len() as u64 == SEARCHED_BYTES {
            "does not have the text of contains in its first MiB"
        } else {
            "does not have the text of contains"
        }
        .into()),
        _ => Ok(()),
    }
}

/// Whether the text is in the bytes, which can be of a binary file. The text is UTF-8, so each occurrence is within one
/// part that is UTF-8.
fn has(bytes: &[u8], text: &str) -> bool {
    bytes.utf8_chunks().any(|part| part.valid().contains(text))
}

/// What was found, without the time and the size, which can change at each look.
fn found_words(expected: &FileCheck) -> String {
    let size = expected.min_bytes;
    let size = size.map(|least| format!("has a size of at least {least}"));
    let text = expected.contains.as_ref();
    let text = text.map(|_| "has the text of contains".into());
    let parts: Vec<_> = [Some("exists".into()), size, text]
        .into_iter()
        .flatten()
        .collect();
    format!("{} {}", expected.path.display(), parts.join(", "))
}

#[cfg(test)]
mod tests;
