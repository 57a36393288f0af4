//! What the machine must have.

use std::path::Path;

use anyhow::{Result, bail};
use rustix::fs::{Access, access};

use crate::cgroups::hierarchies;
use crate::commands::run;
use crate::images;
use crate::images::parts::CNIS;
use crate::scenarios::Scenario;

/// A program or a file, and the Debian package that contains it.
const PROGRAMS: [(&str, &str); 12] = [
    ("/bin/busybox", "busybox-static"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("/usr/sbin/ipset", "ipset"),
    ("/usr/sbin/iptables", "iptables"),
    ("flock", "util-linux"),
    ("ip", "iproute2"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    ("runc", "runc"),
    ("strip", "binutils"),
    ("tar", "tar"),
    ("unshare", "util-linux"),
];

/// Fails with the remedy if one of these scenarios cannot run.
pub(crate) fn check(scenarios: &[&Scenario]) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "a node needs root: run `sudo --preserve-env make e2e`, or run it as root in a virtual machine"
        );
    }
    let binary = images::binary()?;
    if access(&binary, Access::EXEC_OK).is_err() || !Path::new(&binary).is_file() {
        bail!("PROGRAM={binary} is no program: name a build of untaint, or leave PROGRAM out");
    }
    let missing: Vec<_> = PROGRAMS.iter().filter(|(name, _)| !exists(name)).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
        let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
        packages.dedup();
        bail!(
            "this machine lacks {}: run `apt-get install --no-install-recommends {}`",
            names.join(", "),
            packages.join(" ")
        );
    }
    if !Path::new("/proc/self/ns/time").exists() {
        bail!(
            "this kernel has no time namespaces: use Linux 5.6 or newer, built with CONFIG_TIME_NS"
        );
    }
    let namespaces = [
        "--mount",
        "--net",
        "--pid",
        "--time",
        "--fork",
        "--",
        "mount",
        "--make-rprivate",
        "/",
    ];
    if let Err(error) = run("unshare", &namespaces) {
        bail!(
            "{error:#}: this machine does not allow namespaces: use a virtual machine or a privileged container"
        );
    }
    let hierarchies = hierarchies().unwrap_or_default();
    let writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    if hierarchies.is_empty() || !hierarchies.iter().all(|path| writable(path)) {
        bail!(
            "the control groups of this machine cannot be written: use a virtual machine or a privileged container"
        );
    }
    let mut images = scenarios.iter().flat_map(|scenario| scenario.images);
    if images.any(|image| CNIS.contains(image)) && !Path::new("/proc/sys/net/bridge").exists() {
        bail!("the kernel lacks a module that CNIs need: run `modprobe br_netfilter`");
    }
    Ok(())
}

fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
