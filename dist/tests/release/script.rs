//! `.ci/dist` asks for what is missing before it builds anything.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::{VERSION, errors};

const CHANGELOG: &str = "## [0.1.0] - 2026-12-01\n\n- Something.\n";

/// What the script says on a machine with the standard libraries of Rust for these targets, and a C compiler for amd64.
fn refusal(changelog: &str, libraries: &[&str], architectures: &[&str]) -> String {
    let machine = tempfile::tempdir().unwrap();
    let root = machine.path().display();
    for target in libraries {
        let directory = machine.path().join(target);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("libstd-0123.rlib"), "").unwrap();
    }
    let rustc = format!(
        "case \"$*\" in\n\
         '--print host-tuple') echo x86_64-unknown-linux-gnu ;;\n\
         '--print target-libdir --target '*) echo {root}/$4 ;;\n\
         *) exit 1 ;;\n\
         esac"
    );
    let add = |name: &str, script: &str| {
        let path = machine.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    add("rustc", &rustc);
    add("x86_64-linux-gnu-gcc", "exit 1");
    // The compilers of this machine must not be found.
    for needed in ["bash", "dirname", "env", "grep", "sed"] {
        let path = Path::new("/usr/bin").join(needed);
        std::os::unix::fs::symlink(path, machine.path().join(needed)).unwrap();
    }
    let source = machine.path().join("source");
    fs::create_dir_all(source.join(".ci")).unwrap();
    for file in [".ci/dist", "Cargo.toml"] {
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        fs::copy(original, source.join(file)).unwrap();
    }
    fs::write(source.join("CHANGELOG.md"), changelog).unwrap();
    let mut command = Command::new(source.join(".ci/dist"));
    command.args(["0123", "1000000000"]).args(architectures);
    command.env("PATH", machine.path());
    command.env("CARGO_TARGET_DIR", machine.path().join("target"));
    let output = command.output().unwrap();
    assert!(!output.status.success());
    assert!(!machine.path().join("target").exists());
    errors(&output)
}

#[test]
fn what_is_missing_for_an_architecture_is_named_with_the_remedy() {
    let (amd64, arm64) = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu");
    for (libraries, architectures, expected) in [
        (
            &[amd64][..],
            &["amd64", "arm64"][..],
            "run `rustup target add aarch64-unknown-linux-gnu`, or leave arm64 out",
        ),
        (
            &[amd64, arm64],
            &["amd64", "arm64"],
            "install the packages gcc-aarch64-linux-gnu and libc6-dev-arm64-cross, or",
        ),
        (
            &[],
            &["amd64"],
            "run `rustup target add x86_64-unknown-linux-gnu`",
        ),
        (
            &[amd64],
            &["mips"],
            "no target for the architecture 'mips': use amd64 or arm64",
        ),
        (&[amd64], &[], "usage: "),
    ] {
        let refusal = refusal(CHANGELOG, libraries, architectures);
        assert!(refusal.contains(expected), "{architectures:?}: {refusal}");
    }
}

#[test]
fn a_version_without_an_entry_in_the_changelog_is_not_built() {
    for changelog in [
        "",
        "## [Unreleased]\n",
        "## [0.1.0]\n",
        "## [0x1x0] - 2026-12-01\n",
    ] {
        let refusal = refusal(changelog, &["x86_64-unknown-linux-gnu"], &["amd64"]);
        let expected = format!("CHANGELOG.md has no entry for {VERSION}: write one");
        assert!(refusal.contains(&expected), "{refusal}");
    }
}
