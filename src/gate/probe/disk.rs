//! Questions to the file system, which may hang, and what its errors mean.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::slot::Slot;
use crate::conflist::one_line;
use crate::text::plain;

/// Why a path is not looked at again.
pub(super) const SILENCE: &str =
    "the previous check of this path has not ended: the file system is slow or does not answer";

/// Asks `question` about `path` on a thread of its own, so that a file system that hangs holds one thread, not the agent.
pub(super) async fn ask<F>(slot: &Slot, path: &Path, question: F) -> Result<String, String>
where
    F: FnOnce() -> Result<String, String> + Send + 'static,
{
    let answer = slot.run_blocking(path.as_os_str(), |_guard| question());
    let answer = answer.await.unwrap_or_else(|| Err(SILENCE.into()));
    answer
        .map(|seen| one_line(&seen))
        .map_err(|reason| one_line(&reason))
}

/// Why `path` cannot be read. The caller names the path.
pub(super) fn fault(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => missing(path),
        ErrorKind::PermissionDenied => format!(
            "permission denied for uid {}: run untaint as the owner of the file, usually uid 0 without capabilities; with \
             SELinux, run it in a domain that may read the file",
            rustix::process::geteuid().as_raw()
        ),
        _ => plain(error),
    }
}

/// The reason if `path` is there and yet deleted: a mount keeps the inode, and never shows what is created under the old
/// name.
pub(super) fn deleted(path: &Path) -> Option<String> {
    let deleted = fs::metadata(path).is_ok_and(|metadata| metadata.nlink() == 0);
    deleted.then(|| {
        let parent = path.parent().unwrap_or(path);
        format!(
            "{} was deleted on the host, but a mount still shows the deleted one: mount its parent directory {}",
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
        let slot = Slot::default();
        let (release, hang) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        {
            let abandoned = pin!(ask(&slot, "/".as_ref(), move || {
                started.send(()).unwrap();
                _ = hang.recv();
                Ok(String::new())
            }));
            let first = abandoned.poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending());
            start.recv().unwrap();
        }
        let second = ask(&slot, "/".as_ref(), || panic!("asked while another hangs")).await;
        let reason = second.unwrap_err();
        assert!(reason.contains("does not answer"), "{reason}");

        drop(release);
        while slot.acquire().await.is_none() {}
        let third = ask(&slot, "/".as_ref(), || Ok("a\nb".into())).await;
        assert_eq!(third, Ok("a\\nb".into()));
    }
}
