use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use testkit::make_pipe;

use super::*;
use crate::gate::Outcome;

async fn check(path: PathBuf, newer_than_boot: bool) -> Outcome {
    let spec = FileCheck {
        newer_than_boot,
        ..FileCheck::new(path)
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
    let spec = FileCheck::new("/");
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
            "{} was deleted on the host, but a mount still shows the deleted one: delete the pod, and its DaemonSet creates it again; to prevent this, mount the parent directory /proc/self/fd instead",
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
async fn a_file_from_before_this_boot_opens_once_it_is_seen_to_be_written_and_says_both_times() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let old = SystemTime::UNIX_EPOCH + Duration::from_hours(429_528);
    let spec = FileCheck {
        newer_than_boot: true,
        ..FileCheck::new(&path)
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

/// A check of the size, of the text, or of both.
async fn look_into(path: &Path, min_bytes: Option<u32>, contains: Option<&str>) -> Outcome {
    let spec = FileCheck {
        min_bytes,
        contains: contains.map(str::to_owned),
        ..FileCheck::new(path)
    };
    let outcome = super::check(&spec, &ProbeLock::default()).await;
    outcome.into()
}

fn open(path: &Path, rest: &str) -> Outcome {
    Outcome::Open(format!("{} {rest}", path.display()))
}

fn closed(path: &Path, rest: &str) -> Outcome {
    Outcome::Closed(format!("{} {rest}", path.display()))
}

const KUBECONFIG: &str = "clusters: [{cluster: {server: 'https://10.0.0.1'}}]\ntoken: hunter2\n";

/// multus-cni#1283 (D13).
#[tokio::test]
async fn a_file_that_is_empty_or_not_complete_is_closed_if_its_size_or_a_text_is_expected() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("multus.kubeconfig");
    let link = dir.path().join("link");
    symlink("multus.kubeconfig", &link).unwrap();
    let (token, ends) = (Some("token: "), Some("2\n"));
    let with_text = "exists, has the text of contains";
    let without_text = "does not have the text of contains";
    let both = "exists, has a size of at least 67, has the text of contains";
    let small = "is too small: its size in bytes is 66, and minBytes is 67";
    let whole = KUBECONFIG.len();
    assert_eq!(whole, 67);
    for (content, min_bytes, contains, opens, expected) in [
        ("", None, None, true, "exists"),
        (
            "",
            Some(1),
            None,
            false,
            "is too small: its size in bytes is 0, and minBytes is 1",
        ),
        ("", None, token, false, without_text),
        (
            "\n",
            Some(1),
            None,
            true,
            "exists, has a size of at least 1",
        ),
        (&KUBECONFIG[..whole - 1], Some(67), None, false, small),
        (&KUBECONFIG[..whole - 1], Some(67), ends, false, small),
        (&KUBECONFIG[..whole - 1], None, ends, false, without_text),
        (&KUBECONFIG[..whole - 1], None, token, true, with_text),
        (KUBECONFIG, Some(67), ends, true, both),
        (KUBECONFIG, None, Some(KUBECONFIG), true, with_text),
        // It is a text and not a pattern.
        (KUBECONFIG, None, Some("token: .*"), false, without_text),
        (KUBECONFIG, None, Some("Token"), false, without_text),
        ("\u{e9}", None, Some("\u{e9}"), true, with_text),
    ] {
        fs::write(&file, content).unwrap();
        for path in [&file, &link] {
            let expected = if opens { open } else { closed }(path, expected);
            let outcome = look_into(path, min_bytes, contains).await;
            assert_eq!(outcome, expected, "{content:?}");
        }
    }
    fs::write(&file, [&[0, 0xff, 0xc3], KUBECONFIG.as_bytes()].concat()).unwrap();
    let outcome = look_into(&file, None, ends).await;
    assert_eq!(outcome, open(&file, with_text), "also in a binary file");
}

#[tokio::test]
async fn only_the_first_mib_of_a_file_is_searched_however_large_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let limit = usize::try_from(SEARCHED_BYTES).unwrap();
    for (before, opens) in [(limit - 3, true), (limit - 2, false)] {
        fs::write(&file, [&vec![b'a'; before][..], b"end"].concat()).unwrap();
        let outcome = look_into(&file, None, Some("end")).await;
        assert_eq!(outcome.is_open(), opens, "{outcome:?}");
    }
    let huge = File::options().write(true).open(&file).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert_eq!(
        look_into(&file, Some(u32::MAX), Some("end")).await,
        closed(&file, "does not have the text of contains in its first MiB")
    );
}

/// The kernel says that the size of such a file is 0.
#[tokio::test]
async fn a_file_of_the_kernel_can_be_searched() {
    let path = Path::new("/proc/self/status");
    assert!(look_into(path, None, Some("Threads:")).await.is_open());
    assert!(!look_into(path, Some(1), None).await.is_open());
}

/// A pipe whose reader opens it lets its writer go on; a device can do anything.
#[tokio::test]
async fn what_is_not_a_regular_file_is_closed_and_never_opened() {
    let dir = tempfile::tempdir().unwrap();
    let [pipe, socket, link] = ["pipe", "socket", "link"].map(|name| dir.path().join(name));
    make_pipe(&pipe);
    let _listener = UnixListener::bind(&socket).unwrap();
    symlink("pipe", &link).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || File::options().write(true).open(pipe)
    });
    for path in [
        &pipe,
        &socket,
        &link,
        dir.path(),
        Path::new("/dev/zero"),
        Path::new("/dev/null"),
    ] {
        for (min_bytes, contains) in [(Some(1), None), (None, Some("a")), (Some(1), Some("a"))] {
            assert_eq!(
                look_into(path, min_bytes, contains).await,
                closed(
                    path,
                    "is not a regular file, which minBytes and contains need"
                )
            );
        }
        assert!(look_into(path, None, None).await.is_open());
    }
    assert!(!writer.is_finished(), "something has opened the pipe");
    File::open(&pipe).unwrap();
    writer.join().unwrap().unwrap();
    let missing = dir.path().join("missing");
    assert_eq!(
        look_into(&missing, Some(1), Some("a")).await,
        Outcome::Closed(format!("{}: does not exist", missing.display()))
    );
}

#[tokio::test]
async fn a_new_file_without_its_text_and_an_old_one_with_it_are_both_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let spec = FileCheck {
        newer_than_boot: true,
        contains: Some("ready".into()),
        ..FileCheck::new(&path)
    };
    let check = async || super::check(&spec, &ProbeLock::default()).await;
    fs::write(&path, "starting").unwrap();
    assert!(check().await.unwrap_err().contains("the text of contains"));
    fs::write(&path, "ready").unwrap();
    check().await.unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_hours(429_528);
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(old)
        .unwrap();
    assert!(check().await.unwrap_err().contains("before the boot"));
}

#[test]
fn the_text_must_be_in_the_bytes_themselves_also_between_bytes_that_are_no_text() {
    for (bytes, text, expected) in [
        (&b"a\xffb"[..], "\u{fffd}", false),
        (b"a\xffb", "a\u{fffd}b", false),
        (b"end \xe2\x82", "\u{fffd}", false),
        ("a\u{fffd}b".as_bytes(), "a\u{fffd}b", true),
        (b"\xff\xef\xbf\xbd\xff", "\u{fffd}", true),
        (b"\xe2\x82ready\xff", "ready", true),
        (b"\xe2\xc3\xa9\xa9", "\u{e9}", true),
        (b"re\xffady", "ready", false),
        (b"", "a", false),
    ] {
        assert_eq!(has(bytes, text), expected, "{bytes:?} {text:?}");
    }
}
