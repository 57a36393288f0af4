//! `file`: a file, directory or socket that exists.

use std::fs;
use std::io::ErrorKind;

use super::disk::{self, fault};
use super::lock::ProbeLock;
use super::sightings::{FileState, Sightings};
use crate::bind_mount::deleted;
use crate::boot::{Moment, Uptime};
use crate::config::FileCheck;

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
    let found = fs::metadata(path);
    let name = path.as_os_str().to_owned();
    match &found {
        Ok(_) => seen.list(began, [&name]),
        Err(error) if error.kind() == ErrorKind::NotFound => seen.list(began, []),
        // Nothing is known.
        Err(_) => {}
    }
    let metadata = found.map_err(|error| format!("{shown}: {}", fault(path, &error)))?;
    if expected.newer_than_boot {
        let (state, uptime) = (FileState::of(&metadata), Uptime::read()?);
        if let Some(why) = seen.stale(&name, state, uptime, Moment::now()) {
            return Err(format!("{shown}: {why}"));
        }
    }
    if let Some(why) = deleted(path) {
        return Err(format!("{shown} {why}"));
    }
    Ok(format!("{shown} exists"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::gate::Outcome;

    async fn check(path: PathBuf, newer_than_boot: bool) -> Outcome {
        let spec = FileCheck {
            path,
            newer_than_boot,
        };
        super::check(&spec, &ProbeLock::default()).await.into()
    }

    #[tokio::test]
    async fn whatever_exists_opens_also_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        assert_eq!(
            check(file.clone(), false).await,
            Outcome::Closed(format!("{}: does not exist", file.display()))
        );
        File::create(&file).unwrap();
        let link = dir.path().join("link");
        symlink("file", &link).unwrap();
        let socket = dir.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for path in [file, link, socket, dir.path().to_owned()] {
            let outcome = check(path.clone(), true).await;
            assert_eq!(outcome, Outcome::Open(format!("{} exists", path.display())));
        }
    }

    #[tokio::test]
    async fn a_check_that_hangs_does_not_pile_up_others() {
        let spec = FileCheck {
            path: "/".into(),
            newer_than_boot: false,
        };
        let lock = ProbeLock::default();
        let check = async || Outcome::from(super::check(&spec, &lock).await);
        let hung = lock.acquire().await.unwrap();
        assert!(check().await.message().contains("does not answer"));
        drop(hung);
        assert!(check().await.is_open());
    }

    /// `/proc/self/fd` pins an inode as a mount does.
    #[tokio::test]
    async fn what_was_deleted_and_is_still_mounted_is_closed_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let [file, socket, other] = ["file", "socket", "other"].map(|name| dir.path().join(name));
        let _listener = UnixListener::bind(&socket).unwrap();
        for (path, replaced) in [(&file, false), (&file, true), (&socket, false)] {
            if path == &file {
                fs::write(path, "old").unwrap();
            }
            let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
            let pinned = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap();
            let mounted = PathBuf::from(format!("/proc/self/fd/{}", pinned.as_raw_fd()));
            assert!(check(mounted.clone(), false).await.is_open());
            if replaced {
                fs::write(&other, "new").unwrap();
                fs::rename(&other, path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
            let outcome = check(mounted.clone(), false).await;
            let expected = format!(
                "{} was deleted on the host, but a mount still shows the deleted one: mount its parent directory /proc/self/fd",
                mounted.display()
            );
            assert_eq!(outcome, Outcome::Closed(expected));
        }
    }

    #[tokio::test]
    async fn a_broken_link_is_closed_and_says_where_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("/nowhere/at/all", &link).unwrap();
        let outcome = check(link, false).await;
        assert_eq!(outcome.state().as_str(), "closed");
        assert!(
            outcome
                .message()
                .contains("broken symbolic link to /nowhere/at/all")
        );
    }

    /// psutil#658, sbc-raspberrypi#47 (D12).
    #[tokio::test]
    async fn a_file_from_before_this_boot_opens_once_it_is_seen_to_be_written_and_says_both_times()
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let old = SystemTime::UNIX_EPOCH + Duration::from_hours(429_528);
        let spec = FileCheck {
            path: path.clone(),
            newer_than_boot: true,
        };
        let write = |name: &str| {
            let path = dir.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_modified(old).unwrap();
            path
        };
        write("file");
        assert!(check(path.clone(), false).await.is_open());
        let lock = ProbeLock::default();
        let check = async || super::check(&spec, &lock).await;
        let reason = check().await.unwrap_err();
        let times = "last write is from 2019-01-01T00:00:00Z, before the boot at 20";
        assert!(reason.contains(times), "{reason}");
        File::open(&path)
            .unwrap()
            .set_modified(SystemTime::now())
            .unwrap();
        check().await.unwrap();
        File::open(&path).unwrap().set_modified(old).unwrap();
        check().await.unwrap();
        fs::rename(write("other"), &path).unwrap();
        check().await.unwrap();
        fs::remove_file(&path).unwrap();
        assert!(check().await.is_err());
        write("file");
        check().await.unwrap();
        // After a restart nothing has been seen.
        let reason = super::check(&spec, &ProbeLock::default())
            .await
            .unwrap_err();
        assert!(reason.contains(times), "{reason}");
    }
}
