//! Questions to the file system, which may hang, and what its refusals mean.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Outcome;
use super::busy::Busy;
use crate::conflist::one_line;

/// Why there is no other look at a path.
pub(super) const SILENCE: &str =
    "the last look has not come back: the file system is slow, or does not answer";

/// Asks `question` about `path` on a blocking thread, so that a file system that hangs holds one thread, not the agent.
/// Not while the last one is still unanswered, perhaps because its caller stopped waiting.
pub(super) async fn ask<F>(busy: &Busy, path: &Path, question: F) -> Outcome
where
    F: FnOnce() -> Result<String, String> + Send + 'static,
{
    let answer = busy.work(path.as_os_str(), |hold| {
        let _hold = hold;
        question()
    });
    let answer = answer.await.unwrap_or_else(|| Err(SILENCE.into()));
    answer
        .map(|seen| one_line(&seen))
        .map_err(|reason| one_line(&reason))
        .into()
}

/// Why `path` cannot be read, in words that help; the path itself is left to the caller.
pub(super) fn fault(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => missing(path),
        ErrorKind::PermissionDenied => format!(
            "permission denied for uid {}; let untaint run as the owner, which is uid 0 as a rule and needs no \
             capabilities (with SELinux, in a domain that may read it)",
            rustix::process::geteuid().as_raw()
        ),
        _ => error.to_string(),
    }
}

/// Whether `path` is there and yet deleted: a mount keeps the inode, and what is created anew under the old name
/// never shows in it.
pub(super) fn deleted(path: &Path) -> Option<String> {
    let deleted = fs::metadata(path).is_ok_and(|metadata| metadata.nlink() == 0);
    deleted.then(|| {
        let parent = path.parent().unwrap_or(path);
        format!(
            "{} was deleted on the host, but a mount still shows the deleted one: mount its parent, here {}",
            path.display(),
            parent.display()
        )
    })
}

fn missing(path: &Path) -> String {
    if let Ok(target) = fs::read_link(path) {
        return format!(
            "broken symbolic link to {}; inside a container, its target must be mounted too",
            target.display()
        );
    }
    let nearest = path.ancestors().skip(1).find(|parent| parent.exists());
    nearest
        .and_then(deleted)
        .unwrap_or_else(|| "does not exist".into())
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn a_question_that_hangs_holds_one_thread_and_closes_the_gate() {
        let busy = Busy::default();
        let (release, hang) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        {
            let abandoned = pin!(ask(&busy, "/".as_ref(), move || {
                started.send(()).unwrap();
                _ = hang.recv();
                Ok(String::new())
            }));
            let first = abandoned.poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending());
            start.recv().unwrap();
        }
        let second = ask(&busy, "/".as_ref(), || panic!("asked while another hangs")).await;
        assert_eq!(second.state().as_str(), "closed");
        assert!(second.message().contains("does not answer"));

        drop(release);
        while busy.hold().await.is_none() {}
        let third = ask(&busy, "/".as_ref(), || Ok("a\nb".into())).await;
        assert_eq!(third, Outcome::Open("a\\nb".into()));
    }
}
