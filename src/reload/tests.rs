mod several;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc as threads;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::*;
use crate::text::sha256;

const DEADLINE: Duration = Duration::from_secs(10);

/// A configuration that removes a taint with this key.
fn text(key: &str) -> String {
    format!(
        "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\n\
         rules: [{{name: rule, taint: {{key: {key}}}, gates: []}}]\n"
    )
}

/// A file that is followed.
struct Scene {
    dir: TempDir,
    file: PathBuf,
    reloads: mpsc::Receiver<Reload>,
}

impl Scene {
    /// `file`, which is below a directory of its own, must be there and be [`text`]`("start")`.
    fn follow(dir: TempDir, file: &str) -> Self {
        Self::follow_by(look, dir, &[file])
    }

    fn follow_by(
        look: impl Fn(&[PathBuf], &str) -> Look + Clone + Send + 'static,
        dir: TempDir,
        paths: &[&str],
    ) -> Self {
        let paths: Vec<_> = paths.iter().map(|path| dir.path().join(path)).collect();
        let file = paths[0].clone();
        let loaded = Loaded::from_files(&paths).unwrap();
        assert_eq!(key_of(&loaded), "start");
        let (sender, reloads) = mpsc::channel(1);
        tokio::spawn(follow_by(look, paths, loaded.status, sender));
        Self { dir, file, reloads }
    }

    async fn next(&mut self) -> Reload {
        let next = timeout(DEADLINE, self.reloads.recv()).await;
        next.expect("no reload").expect("the follower ended")
    }

    /// The key of the next configuration, with how many there were before. What is bad meanwhile does not count.
    async fn changed(&mut self) -> (String, u64) {
        loop {
            if let Reload::Changed(loaded) = self.next().await {
                return (key_of(&loaded), loaded.status.reloads);
            }
        }
    }

    /// Why the file is bad.
    async fn failed(&mut self) -> String {
        match self.next().await {
            Reload::Kept(status) if status.failing => status.last_failure.unwrap().message,
            other => panic!("{other:?}"),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn key_of(loaded: &Loaded) -> String {
    loaded.configuration.rules[0].taint.key.clone()
}

fn a_file() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.yaml"), text("start")).unwrap();
    dir
}

fn retarget(link: &Path, target: &str) {
    let new = link.with_file_name("..new");
    symlink(target, &new).unwrap();
    fs::rename(&new, link).unwrap();
}

/// `/proc/self/fd` pins an inode as a mount with `subPath` does.
#[tokio::test]
async fn a_file_that_was_deleted_and_is_still_mounted_is_a_failure_with_the_remedy() {
    let real = tempfile::tempdir().unwrap();
    let file = real.path().join("config.yaml");
    fs::write(&file, text("start")).unwrap();
    let pinned = File::open(&file).unwrap();
    let mounted = format!("/proc/self/fd/{}", pinned.as_raw_fd());
    let mut scene = Scene::follow(tempfile::tempdir().unwrap(), &mounted);
    fs::write(real.path().join("new"), text("new")).unwrap();
    fs::rename(real.path().join("new"), &file).unwrap();
    let expected = format!(
        "{mounted}: was deleted on the host, but a mount still shows the deleted one: delete the pod, and its DaemonSet creates it again; to prevent this, mount the parent directory /proc/self/fd instead"
    );
    assert_eq!(scene.failed().await, expected);
}

#[tokio::test]
async fn a_file_is_followed_that_is_written_in_place_or_replaced_and_the_same_text_is_no_reload() {
    let mut scene = Scene::follow(a_file(), "config.yaml");
    for (index, key) in ["one", "two", "three"].into_iter().enumerate() {
        let (index, written) = (index as u64 * 2, Instant::now());
        fs::write(&scene.file, text(key)).unwrap();
        assert_eq!(scene.changed().await, (key.into(), index + 1));
        assert!(written.elapsed() >= SETTLE, "who writes is given some time");
        fs::write(&scene.file, text(key)).unwrap();
        fs::write(scene.at("new"), text("replaced")).unwrap();
        fs::rename(scene.at("new"), &scene.file).unwrap();
        assert_eq!(scene.changed().await, ("replaced".into(), index + 2));
    }
}

#[tokio::test]
async fn a_deleted_file_is_bad_until_it_comes_back_even_with_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("etc")).unwrap();
    fs::write(dir.path().join("etc/config.yaml"), text("start")).unwrap();
    let mut scene = Scene::follow(dir, "etc/config.yaml");
    for (index, key) in ["one", "two"].into_iter().enumerate() {
        fs::remove_file(&scene.file).unwrap();
        let reason = scene.failed().await;
        assert!(reason.ends_with("no such file or directory"), "{reason}");
        fs::write(&scene.file, text(key)).unwrap();
        assert_eq!(scene.changed().await, (key.into(), 2 * index as u64 + 1));

        fs::remove_dir_all(scene.at("etc")).unwrap();
        scene.failed().await;
        fs::create_dir(scene.at("etc")).unwrap();
        fs::write(&scene.file, text("later")).unwrap();
        assert_eq!(
            scene.changed().await,
            ("later".into(), 2 * index as u64 + 2)
        );
    }
}

#[tokio::test]
async fn a_link_is_followed_when_it_is_retargeted_and_when_its_target_is_written() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), a_file());
    let target = elsewhere.path().join("config.yaml");
    symlink(&target, dir.path().join("config.yaml")).unwrap();
    let mut scene = Scene::follow(dir, "config.yaml");
    fs::write(&target, text("written")).unwrap();
    assert_eq!(scene.changed().await.0, "written");
    fs::write(scene.at("here"), text("retargeted")).unwrap();
    retarget(&scene.file, "here");
    assert_eq!(scene.changed().await.0, "retargeted");
    fs::write(scene.at("here"), text("again")).unwrap();
    assert_eq!(scene.changed().await.0, "again");
}

/// Such as a link among the directories that lead to the file.
#[tokio::test(start_paused = true)]
async fn a_change_without_a_file_event_is_found_within_a_minute() {
    let dir = tempfile::tempdir().unwrap();
    for (version, key) in [("one", "start"), ("two", "other")] {
        fs::create_dir(dir.path().join(version)).unwrap();
        fs::write(dir.path().join(version).join("config.yaml"), text(key)).unwrap();
    }
    symlink("one", dir.path().join("etc")).unwrap();
    let mut scene = Scene::follow(dir, "etc/config.yaml");
    sleep(POLL).await;
    retarget(&scene.at("etc"), "two");
    let before = tokio::time::Instant::now();
    let next = timeout(POLL * 2, scene.reloads.recv()).await;
    assert!(matches!(next, Ok(Some(Reload::Changed(loaded))) if key_of(&loaded) == "other"));
    assert!(before.elapsed() <= POLL, "{:?}", before.elapsed());
}

#[tokio::test]
async fn a_file_that_could_not_be_watched_for_a_while_is_followed_again_from_the_next_look_on() {
    let mut scene = Scene::follow(a_file(), "config.yaml");
    // It leads to itself.
    retarget(&scene.file, "config.yaml");
    let reason = scene.failed().await;
    assert!(reason.contains("symbolic links"), "{reason}");
    fs::write(scene.at("new"), text("mended")).unwrap();
    fs::rename(scene.at("new"), &scene.file).unwrap();
    tokio::time::pause();
    let next = timeout(POLL * 2, scene.reloads.recv()).await;
    assert!(matches!(next, Ok(Some(Reload::Changed(loaded))) if key_of(&loaded) == "mended"));
    tokio::time::resume();
    fs::write(&scene.file, text("later")).unwrap();
    assert_eq!(scene.changed().await.0, "later");
}

#[tokio::test(start_paused = true)]
async fn a_file_system_that_hangs_is_reported_and_delays_nothing_else() {
    let (release, hang) = threads::channel::<()>();
    let (start, mut started) = mpsc::unbounded_channel();
    let hang = Arc::new(Mutex::new(hang));
    let hanging = move |paths: &[PathBuf], active: &str| {
        start.send(()).unwrap();
        // An error once it has been released.
        let _ = hang.lock().unwrap().recv_timeout(DEADLINE);
        look(paths, active)
    };
    let mut scene = Scene::follow_by(hanging, a_file(), &["config.yaml"]);
    started.recv().await.unwrap();
    tokio::time::advance(PATIENCE).await;
    tokio::time::resume();
    let reason = scene.failed().await;
    assert!(reason.ends_with("does not answer"), "{reason}");
    fs::write(&scene.file, text("meanwhile")).unwrap();
    drop(release);
    assert_eq!(scene.changed().await, ("meanwhile".into(), 1));
}

fn followed() -> Followed {
    Followed {
        status: status("config.yaml".into(), Some(sha256(&text("start")))),
        allowance: TokenBucket::LOG_LINES,
    }
}

/// What a look at a file with this text gives.
fn looked(followed: &Followed, text: &str) -> Look {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    fs::write(&file, text).unwrap();
    look(&[file], followed.status.sha256.as_deref().unwrap())
}

#[test]
fn a_bad_text_leaves_the_active_configuration_and_is_reported_once_for_each_problem() {
    let mut followed = followed();
    let active = followed.status.clone();
    let missing = || config::read_files(&["/does/not/exist".into()]).map(|_| None);
    let Some(Reload::Kept(status)) = followed.apply(missing()) else {
        panic!("not told");
    };
    assert_eq!(
        (status.failing, status.failed_reloads, status.reloads),
        (true, 1, 0)
    );
    assert_eq!(
        (&status.sha256, status.loaded),
        (&active.sha256, active.loaded)
    );
    assert_eq!(followed.apply(missing()), None);

    let empty = looked(&followed, "");
    let Some(Reload::Kept(status)) = followed.apply(empty) else {
        panic!("not told");
    };
    assert_eq!((status.failing, status.failed_reloads), (true, 2));
    assert!(status.last_failure.unwrap().message.contains("is empty"));
}

#[test]
fn the_active_text_is_no_reload_and_ends_a_failure() {
    let mut followed = followed();
    let same = looked(&followed, &text("start"));
    assert_eq!(followed.apply(same), None);
    let empty = looked(&followed, "");
    followed.apply(empty);
    let same = looked(&followed, &text("start"));
    let Some(Reload::Kept(status)) = followed.apply(same) else {
        panic!("not told");
    };
    assert_eq!((status.failing, status.reloads), (false, 0));
    assert!(status.last_failure.is_some(), "it is kept to be read");
    // The next failure is one again, also if it is the same.
    let empty = looked(&followed, "");
    followed.apply(empty);
    assert_eq!(followed.status.failed_reloads, 2);
}

#[test]
fn of_very_many_problems_the_first_are_reported_with_the_number_of_the_others() {
    let problems: Vec<_> = (0..1000).map(|line| format!("f:{line}: bad")).collect();
    let told = shortened(&problems.join("\n"));
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), MOST_PROBLEMS + 1);
    assert_eq!((lines[19], lines[20]), ("f:19: bad", "and 980 more"));
    let few = problems[..MOST_PROBLEMS].join("\n");
    assert_eq!(shortened(&few), few);
}
