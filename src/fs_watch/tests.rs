use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use notify::event::{
    AccessKind, AccessMode, CreateKind, DataChange, Flag, ModifyKind, RemoveKind, RenameMode,
};
use notify::{Config, Event, EventKind, Watcher as _};
use tokio::time::timeout;
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::concern::{Concern, concern};
use super::*;

mod directories;

const DEADLINE: Duration = Duration::from_secs(10);

/// Waits for a change.
async fn woken(watch: &mut FsWatch) {
    timeout(DEADLINE, watch.changed())
        .await
        .expect("no wake-up");
}

/// Watches `path` and waits until the watch is in place.
async fn watch(path: &Path) -> FsWatch {
    let mut watch = FsWatch::new(path);
    woken(&mut watch).await;
    watch
}

/// Takes the wake-ups for all earlier changes, so that the next one is for a later change.
///
/// This is an approximation: a request to notify's thread and its answer give it the time to handle events first.
/// If it did not, the next wait would pass for a wrong reason, but never fail for one.
async fn settle(watch: &mut FsWatch) {
    loop {
        let State::Watching(placed) = &mut watch.state else {
            woken(watch).await;
            continue;
        };
        for _ in 0..3 {
            placed.watcher.configure(Config::default()).unwrap();
        }
        if !placed.is_outdated() && !placed.changes.has_changed().unwrap() {
            return;
        }
        woken(watch).await;
    }
}

/// Shows that an entry of `dir`, the watched directory under any name, wakes.
async fn assert_watched(watch: &mut FsWatch, dir: &Path) {
    settle(watch).await;
    fs::write(dir.join("10.conflist"), "").unwrap();
    woken(watch).await;
}

#[tokio::test]
async fn each_kind_of_change_to_an_entry_wakes() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let [file, away] = [dir.path(), outside.path()].map(|dir| dir.join("10.conflist"));
    let mut watch = watch(dir.path()).await;

    let changes: [&dyn Fn() -> io::Result<()>; 6] = [
        &|| fs::write(&file, "created"),
        &|| fs::write(&file, "written in place"),
        &|| fs::set_permissions(&file, fs::Permissions::from_mode(0o600)),
        &|| fs::rename(&file, &away),
        &|| fs::rename(&away, &file),
        &|| fs::remove_file(&file),
    ];
    for change in changes {
        settle(&mut watch).await;
        change().unwrap();
        woken(&mut watch).await;
    }
}

#[tokio::test]
async fn a_missing_directory_is_followed_down_level_by_level() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("etc/cni/net.d");
    let mut watch = watch(&dir).await;
    for _ in 0..2 {
        for level in ["etc", "etc/cni", "etc/cni/net.d"] {
            settle(&mut watch).await;
            fs::create_dir(root.path().join(level)).unwrap();
            woken(&mut watch).await;
        }
        assert_watched(&mut watch, &dir).await;
        fs::remove_dir_all(root.path().join("etc")).unwrap();
    }
}

/// containerd#6490, calico#8694 (A23).
#[tokio::test]
async fn a_directory_that_is_removed_and_recreated_ten_times_is_watched_again() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("net.d");
    fs::create_dir(&dir).unwrap();
    let mut watch = watch(&dir).await;
    for _ in 0..10 {
        assert_watched(&mut watch, &dir).await;
        fs::remove_dir_all(&dir).unwrap();
        settle(&mut watch).await;
        fs::create_dir(&dir).unwrap();
    }
    // All of it between two calls of `changed`.
    for _ in 0..10 {
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
    }
    assert_watched(&mut watch, &dir).await;
}

#[tokio::test]
async fn a_directory_that_is_replaced_by_a_rename_is_watched_again() {
    let root = tempfile::tempdir().unwrap();
    let [dir, new, old] = ["net.d", "new", "old"].map(|name| root.path().join(name));
    fs::create_dir(&dir).unwrap();
    fs::create_dir(&new).unwrap();
    let mut watch = watch(&dir).await;
    fs::rename(&dir, &old).unwrap();
    fs::rename(&new, &dir).unwrap();
    assert_watched(&mut watch, &dir).await;
}

#[tokio::test]
async fn a_linked_directory_is_watched_and_also_where_the_link_leads_later() {
    let root = tempfile::tempdir().unwrap();
    let [link, one, two] = ["net.d", "one", "two"].map(|name| root.path().join(name));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    symlink("one", &link).unwrap();
    let mut watch = watch(&link).await;
    assert_watched(&mut watch, &one).await;

    let new = root.path().join("new");
    symlink("two", &new).unwrap();
    fs::rename(&new, &link).unwrap();
    assert_watched(&mut watch, &two).await;
}

#[tokio::test]
async fn a_single_file_wakes_when_it_appears_is_written_and_goes() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("run/ready");
    let mut watch = watch(&file).await;
    let changes: [&dyn Fn() -> io::Result<()>; 6] = [
        &|| fs::create_dir(root.path().join("run")),
        &|| fs::write(&file, "created"),
        &|| fs::write(&file, "written in place"),
        &|| fs::remove_file(&file),
        &|| fs::write(&file, "created again"),
        &|| fs::remove_dir_all(root.path().join("run")),
    ];
    for change in changes {
        settle(&mut watch).await;
        change().unwrap();
        woken(&mut watch).await;
    }
}

#[tokio::test]
async fn a_file_behind_links_wakes_when_one_beside_it_is_swapped_and_when_the_file_it_leads_to_is_written()
 {
    let root = tempfile::tempdir().unwrap();
    let [file, data, new] =
        ["config.yaml", "..data", "..data_tmp"].map(|name| root.path().join(name));
    for version in ["..1", "..2"] {
        fs::create_dir(root.path().join(version)).unwrap();
        fs::write(root.path().join(version).join("config.yaml"), version).unwrap();
    }
    symlink("..1", &data).unwrap();
    symlink("..data/config.yaml", &file).unwrap();
    let mut watch = FsWatch::through_siblings(&file);
    woken(&mut watch).await;
    for version in ["..2", "..1", "..2"] {
        settle(&mut watch).await;
        symlink(version, &new).unwrap();
        fs::rename(&new, &data).unwrap();
        woken(&mut watch).await;
        settle(&mut watch).await;
        fs::write(root.path().join(version).join("config.yaml"), "in place").unwrap();
        woken(&mut watch).await;
    }
}

#[tokio::test]
async fn dropping_the_watch_ends_notifys_thread_and_its_inotify_instance() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watch(dir.path()).await;
    let State::Watching(placed) = &watch.state else {
        panic!("{:?}", watch.state);
    };
    let mut changes = placed.changes.clone();
    drop(watch);
    // The sender lives in the event handler, which lives in the thread.
    let ended = async { while changes.changed().await.is_ok() {} };
    timeout(DEADLINE, ended).await.expect("still alive");
}

/// k0s#8113, rke2#9112 (A22, B8): any error but absence is a refusal.
#[tokio::test(start_paused = true)]
async fn a_refused_watch_never_completes() {
    let too_long = Path::new("/").join("x".repeat(300));
    let mut watch = watch(&too_long).await;
    assert!(matches!(watch.state, State::Refused));
    assert!(timeout(DEADLINE, watch.changed()).await.is_err());
}

/// Counts the warnings of this thread.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let is_one = *event.metadata().level() == Level::WARN;
        self.0.fetch_add(is_one.into(), Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_refused_watch_is_logged_once_and_wakes_again_when_a_retry_succeeds() {
    let warnings = Warnings::default();
    let logged = tracing_subscriber::registry().with(warnings.clone());
    let _logging = logged.set_default();
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config.yaml");
    // It leads to itself.
    symlink("config.yaml", &file).unwrap();
    let mut watch = watch(&file).await;
    for _ in 0..3 {
        assert!(matches!(watch.state, State::Refused));
        watch.retry();
        woken(&mut watch).await;
    }
    assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
    fs::remove_file(&file).unwrap();
    watch.retry();
    woken(&mut watch).await;
    settle(&mut watch).await;
    fs::write(&file, "created").unwrap();
    woken(&mut watch).await;
}

#[test]
fn events_are_told_apart_by_what_they_mean_for_the_path() {
    let mut target = Target {
        path: "/etc/cni/net.d".into(),
        scope: Scope::Path,
    };
    let of =
        |kind, touched: &str| concern(&target, Some(&Event::new(kind).add_path(touched.into())));
    let open = EventKind::Access(AccessKind::Open(AccessMode::Any));
    let created = EventKind::Create(CreateKind::Any);
    let removed = EventKind::Remove(RemoveKind::Any);
    let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));

    // If these were not ignored, each evaluation would cause the next one.
    assert_eq!(of(open, "/etc/cni/net.d"), Concern::None);
    assert_eq!(of(open, "/etc/cni/net.d/10.conflist"), Concern::None);
    for kind in [created, removed, written] {
        assert_eq!(of(kind, "/etc/cni/net.d/10.conflist"), Concern::Content);
        assert_eq!(of(kind, "/etc/cni/net.d.bak"), Concern::None);
        assert_eq!(of(kind, "/etc/passwd"), Concern::None);
    }
    for touched in ["/etc/cni/net.d", "/etc/cni", "/"] {
        assert_eq!(of(created, touched), Concern::Place);
        assert_eq!(of(removed, touched), Concern::Place);
    }
    // A single file that is written.
    assert_eq!(of(written, "/etc/cni/net.d"), Concern::Content);

    let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
    assert_eq!(concern(&target, Some(&overflow)), Concern::Place);
    assert_eq!(concern(&target, None), Concern::Place);

    target.scope = Scope::Siblings;
    let of =
        |kind, touched: &str| concern(&target, Some(&Event::new(kind).add_path(touched.into())));
    let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
    for kind in [created, removed, renamed] {
        assert_eq!(of(kind, "/etc/cni/..data"), Concern::Place);
        assert_eq!(of(kind, "/etc/cni/..data/net.d"), Concern::None);
    }
    assert_eq!(of(written, "/etc/cni/..data"), Concern::None);
    assert_eq!(of(open, "/etc/cni/..data"), Concern::None);
    assert_eq!(of(written, "/etc/cni/net.d"), Concern::Content);

    target.scope = Scope::Directories;
    let of =
        |kind, touched: &str| concern(&target, Some(&Event::new(kind).add_path(touched.into())));
    for kind in [created, removed, renamed] {
        assert_eq!(of(kind, "/etc/cni/net.d/n"), Concern::Directories);
        assert_eq!(of(kind, "/etc/cni/net.d/n/1.conf"), Concern::Content);
        assert_eq!(of(kind, "/etc/cni/net.d"), Concern::Place);
        assert_eq!(of(kind, "/etc/cni/..data"), Concern::None);
    }
    assert_eq!(of(written, "/etc/cni/net.d/n"), Concern::Content);
    assert_eq!(of(open, "/etc/cni/net.d/n"), Concern::None);
}
