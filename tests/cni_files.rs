//! The CNI gate without inotify. It is a separate test program, because the limit applies to the whole process.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::{sleep, timeout};
use untaint::config::CniConfig;
use untaint::fs_watch::FsWatch;
use untaint::gate::probe::cni_config;
use untaint::gate::probe::lock::ProbeLock;

/// k0s#8113 (A22). A process without file descriptors and a user without inotify instances get the same EMFILE.
#[tokio::test]
async fn without_inotify_the_poll_still_notices_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let spec = CniConfig {
        dir: dir.path().to_owned(),
        ..CniConfig::default()
    };
    let lock = ProbeLock::default();
    let check = || cni_config::check(&spec, &lock);

    let limit = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        ..limit
    };
    setrlimit(Resource::Nofile, none).unwrap();
    let mut watch = FsWatch::new(dir.path());
    // Completes once, with success or failure.
    watch.changed().await;
    setrlimit(Resource::Nofile, limit).unwrap();

    assert!(check().await.is_err());
    let contents = r#"{"name": "cilium", "plugins": [{"type": "cilium-cni"}]}"#;
    fs::write(dir.path().join("05-cilium.conflist"), contents).unwrap();
    let opened = async {
        while check().await.is_err() {
            tokio::select! {
                () = watch.changed() => panic!("a watch without inotify"),
                () = sleep(Duration::from_millis(10)) => {}
            }
        }
    };
    timeout(Duration::from_secs(10), opened).await.unwrap();
}
