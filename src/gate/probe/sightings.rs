//! Which files were written since this boot, by their times and by what a gate has seen of them. Pure.
//!
//! Times alone are not enough: where a machine boots with a wrong clock, a file that is written before the clock is set seems
//! to be from before the boot. This process is of this boot, so a write that it sees is too. Evidence stays evidence when the
//! clock is set.
//!
//! A name that appears is not evidence by itself: a file system that is mounted late, or a directory or a link that is
//! replaced, can bring old files. So the inode must have changed (`st_ctime`) since the process has last seen the name without
//! it. Nothing but the kernel sets that time. A new file has it, a renamed one on all usual file systems, and an old one that
//! becomes visible does not. If the clock is set between two looks, the times of earlier boots can be between them too. So
//! each look also has a clock that nobody sets, which says how far the times of a write can be from each look.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use jiff::{SignedDuration, Timestamp};

use crate::boot::{Moment, Uptime, not_since};

/// The coarsest times of file systems (FAT: 2 s).
const GRAIN: SignedDuration = SignedDuration::from_secs(2);

/// What a gate has seen of the files of its place: those in a directory, or a single one.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    /// When it last looked which files there are.
    listed_at: Option<Moment>,
    files: BTreeMap<OsString, Sighting>,
}

#[derive(Debug, Default)]
struct Sighting {
    /// The last look at which the name was absent, or had [`Self::state`].
    before: Option<Moment>,
    /// `None` before the first look at it.
    state: Option<FileState>,
    /// Whether this state was written since the boot.
    is_new: bool,
}

/// A state of a file, which each write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    /// Device and number.
    inode: (u64, u64),
    size: u64,
    modified: Timestamp,
    inode_changed: Timestamp,
}

impl FileState {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        // No machine was up at a time that is out of range.
        let time = |seconds, nanoseconds: i64| {
            let nanoseconds = i32::try_from(nanoseconds).unwrap_or_default();
            Timestamp::new(seconds, nanoseconds).unwrap_or(Timestamp::MIN)
        };
        Self {
            inode: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            inode_changed: time(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the contents are the same as far as this shows. A change of the owner or the mode is no write.
    fn is_same(&self, other: &Self) -> bool {
        let contents = |state: &Self| (state.inode, state.size, state.modified);
        contents(self) == contents(other)
    }
}

impl Sightings {
    /// Records that these files and no others are there. `began`: before the look.
    pub(super) fn list<'n>(
        &mut self,
        began: Moment,
        names: impl IntoIterator<Item = &'n OsString>,
    ) {
        let absent_at = self.listed_at.replace(began);
        let mut known = std::mem::take(&mut self.files);
        let files = names.into_iter().map(|name| {
            let new = || Sighting {
                before: absent_at,
                ..Sighting::default()
            };
            (name.clone(), known.remove(name).unwrap_or_else(new))
        });
        self.files = files.collect();
    }

    /// Records the state of a file that the last list has, and returns why it was not written since the boot, if it was not.
    /// `now`: after the look.
    pub(super) fn stale(
        &mut self,
        name: &OsStr,
        state: FileState,
        uptime: Uptime,
        now: Moment,
    ) -> Option<String> {
        let file = self.files.entry(name.to_owned()).or_default();
        if !file.state.is_some_and(|known| known.is_same(&state)) {
            let is_same_inode = file.state.is_some_and(|known| known.inode == state.inode);
            file.is_new = is_same_inode
                || file
                    .before
                    .is_some_and(|before| is_between(before, now, state.inode_changed));
            file.state = Some(state);
        }
        file.before = self.listed_at;
        file.is_new |= uptime.contains(state.modified);
        (!file.is_new).then(|| {
            format!(
                "its last write is {}, and untaint has not seen it: if it was after the boot, write the file again",
                not_since(Some(uptime), state.modified)
            )
        })
    }
}

/// Whether `time` is between two looks, by the clock as it was set at one of them.
fn is_between(before: Moment, now: Moment, time: Timestamp) -> bool {
    let passed = now.elapsed.saturating_sub(before.elapsed);
    let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
    let possible = -GRAIN..=passed.saturating_add(GRAIN);
    possible.contains(&time.duration_since(before.clock))
        || possible.contains(&now.clock.duration_since(time))
}

#[cfg(test)]
mod tests;
