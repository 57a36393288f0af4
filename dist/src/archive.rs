//! Archives that depend on their contents only: fixed times and owners, and the order of the arguments.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;

/// A file in an archive.
pub(crate) struct Entry<'a> {
    pub(crate) path: &'a str,
    pub(crate) mode: u32,
    pub(crate) bytes: &'a [u8],
}

/// A tar archive of files of root, in the format of POSIX, which every program reads.
pub(crate) fn tar(entries: &[Entry], time: Timestamp) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(entry.bytes.len() as u64);
        header.set_mode(entry.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(u64::try_from(time.as_second())?);
        archive.append_data(&mut header, entry.path, entry.bytes)?;
    }
    Ok(archive.into_inner()?)
}

/// Compresses `bytes`. The header has no time, no name and no operating system.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut archive = GzBuilder::new().write(Vec::new(), Compression::best());
    archive.write_all(bytes)?;
    Ok(archive.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn an_archive_has_what_it_is_given_and_nothing_of_the_machine() {
        let time = Timestamp::from_second(1_000_000_000).unwrap();
        let entries = [
            Entry {
                path: "b/program",
                mode: 0o755,
                bytes: b"one",
            },
            Entry {
                path: "a",
                mode: 0o644,
                bytes: b"two",
            },
        ];
        let packed = gzip(&tar(&entries, time).unwrap()).unwrap();
        // The flags, the time, the level and the operating system: RFC 1952, 2.3.
        assert_eq!(packed[3..10], [0, 0, 0, 0, 0, 2, 255]);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&packed[..]));
        let found: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
                assert_eq!(header.mtime().unwrap(), 1_000_000_000);
                assert_eq!(
                    (header.username(), header.groupname()),
                    (Ok(Some("")), Ok(Some("")))
                );
                (
                    entry.path().unwrap().display().to_string(),
                    header.mode().unwrap(),
                    text,
                )
            })
            .collect();
        let expected = [("b/program", 0o755, "one"), ("a", 0o644, "two")];
        assert_eq!(
            found,
            expected.map(|(path, mode, text)| (path.into(), mode, text.into()))
        );
    }
}
