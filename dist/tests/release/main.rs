//! Releases of programs that are none: they have what of a program is looked at.

mod bills;
mod chart;
mod image;
mod manuals;
mod script;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

const DIST: &str = env!("CARGO_BIN_EXE_dist");
const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";
const VERSION: &str = "0.1.0";

/// A directory with a source, programs, and what is made of them.
struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        let source = scene.at("source");
        fs::create_dir(&source).unwrap();
        for name in [
            "CHANGELOG.md",
            "Cargo.lock",
            "LICENSE",
            "deploy",
            "examples",
            "rust-toolchain.toml",
        ] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
            let copied = Command::new("cp")
                .arg("-r")
                .args([&from, &source])
                .status()
                .unwrap();
            assert!(copied.success(), "{name}");
        }
        for (architecture, machine) in [("amd64", 62), ("arm64", 183)] {
            scene.add_program(architecture, machine);
        }
        let packages = [
            json!({"name": "untaint", "version": VERSION, "license": "Apache-2.0"}),
            json!({"name": "adler2", "version": "2.0.1", "license": "0BSD OR MIT/Apache-2.0"}),
            json!({"name": "cc", "version": "1.2.3+four", "license": "MIT"}),
            json!({"name": "not-in-the-program", "version": "1.0.0", "license": null}),
        ];
        fs::write(
            scene.at("metadata.json"),
            json!({"packages": packages}).to_string(),
        )
        .unwrap();
        scene
    }

    /// Writes a program for this number of a machine.
    fn add_program(&self, architecture: &str, machine: u8) {
        let directory = self.at("programs").join(architecture);
        fs::create_dir_all(&directory).unwrap();
        let mut program = b"\x7fELF\x02\x01".to_vec();
        program.resize(18, 0);
        program.extend([machine, 0]);
        for text in [
            "GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.",
            "rustc version 1.95.0 (59807616e 2026-04-14)",
            "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0",
            architecture,
        ] {
            program.push(0);
            program.extend(text.bytes());
        }
        program.push(0);
        fs::write(directory.join("untaint"), program).unwrap();
        let packages = json!({"packages": [
            {"name": "adler2", "version": "2.0.1", "source": "crates.io"},
            {"name": "cc", "version": "1.2.3+four", "source": "crates.io", "kind": "build"},
            {"name": "untaint", "version": VERSION, "source": "local", "root": true, "dependencies": [0, 1, 0]},
        ]});
        fs::write(directory.join("packages.json"), packages.to_string()).unwrap();
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// What is at this path of the release.
    fn released(&self, path: &str) -> Vec<u8> {
        let path = self.at("release").join(path);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn released_json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.released(path)).unwrap()
    }

    /// The lines of the checksums: digest and path.
    fn checksums(&self) -> Vec<(String, String)> {
        let text = String::from_utf8(self.released("SHA256SUMS")).unwrap();
        let lines = text.lines().map(|line| line.split_once("  ").unwrap());
        lines
            .map(|(digest, path)| (digest.to_owned(), path.to_owned()))
            .collect()
    }

    fn command(&self) -> Command {
        // `cargo test --workspace` builds it too.
        let untaint = Path::new(DIST).with_file_name("untaint");
        assert!(untaint.exists(), "run `cargo build --bin untaint`");
        let mut command = Command::new(DIST);
        command.current_dir(self.at("source"));
        for (name, path) in [
            ("--programs", self.at("programs")),
            ("--metadata", self.at("metadata.json")),
            ("--untaint", untaint),
            ("--output", self.at("release")),
        ] {
            command.arg(name).arg(path);
        }
        command.args(["--revision", REVISION, "--time", "1000000000"]);
        command
    }

    fn make(&self) {
        let output = self.command().output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
    }

    /// Why a release cannot be made.
    fn refusal(&self) -> String {
        let output = self.command().output().unwrap();
        assert!(!output.status.success());
        errors(&output)
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn two_releases_in_different_places_have_the_same_bytes() {
    let (one, two) = (Scene::new(), Scene::new());
    one.make();
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 077 && exec \"$0\" \"$@\"", DIST]);
    shell
        .args(two.command().get_args())
        .current_dir(two.at("source"));
    for (name, value) in [
        ("TZ", "Pacific/Kiritimati"),
        ("LC_ALL", "C.UTF-8"),
        ("SOURCE_DATE_EPOCH", "7"),
        ("COLUMNS", "40"),
        ("NODE_NAME", "of-this-machine"),
        ("UNTAINT_FORM", "sidecar"),
        ("UNTAINT_IMAGE", "registry.internal/other:1"),
    ] {
        shell.env(name, value);
    }
    assert!(shell.status().unwrap().success());
    assert_eq!(one.checksums(), two.checksums());
}

#[test]
fn the_checksums_are_those_of_all_files_and_anybody_may_read_these() {
    let scene = Scene::new();
    scene.make();
    let release = scene.at("release");
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "SHA256SUMS"]);
    let check = check.current_dir(&release).output().unwrap();
    assert!(check.status.success(), "{}", errors(&check));
    let mut found = Vec::new();
    let mut directories = vec![release.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let name = path
                .strip_prefix(&release)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            let is_program = name.starts_with("untaint-0.1.0-linux-") && !name.contains(".cdx.");
            assert_eq!(mode, if is_program { 0o755 } else { 0o644 }, "{name}");
            if name != "SHA256SUMS" {
                found.push(name);
            }
        }
    }
    found.sort();
    let named: Vec<_> = scene
        .checksums()
        .into_iter()
        .map(|(_, path)| path)
        .collect();
    assert_eq!(found, named);
}

#[test]
fn every_example_has_its_manifests() {
    let scene = Scene::new();
    scene.make();
    let examples = fs::read_dir(scene.at("source/examples")).unwrap();
    let examples = examples.map(|entry| entry.unwrap().path());
    let names = examples.filter(|path| path.extension().is_some_and(|kind| kind == "yaml"));
    let mut count = 0;
    for name in names {
        count += 1;
        let name = name.file_name().unwrap().to_str().unwrap();
        let manifests = String::from_utf8(scene.released(&format!("manifests/{name}"))).unwrap();
        assert!(
            manifests.contains("kind: ValidatingAdmissionPolicy\n"),
            "{name}"
        );
        assert!(manifests.contains("untaint:0.1.0"), "{name}");
    }
    assert!(count > 10, "{count}");
}

#[test]
fn a_release_that_would_be_wrong_is_refused_with_the_reason() {
    let scene = Scene::new();
    scene.add_program("arm64", 62);
    let refusal = scene.refusal();
    assert!(
        refusal.contains("arm64/untaint: not a program for arm64"),
        "{refusal}"
    );
    assert!(!scene.at("release").exists());

    let scene = Scene::new();
    fs::write(
        scene.at("source/CHANGELOG.md"),
        "# Changelog\n\n## [Unreleased]\n",
    )
    .unwrap();
    let refusal = scene.refusal();
    assert!(
        refusal.contains("CHANGELOG.md has no entry for 0.1.0: write one"),
        "{refusal}"
    );

    let scene = Scene::new();
    fs::write(scene.at("metadata.json"), r#"{"packages": []}"#).unwrap();
    let refusal = scene.refusal();
    assert!(refusal.contains("adler2 2.0.1 has no license"), "{refusal}");

    let scene = Scene::new();
    fs::write(scene.at("source/examples/wrong.yaml"), "rules: []\n").unwrap();
    let refusal = scene.refusal();
    assert!(refusal.contains("examples/wrong.yaml"), "{refusal}");

    let scene = Scene::new();
    scene.make();
    let refusal = scene.refusal();
    assert!(
        refusal.contains("release: cannot create this directory"),
        "{refusal}"
    );
}
