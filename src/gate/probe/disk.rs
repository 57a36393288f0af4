//! Checks of the file system, which may hang, and what its errors mean.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::lock::ProbeLock;
use super::sightings::Sightings;
use crate::bind_mount::deleted_around;
use crate::text::{io_message, printable};

/// Characters of a message. Kubernetes allows 1024 bytes in an Event's note.
const MAX_CHARS: usize = 900;

/// The reason while the last check of a path hangs.
pub(super) const UNFINISHED: &str =
    "the previous check of this path has not ended: the file system is slow or does not answer";

/// Does `check`, which is about `path`, on a thread of its own, so that a file system that hangs holds one thread, not the
/// agent. It gets what the gate's checks before it have seen.
pub(super) async fn run(
    lock: &ProbeLock,
    path: &Path,
    check: impl FnOnce(&mut Sightings) -> Result<String, String> + Send + 'static,
) -> Result<String, String> {
    let answer = lock.run_blocking(path.as_os_str(), |mut seen| check(&mut seen));
    let answer = answer.await.unwrap_or_else(|| Err(UNFINISHED.into()));
    answer
        .map(|seen| one_line(&seen))
        .map_err(|reason| one_line(&reason))
}

/// Paths and files may have any characters.
pub(super) fn one_line(message: &str) -> String {
    printable(message, MAX_CHARS)
}

/// Why `path` cannot be used. The caller names the path.
pub(super) fn fault(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => missing(path),
        ErrorKind::PermissionDenied => format!(
            "permission denied for uid {}: run untaint as the owner of the file, usually uid 0 without capabilities; with \
             SELinux, run it in a domain that may use the file",
            rustix::process::geteuid().as_raw()
        ),
        _ => io_message(error),
    }
}

fn missing(path: &Path) -> String {
    if let Ok(target) = fs::read_link(path) {
        return format!(
            "broken symbolic link to {}; inside a container, its target must be mounted too",
            target.display()
        );
    }
    let nearest = path.ancestors().skip(1).find(|parent| parent.exists());
    let deleted = nearest.and_then(|nearest| Some((nearest, deleted_around(nearest)?)));
    match deleted {
        Some((nearest, why)) => format!("does not exist: {} {why}", nearest.display()),
        None => "does not exist".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        assert_eq!(
            one_line("a \"b\"\n\u{1b}[31m\u{202e}é"),
            "a \"b\"\\n\\u{1b}[31m\\u{202e}é"
        );
        let long = one_line(&"\0x".repeat(1_000_000));
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
        assert!(long.ends_with('…'));
    }

    #[tokio::test]
    async fn a_check_that_hangs_holds_one_thread_and_closes_the_gate() {
        let lock = ProbeLock::default();
        let (release, hang) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        {
            let abandoned = pin!(run(&lock, "/".as_ref(), move |_| {
                started.send(()).unwrap();
                _ = hang.recv();
                Ok(String::new())
            }));
            let first = abandoned.poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending());
            start.recv().unwrap();
        }
        let second = run(&lock, "/".as_ref(), |_| {
            panic!("started while another hangs")
        })
        .await;
        let reason = second.unwrap_err();
        assert!(reason.contains("does not answer"), "{reason}");

        drop(release);
        while lock.acquire().await.is_none() {}
        let third = run(&lock, "/".as_ref(), |_| Ok("a\nb".into())).await;
        assert_eq!(third, Ok("a\\nb".into()));
    }
}
