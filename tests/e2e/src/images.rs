//! Archives of the images that the node has from the start, so that no registry is needed.

pub(crate) mod parts;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::commands::run;

/// The environment variable with the path of the program under test.
const BINARY: &str = "UNTAINT_BINARY";
pub(crate) const UNTAINT: &str = "registry.internal/untaint:0.1.0";
/// In which every other container of a pod lives.
pub(crate) const SANDBOX: &str = "localhost/pause:1";
const BUSYBOX: &str = "docker.io/library/busybox:1.37";

/// The archives that every node has, by their names without `.tar`.
pub(crate) const COMMON: [&str; 3] = ["untaint", "pause", "busybox"];

/// The path of the program under test.
pub(crate) fn binary() -> Result<String> {
    std::env::var(BINARY).with_context(|| format!("{BINARY}: use `make e2e`"))
}

/// Whether the program under test is not optimised.
pub(crate) fn is_debug_build() -> Result<bool> {
    let binary = binary()?;
    Ok(Path::new(&binary)
        .parent()
        .is_some_and(|parent| parent.ends_with("debug")))
}

/// Writes the archives into `directory`, each with its contents beside it. `parts` are the names and the directories of more
/// programs.
pub(crate) fn build(directory: &Path, parts: &[(&str, PathBuf)]) -> Result<()> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory)?;

    // As the Dockerfile makes it, except that a program for debugging is ten times as large.
    let binary = binary()?;
    let root = directory.join("untaint");
    fs::create_dir(&root)?;
    let stripped = root.join("untaint").display().to_string();
    run("strip", &["-o", &stripped, &binary])?;
    let license = concat!(env!("CARGO_MANIFEST_DIR"), "/../../LICENSE");
    fs::copy(license, root.join("LICENSE"))?;
    let config = json!({"User": "65532:65532", "Entrypoint": ["/untaint"]});
    archive(&root, UNTAINT, &config)?;

    let root = directory.join("pause");
    fs::create_dir(&root)?;
    fs::copy("/bin/busybox", root.join("busybox"))?;
    let config = json!({"Entrypoint": ["/busybox", "sleep", "infinity"]});
    archive(&root, SANDBOX, &config)?;

    let root = directory.join("busybox");
    busybox(&root)?;
    let config = json!({"Cmd": ["sh"], "Env": ["PATH=/bin"]});
    archive(&root, BUSYBOX, &config)?;

    for (part, programs) in parts {
        parts::build(part, programs, directory)?;
    }
    Ok(())
}

/// Makes `root` a directory with the programs of busybox.
fn busybox(root: &Path) -> Result<()> {
    for name in ["bin", "tmp"] {
        fs::create_dir_all(root.join(name))?;
    }
    run("chmod", &["1777".as_ref(), root.join("tmp").as_os_str()])?;
    fs::copy("/bin/busybox", root.join("bin/busybox"))?;
    for applet in run("/bin/busybox", &["--list"])?.lines() {
        if applet != "busybox" {
            symlink("busybox", root.join("bin").join(applet))?;
        }
    }
    Ok(())
}

/// Writes `root.tar`, an archive of an image with one layer, in the form of `docker save`.
fn archive(root: &Path, name: &str, config: &Value) -> Result<()> {
    let work = root.with_extension("image");
    fs::create_dir(&work)?;
    let pack = |from: &Path, to: &Path| {
        let fixed = [
            "--create",
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
        ];
        let mut arguments: Vec<_> = fixed.iter().map(AsRef::as_ref).collect();
        arguments.extend(["--file".as_ref(), to.as_os_str()]);
        arguments.extend(["--directory".as_ref(), from.as_os_str(), ".".as_ref()]);
        run("tar", &arguments)
    };
    let layer = work.join("layer.tar");
    pack(root, &layer)?;
    let config = json!({
        "os": "linux",
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [sha256(&fs::read(&layer)?)]},
    });
    fs::write(work.join("config.json"), config.to_string())?;
    let manifest = json!([
        {"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}
    ]);
    fs::write(work.join("manifest.json"), manifest.to_string())?;
    pack(&work, &root.with_extension("tar"))?;
    fs::remove_dir_all(work)?;
    Ok(())
}

fn sha256(content: &[u8]) -> String {
    let bytes = digest(&SHA256, content);
    let digits: Vec<_> = bytes
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{}", digits.concat())
}
