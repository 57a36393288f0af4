mod multus;
mod unusual_files;

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;
use tempfile::TempDir;

use super::*;
use crate::gate::Outcome;

const CILIUM: &str = include_str!("../../../../tests/fixtures/cni/cilium/05-cilium.conflist");

/// A CNI directory and a plugin directory that others may enter.
struct Node {
    root: TempDir,
    expected: CniConfig,
    seen: Mutex<Sightings>,
}

impl Node {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let dir = root.path().join("net.d");
        fs::create_dir(&dir).unwrap();
        let expected = CniConfig {
            dir,
            ..CniConfig::default()
        };
        Self {
            root,
            expected,
            seen: Mutex::default(),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.expected.dir.join(file)
    }

    fn write(&self, file: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(file);
        fs::write(&path, contents).unwrap();
        path
    }

    fn check(&self) -> Result<String, String> {
        check_blocking(&self.expected, &mut self.seen.lock().unwrap())
    }

    /// As a restart of the agent does.
    fn forget(&self) {
        *self.seen.lock().unwrap() = Sightings::default();
    }

    #[track_caller]
    fn opens(&self) -> String {
        self.check().unwrap()
    }

    #[track_caller]
    fn closed(&self, reason: &str) {
        let message = self.check().unwrap_err();
        assert!(message.contains(reason), "{message}");
    }
}

#[tokio::test]
async fn the_gate_opens_for_a_valid_file_and_says_what_is_in_it() {
    let node = Node::new();
    let lock = ProbeLock::default();
    let check = async || Outcome::from(check(&node.expected, &lock).await);
    assert_eq!(check().await.state().as_str(), "closed");
    let path = node.write("05-cilium.conflist", CILIUM);
    assert_eq!(
        check().await,
        Outcome::Open(format!(
            "{}: network cilium, plugins cilium-cni",
            path.display()
        ))
    );
}

#[tokio::test]
async fn a_check_that_hangs_does_not_pile_up_others() {
    let node = Node::new();
    node.write("05-cilium.conflist", CILIUM);
    let lock = ProbeLock::default();
    let check = async || Outcome::from(check(&node.expected, &lock).await);
    let hung = lock.acquire().await.unwrap();
    assert!(check().await.message().contains("does not answer"));
    drop(hung);
    assert!(check().await.is_open());
}

/// istio#44167, multus#911 (A12).
#[test]
fn a_file_that_grows_in_place_opens_with_its_last_byte_and_a_rename_opens_at_once() {
    let node = Node::new();
    let mut file = File::create(node.path("05-cilium.conflist")).unwrap();
    for byte in CILIUM.trim_end().as_bytes() {
        node.closed("05-cilium.conflist: ");
        file.write_all(&[*byte]).unwrap();
    }
    node.opens();

    let node = Node::new();
    let temporary = node.write("05-cilium.conflist.tmp", CILIUM);
    node.closed("no *.conf, *.conflist or *.json file");
    fs::rename(temporary, node.path("05-cilium.conflist")).unwrap();
    node.opens();
}

/// cilium#37589, calico#7461 (A13). As uid 65532 against root's files, or as the user of the tests against mode 0.
#[test]
fn an_unreadable_file_or_directory_is_closed_with_the_remedy() {
    let node = Node::new();
    let path = node.write("05-cilium.conflist", CILIUM);
    for (denied, mode) in [(&path, 0o644), (&node.expected.dir, 0o755)] {
        let secret = if geteuid().is_root() { mode & 0o700 } else { 0 };
        fs::set_permissions(denied, Permissions::from_mode(secret)).unwrap();
        std::thread::scope(|scope| {
            let unprivileged = scope.spawn(|| {
                if geteuid().is_root() {
                    // Of this thread only, and its capabilities go with it.
                    let uid = Uid::from_raw(65532);
                    set_thread_res_uid(uid, uid, uid).unwrap();
                }
                let wanted = format!(
                    "{}: permission denied for uid {}: run untaint as the owner",
                    denied.display(),
                    geteuid().as_raw()
                );
                node.closed(&wanted);
            });
            unprivileged.join().unwrap();
        });
        fs::set_permissions(denied, Permissions::from_mode(mode)).unwrap();
        node.opens();
    }
}

/// containerd#6490, calico#8694 (A23), through a mount of the parent: `/proc/self/fd` pins an inode as a mount does.
#[test]
fn a_directory_that_is_recreated_under_a_mounted_parent_opens_again() {
    let mut node = Node::new();
    let real = node.expected.dir.clone();
    let parent = File::open(node.root.path()).unwrap();
    node.expected.dir = format!("/proc/self/fd/{}/net.d", parent.as_raw_fd()).into();
    for _ in 0..10 {
        fs::remove_dir_all(&real).unwrap();
        node.closed("/net.d: does not exist");
        fs::create_dir(&real).unwrap();
        node.closed("no *.conf");
        fs::write(real.join("05-cilium.conflist"), CILIUM).unwrap();
        node.opens();
    }
}

#[test]
fn a_deleted_directory_that_a_mount_still_shows_has_a_reason_of_its_own() {
    let mut node = Node::new();
    let real = node.expected.dir.clone();
    let pinned = File::open(&real).unwrap();
    let mounted = PathBuf::from(format!("/proc/self/fd/{}", pinned.as_raw_fd()));
    let reason = format!(
        "{} was deleted on the host, but a mount still shows the deleted one: delete the pod, and its DaemonSet creates it \
         again",
        mounted.display()
    );
    fs::remove_dir(&real).unwrap();
    node.expected.dir.clone_from(&mounted);
    node.closed(&format!(
        "{reason}; to prevent this, mount the parent directory /proc/self/fd instead"
    ));
    // The mount is that of the parent already.
    node.expected.dir = mounted.join("net.d");
    let dir = node.expected.dir.display();
    let expected = format!("{dir}: does not exist: {reason}");
    assert_eq!(node.check(), Err(expected));
}

#[test]
fn a_deleted_file_or_program_that_a_mount_still_shows_is_closed_with_the_remedy() {
    let mut node = Node::new();
    let [real, program] = ["real", "program"].map(|name| node.root.path().join(name));
    fs::write(&real, CILIUM).unwrap();
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let pinned = [&real, &program].map(|path| File::open(path).unwrap());
    let [file, plugin] = pinned
        .each_ref()
        .map(|pinned| format!("/proc/self/fd/{}", pinned.as_raw_fd()));
    symlink(&file, node.path("05-cilium.conflist")).unwrap();
    symlink(&plugin, node.root.path().join("cilium-cni")).unwrap();
    node.expected.bin_dirs = vec![node.root.path().into()];
    node.opens();
    fs::remove_file(&program).unwrap();
    node.closed("cilium-cni was deleted on the host");
    fs::remove_file(&real).unwrap();
    node.closed("05-cilium.conflist: was deleted on the host");
}

#[test]
fn an_absent_directory_or_a_file_in_its_place_is_closed() {
    let mut node = Node::new();
    node.expected.dir = node.root.path().join("a/b");
    node.closed("/a/b: does not exist");
    fs::write(node.root.path().join("a"), "").unwrap();
    node.closed("/a/b: not a directory");
    node.expected.dir = node.root.path().join("a");
    node.closed("/a: not a directory");
}

/// multus#972 (B4).
#[test]
fn a_file_that_is_renamed_away_closes_again() {
    let node = Node::new();
    let path = node.write("05-cilium.conflist", CILIUM);
    node.opens();
    fs::rename(&path, node.path("05-cilium.conflist.cilium_bak")).unwrap();
    node.closed("no *.conf");
}

/// k3s#3037 (B6).
#[test]
fn a_broken_link_is_closed_and_says_where_it_leads() {
    let mut node = Node::new();
    symlink("/nowhere/10.conflist", node.path("10.conflist")).unwrap();
    node.closed("10.conflist: broken symbolic link to /nowhere/10.conflist");
    // It is the first candidate, so nothing else helps.
    node.write("20-cilium.conflist", CILIUM);
    node.closed("10.conflist: broken symbolic link");

    node.expected.dir = node.root.path().join("link");
    symlink("/nowhere/net.d", &node.expected.dir).unwrap();
    node.closed("/link: broken symbolic link to /nowhere/net.d");
    fs::remove_file(&node.expected.dir).unwrap();
    let elsewhere = node.root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("real"), CILIUM).unwrap();
    symlink("elsewhere", &node.expected.dir).unwrap();
    symlink("real", elsewhere.join("05-cilium.conflist")).unwrap();
    node.opens();
}

/// rke2-selinux#83 (B7).
#[test]
fn a_plugin_without_a_program_that_can_run_is_named() {
    let mut node = Node::new();
    node.write("05-cilium.conflist", CILIUM);
    let [one, two] = ["one", "two"].map(|name| node.root.path().join(name));
    node.expected.bin_dirs = vec![one.clone(), two.clone()];
    node.closed("plugin cilium-cni: no program in ");

    fs::create_dir_all(one.join("cilium-cni")).unwrap();
    fs::create_dir(&two).unwrap();
    let program = two.join("cilium-cni");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o644)).unwrap();
    node.closed("two/cilium-cni is not executable");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    node.opens();

    // The runtime takes the first file, whether it can run or not.
    fs::remove_dir(one.join("cilium-cni")).unwrap();
    fs::write(one.join("cilium-cni"), "").unwrap();
    node.closed("one/cilium-cni is not executable");

    let escape = CILIUM.replace("cilium-cni\"", "../two/cilium-cni\"");
    node.write("05-cilium.conflist", escape);
    node.closed("plugin ../two/cilium-cni: no program can have this name");
}

#[test]
fn plugins_of_the_networks_directory_are_appended_and_one_bad_file_fails_the_list() {
    let mut node = Node::new();
    let list = node.write("10.conflist", r#"{"name":"n","cniVersion":"1.0.0"}"#);
    node.closed("10.conflist: no plugins");
    let plugins = node.path("n");
    fs::create_dir(&plugins).unwrap();
    fs::write(plugins.join("2.conf"), r#"{"type":"second"}"#).unwrap();
    fs::write(plugins.join("1.conf"), r#"{"type":"first"}"#).unwrap();
    fs::write(plugins.join("ignored.json"), "").unwrap();
    assert!(node.opens().ends_with("network n, plugins first, second"));

    let inlined = r#"{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"inlined"}]}"#;
    fs::write(&list, inlined).unwrap();
    assert!(node.opens().ends_with("plugins inlined, first, second"));
    node.expected.plugins = vec!["second".into()];
    node.opens();

    fs::write(plugins.join("3.conf"), "{}").unwrap();
    node.closed("/n/3.conf: no `type`");
    fs::write(
        &list,
        r#"{"name":"n","loadOnlyInlinedPlugins":true,"plugins":[{"type":"second"}]}"#,
    )
    .unwrap();
    node.opens();

    fs::remove_dir_all(&plugins).unwrap();
    fs::write(&plugins, "").unwrap();
    node.opens();
    fs::write(&list, r#"{"name":"n","plugins":[{"type":"second"}]}"#).unwrap();
    node.closed("/n: not a directory");
}

/// 2019, before the boot of any machine that runs this.
fn old() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(429_528)
}

/// kubernetes#138633 (A10).
#[test]
fn a_file_from_before_this_boot_opens_once_it_is_touched() {
    let mut node = Node::new();
    let path = node.write("05-cilium.conflist", CILIUM);
    let file = File::open(path).unwrap();
    file.set_modified(old()).unwrap();
    node.opens();
    node.expected.newer_than_boot = true;
    node.closed("its last write is from 2019-01-01T00:00:00Z, before the boot at 20");
    file.set_modified(SystemTime::now()).unwrap();
    node.opens();
}

/// psutil#658, sbc-raspberrypi#47 (D12): the clock is set after the boot, so the times of the file are too old.
#[test]
fn a_file_that_is_seen_to_appear_or_change_is_of_this_boot_whatever_its_time() {
    let mut node = Node::new();
    node.expected.newer_than_boot = true;
    let stale = "its last write is from 2019-01-01T00:00:00Z, before the boot at ";
    node.closed("no *.conf");
    let write = |name: &str| {
        let path = node.write(name, CILIUM);
        File::open(&path).unwrap().set_modified(old()).unwrap();
        path
    };
    let first = write("05-cilium.conflist");
    node.opens();
    fs::remove_file(&first).unwrap();
    node.closed("no *.conf");
    let temporary = write("05-cilium.conflist.tmp");
    node.closed("no *.conf");
    fs::rename(temporary, &first).unwrap();
    node.opens();

    // After a restart nothing has been seen.
    node.forget();
    node.closed(stale);
    node.closed(stale);
    let temporary = write("05-cilium.conflist.tmp");
    fs::rename(temporary, &first).unwrap();
    node.opens();
    node.forget();
    node.closed(stale);
    fs::write(&first, CILIUM.trim_end()).unwrap();
    File::open(&first).unwrap().set_modified(old()).unwrap();
    node.opens();

    // The directory comes later.
    let dir = node.expected.dir.clone();
    fs::remove_dir_all(&dir).unwrap();
    node.closed("does not exist");
    fs::create_dir(&dir).unwrap();
    write("05-cilium.conflist");
    node.opens();
}
