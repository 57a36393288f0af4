//! Images that only some scenarios need, with programs of a directory of `tests/cluster`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{archive, busybox};
use crate::commands::run;

/// The CSI driver and the device plugin.
const PLUGINS: &str = "localhost/plugins:1";
/// Those of CNIs.
pub(crate) const CNIS: [&str; 2] = ["flannel", "kube-router"];
/// The manifests of CNIs, beside the archives.
pub(crate) const FLANNEL_MANIFEST: &str = "kube-flannel.yml";
pub(crate) const KUBE_ROUTER_MANIFEST: &str = "generic-kuberouter.yaml";

/// Writes the archive `PART.tar` into `directory`, with its contents beside it. `programs` is the directory of its programs.
pub(super) fn build(part: &str, programs: &Path, directory: &Path) -> Result<()> {
    let root = directory.join(part);
    match part {
        "flannel" => flannel(&root, programs),
        "flannel-plugin" => flannel_plugin(&root, programs),
        "kube-router" => kube_router(&root, programs),
        "plugins" => plugins(&root, programs),
        _ => anyhow::bail!("no image is known for {part}"),
    }
}

/// `flanneld` with what it calls. Its manifest is written beside `root`.
fn flannel(root: &Path, programs: &Path) -> Result<()> {
    copy_linked(
        &programs.join("flannel"),
        &root.join("opt/bin/flanneld"),
        root,
    )?;
    copy(
        &programs.join("install_conf"),
        &root.join("opt/bin/install-conf"),
    )?;
    iptables(root)?;
    fs::create_dir(root.join("tmp"))?;
    let manifest = flannel_manifest()?;
    let config = json!({"Env": ["PATH=/usr/sbin"], "Entrypoint": ["/opt/bin/flanneld"]});
    archive(root, image_in(&manifest, "/flannel:")?, &config)?;
    fs::write(root.with_file_name(FLANNEL_MANIFEST), manifest)?;
    Ok(())
}

/// The CNI plugin of Flannel, which an init container copies to the node.
fn flannel_plugin(root: &Path, programs: &Path) -> Result<()> {
    busybox(root)?;
    copy(&programs.join("flannel"), &root.join("flannel"))?;
    let config = json!({"Env": ["PATH=/bin"]});
    archive(
        root,
        image_in(&flannel_manifest()?, "/flannel-cni-plugin:")?,
        &config,
    )
}

/// The same for kube-router.
fn kube_router(root: &Path, programs: &Path) -> Result<()> {
    busybox(root)?;
    copy(
        &programs.join("kube-router"),
        &root.join("usr/local/bin/kube-router"),
    )?;
    iptables(root)?;
    for program in ["ip", "ipset"] {
        let path = fs::canonicalize(Path::new("/usr/sbin").join(program))?;
        copy_linked(&path, &root.join("usr/sbin").join(program), root)?;
    }
    let file = format!("daemonset/{KUBE_ROUTER_MANIFEST}");
    let manifest = source(
        "kube-router",
        "github.com/cloudnativelabs/kube-router/v2",
        &file,
    )?;
    let config =
        json!({"Env": ["PATH=/usr/sbin:/bin"], "Entrypoint": ["/usr/local/bin/kube-router"]});
    let image = image_in(&manifest, "/kube-router")?;
    archive(root, &format!("{image}:latest"), &config)?;
    fs::write(root.with_file_name(KUBE_ROUTER_MANIFEST), manifest)?;
    Ok(())
}

fn plugins(root: &Path, programs: &Path) -> Result<()> {
    for program in ["csi-driver", "device-plugin"] {
        copy(&programs.join(program), &root.join(program))?;
    }
    archive(root, PLUGINS, &json!({}))
}

fn flannel_manifest() -> Result<String> {
    let file = format!("Documentation/{FLANNEL_MANIFEST}");
    source("flannel", "github.com/flannel-io/flannel", &file)
}

/// A file in the source of a module, in the version that a directory of `tests/cluster` pins.
fn source(part: &str, module: &str, file: &str) -> Result<String> {
    let pinned = format!("{}/../cluster/{part}", env!("CARGO_MANIFEST_DIR"));
    // The programs can be there although the cache of Go is not. The environment is that of `tests/cluster/assets`.
    let download = ["GOWORK=off", "GOFLAGS=-mod=readonly", "go", "-C", &pinned];
    let download = [&download[..], &["mod", "download", "-json", module]].concat();
    let known: Value = serde_json::from_str(&run("env", &download)?)?;
    let file = Path::new(known["Dir"].as_str().context("a directory")?).join(file);
    fs::read_to_string(&file).with_context(|| file.display().to_string())
}

/// The name of the first image in `manifest` that has `part` in its name.
fn image_in<'a>(manifest: &'a str, part: &str) -> Result<&'a str> {
    let images = manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("image: "));
    let mut images = images.filter(|image| image.contains(part));
    images
        .next()
        .with_context(|| format!("an image with {part} in its name"))
}

/// Copies iptables, one program with many names.
fn iptables(root: &Path) -> Result<()> {
    let program = fs::canonicalize("/usr/sbin/iptables")?;
    let libraries = copy_linked(&program, &root.join("usr/sbin/xtables"), root)?;
    for family in ["iptables", "ip6tables"] {
        for end in ["", "-save", "-restore"] {
            symlink("xtables", root.join(format!("usr/sbin/{family}{end}")))?;
        }
    }
    // The extensions are found by this name.
    let library = libraries
        .iter()
        .find(|path| path.to_string_lossy().contains("libxtables"));
    let library = library.context("iptables is linked with libxtables")?;
    let extensions = fs::canonicalize(library)?.with_file_name("xtables");
    let to = root.join(extensions.strip_prefix("/")?);
    fs::create_dir_all(to.parent().context("a directory")?)?;
    run(
        "cp",
        &["-R".as_ref(), extensions.as_os_str(), to.as_os_str()],
    )?;
    Ok(())
}

/// Copies a program, and what it is linked with to the same places in `root`. Returns the latter.
fn copy_linked(program: &Path, to: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    copy(program, to)?;
    let linked = run("ldd", &[program])?;
    let words = linked
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    let libraries: Vec<_> = words.map(PathBuf::from).collect();
    for library in &libraries {
        copy(library, &root.join(library.strip_prefix("/")?))?;
    }
    Ok(libraries)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a directory")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}
