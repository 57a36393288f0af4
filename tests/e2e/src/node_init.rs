//! The first process of a node: makes its file system, and keeps its programs running.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{WaitOptions, wait};

use crate::commands::line;
use crate::habitat::PARTS;
use crate::node::kubelet_arguments;

pub(crate) const COMMAND: &str = "node-init";
/// Of containerd.
pub(crate) const SOCKET: &str = "/run/containerd/containerd.sock";

/// Where the programs are in the node.
const PROGRAMS: &str = "/run/programs";
/// The pause before a program is started again.
const AGAIN: Duration = Duration::from_secs(1);
/// The interval at which the socket of containerd is looked for.
const POLL: Duration = Duration::from_millis(10);

/// Settings of the kernel that the kubelet sets, with the values that it wants. They are those of the whole machine, so
/// the node sees files instead.
pub(crate) const SETTINGS: [(&str, &str); 6] = [
    ("kernel/keys/root_maxbytes", "25000000"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
];

pub(crate) fn main(disk: &Path) -> Result<ExitCode> {
    // Afterwards, the archives are out of reach.
    let mut archives = Vec::new();
    for entry in fs::read_dir(disk.join("images"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "tar") {
            archives.push(File::open(path)?);
        }
    }
    let first_boot = !disk.join("config/booted").exists();
    enter(disk)?;

    let config = disk.join("config");
    let toml = config.join("containerd.toml").display().to_string();
    let mut containerd = Kept::start("containerd", &["--config".to_owned(), toml])?;
    while !Path::new(SOCKET).exists() {
        sleep(POLL);
    }
    if first_boot {
        for archive in archives {
            import(archive)?;
        }
        fs::write(config.join("booted"), "")?;
    }
    let mut kubelet = Kept::start("kubelet", &kubelet_arguments(&config))?;

    // Also reaps what other processes have left behind.
    loop {
        let Some((ended, _)) = wait(WaitOptions::empty())? else {
            continue;
        };
        for program in [&mut containerd, &mut kubelet] {
            if program.child.id() == ended.as_raw_nonzero().get().cast_unsigned() {
                sleep(AGAIN);
                program.start_again()?;
            }
        }
    }
}

/// Makes the disk the root of this process. Below it is the machine's own root, which cannot be written.
fn enter(disk: &Path) -> Result<()> {
    let root = disk.join("root");
    let (root, disk) = (root.display(), disk.display());
    line(&format!(
        "mount -t overlay node -o lowerdir=/,upperdir={disk}/upper,workdir={disk}/work {root}"
    ))?;
    for directory in ["proc", "sys", "dev"] {
        line(&format!("mount --rbind /{directory} {root}/{directory}"))?;
    }
    line(&format!("mount -t tmpfs -o mode=755 node {root}/run"))?;
    // The snapshots of containerd are overlays, which need a disk that is none.
    for (from, to) in [
        ("containerd", "/var/lib/containerd"),
        ("kubelet", "/var/lib/kubelet"),
    ] {
        fs::create_dir_all(format!("{root}{to}"))?;
        line(&format!("mount --bind {disk}/{from} {root}{to}"))?;
    }
    // At the same place as outside, because it contains its own path.
    fs::create_dir_all(format!("{root}{disk}/config"))?;
    line(&format!("mount --bind {disk}/config {root}{disk}/config"))?;
    for part in PARTS {
        let from = fs::canonicalize(format!("{disk}/parts/{part}"))?;
        let to = format!("{root}{PROGRAMS}/{part}");
        fs::create_dir_all(&to)?;
        line(&format!("mount --bind {} {to}", from.display()))?;
    }
    for (name, value) in SETTINGS {
        let file = format!("{root}/run/settings/{name}");
        fs::create_dir_all(Path::new(&file).parent().context("a directory")?)?;
        fs::write(&file, value)?;
        line(&format!("mount --bind {file} {root}/proc/sys/{name}"))?;
    }
    line(&format!("pivot_root {root} {root}/mnt"))?;
    std::env::set_current_dir("/")?;
    line("umount --lazy /mnt")?;
    // As on a node: what pods mount can be seen by the host, and the other way round.
    line("mount --make-rshared /")?;
    Ok(())
}

fn import(archive: File) -> Result<()> {
    let status = Command::new(format!("{PROGRAMS}/containerd/ctr"))
        .args([
            "--address",
            SOCKET,
            "--namespace",
            "k8s.io",
            "images",
            "import",
            "-",
        ])
        .stdin(archive)
        .status()?;
    anyhow::ensure!(status.success(), "ctr images import: {status}");
    Ok(())
}

/// A program that is started again whenever it ends.
struct Kept {
    name: &'static str,
    arguments: Vec<String>,
    child: Child,
}

impl Kept {
    fn start(name: &'static str, arguments: &[String]) -> Result<Self> {
        let arguments = arguments.to_vec();
        let child = spawn(name, &arguments)?;
        Ok(Self {
            name,
            arguments,
            child,
        })
    }

    fn start_again(&mut self) -> Result<()> {
        self.child = spawn(self.name, &self.arguments)?;
        Ok(())
    }
}

fn spawn(name: &str, arguments: &[String]) -> Result<Child> {
    let log = format!("/var/log/{name}.log");
    let log = File::options().create(true).append(true).open(log)?;
    let directories: Vec<_> = PARTS
        .iter()
        .map(|part| format!("{PROGRAMS}/{part}"))
        .collect();
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", directories.join(":"));
    let child = Command::new("env")
        .arg(format!("PATH={path}"))
        .arg(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("run {name}"))?;
    Ok(child)
}
