//! The image, as far as it can be judged without a container engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::dockerfile::instructions;
use testkit::skip::skip;

use crate::render::{FORMS, Objects, ROOT, configuration, list, written};

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

#[test]
fn every_image_it_is_made_of_has_a_tag_and_can_be_pinned_by_an_argument() {
    let arguments = instructions("ARG");
    let images = instructions("FROM");
    assert_eq!(images.len(), 2);
    for image in images {
        let mut words = image.split(' ').filter(|word| !word.starts_with("--"));
        let image = words.next().unwrap();
        if image == "scratch" {
            continue;
        }
        let name = image.strip_prefix('$').unwrap();
        let mut defaults = arguments
            .iter()
            .filter_map(|argument| argument.strip_prefix(name)?.strip_prefix('='));
        let (_, tag) = defaults.next().unwrap().rsplit_once(':').unwrap();
        assert!(!tag.contains('/') && tag != "latest", "{image}: {tag}");
    }
}

/// Where the files of the image are in it.
fn files() -> Vec<PathBuf> {
    let run = instructions("RUN").join(" ");
    let words = run.split(' ');
    let files = words.filter_map(|word| word.strip_prefix("/image/"));
    let files = files.filter(|file| !file.contains('*'));
    let files: Vec<_> = files.map(|file| Path::new("/").join(file)).collect();
    assert!(files.contains(&entry_point().into()), "{files:?}");
    files
}

fn entry_point() -> String {
    let [entry] = <[String; 1]>::try_from(instructions("ENTRYPOINT")).unwrap();
    let [program] = serde_json::from_str::<[String; 1]>(&entry).unwrap();
    program
}

/// A directory cannot be mounted at a file, nor below one ("not a directory" is all that the container runtime says); one
/// around it hides it.
#[test]
fn nothing_is_mounted_where_the_image_has_its_files_in_any_form_and_with_any_option() {
    let hosts = "examples/storage-agent.yaml";
    let mut mounts = 0;
    for form in FORMS {
        let patch: &[&str] = match form {
            "sidecar" => &["--config", hosts, "--patch=agent"],
            "init-container" => &["--config", hosts, "--patch=agent", "--after=prepare"],
            _ => &["--config", hosts, "--only=workload"],
        };
        let options: [&[&str]; 6] = [
            &["--config=examples/cilium.yaml"],
            &["--config", hosts],
            // A ConfigMap with several files.
            &["--config=examples/cilium.yaml:examples/multus.yaml"],
            &["--config", hosts, "--exact-tolerations"],
            &["--config", hosts, "--selinux-type=spc_t"],
            patch,
        ];
        for options in options {
            let account = ["--form", form, "--service-account=agent"];
            let objects = Objects::written(&[&account[..], options].concat());
            for program in objects.programs() {
                // A hook is in another image.
                if program.path().is_some() {
                    continue;
                }
                for mount in list(&program.container["volumeMounts"]) {
                    let at = mount["mountPath"].as_str().map(Path::new).unwrap();
                    mounts += 1;
                    for file in files() {
                        let is_free = !file.starts_with(at) && !at.starts_with(&file);
                        let name = &mount["name"];
                        assert!(is_free, "{form} {options:?}: {name} at {}", at.display());
                    }
                }
            }
        }
    }
    assert!(mounts > 10 * FORMS.len());
}

#[test]
fn a_gate_that_looks_where_the_image_has_its_files_is_an_error() {
    for file in files() {
        for below in ["ready", "deep/er/ready"] {
            let path = file.join(below);
            let path = path.to_str().unwrap();
            let file = configuration(&format!("gates: [{{name: a, file: {{path: {path}}}}}]"));
            let config = file.path().to_str().unwrap();
            for form in ["daemonset", "sidecar", "init-container"] {
                let arguments = [
                    "--config",
                    config,
                    "--form",
                    form,
                    "--service-account=agent",
                ];
                let error = written(&arguments).unwrap_err();
                let expected = format!("gate a: {path} cannot be made visible in a pod: ");
                assert!(error.starts_with(&expected), "{error}");
            }
        }
    }
}

#[test]
fn nothing_is_added_from_the_net_and_whoever_names_no_user_is_not_root() {
    assert!(instructions("ADD").is_empty());
    assert_eq!(instructions("USER"), ["65532:65532"]);
}

#[test]
fn the_image_is_built_with_the_tools_that_make_installs() {
    let makefile = read("Makefile");
    let words = instructions("RUN").join(" ");
    let pinned = |word: &&str| word.contains('@') && word.starts_with(char::is_alphabetic);
    let tools: Vec<_> = words.split(' ').filter(pinned).collect();
    assert_eq!(tools.len(), 2, "{tools:?}");
    for tool in tools {
        assert!(
            makefile.split_whitespace().any(|word| word == tool),
            "{tool}"
        );
    }
}

#[test]
fn the_image_is_built_by_the_toolchain_that_the_tests_run_with() {
    let toolchain = read("rust-toolchain.toml");
    let channel = toolchain
        .lines()
        .find_map(|line| line.strip_prefix("channel = "));
    let tag = format!("/rust:{}-", channel.unwrap().trim_matches('"'));
    let arguments = instructions("ARG");
    let mut images = arguments
        .iter()
        .filter(|argument| argument.starts_with("RUST_IMAGE="));
    let image = images.next().unwrap();
    assert!(image.contains(&tag), "{image}: {tag}");
}

/// npd#797 (C2): a node of the other architecture cannot run the program. What `make image` has built is what the
/// Dockerfile compiles for.
#[test]
fn the_image_is_built_for_both_architectures() {
    let dockerfile = read("Dockerfile");
    assert!(read("Makefile").contains("image: PLATFORM := linux/amd64,linux/arm64\n"));
    for (architecture, cpu) in [("amd64", "x86_64"), ("arm64", "aarch64")] {
        let case = format!("{architecture}) cpu={cpu} ");
        assert!(dockerfile.contains(&case), "{architecture}");
        let linker = format!(
            "CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_LINKER",
            cpu.to_uppercase()
        );
        assert!(dockerfile.contains(&linker), "{architecture}");
    }
    assert!(dockerfile.contains(r#"rustup target add "$cpu-unknown-linux-gnu""#));
    assert!(dockerfile.contains(r#".ci/release "$target""#));
}

/// rustc does not use its own linker where one is set, and the Dockerfile sets one. `make reproducible` compares the whole
/// program.
#[test]
fn what_make_release_links_is_what_the_image_links() {
    let release = read(".ci/release");
    let (_, flags) = release.split_once("flags+=(-C ").unwrap();
    let flag = format!("-C{}", flags.split_once(')').unwrap().0);
    let variable = format!(
        "CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_LINKER=",
        std::env::consts::ARCH.to_uppercase()
    );
    let variables = instructions("ENV").join(" ");
    let mut variables = variables.split_whitespace();
    let linker = variables
        .find_map(|words| words.strip_prefix(&variable))
        .unwrap();
    assert!(read(".ci/reproduce").contains("_LINKER=[a-z0-9_-]*' Dockerfile"));
    // The option exists only there.
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    if Command::new(linker).arg("--version").output().is_err() {
        skip("the linker of the image is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.rs"), "fn main() {}\n").unwrap();
    let program_with = |more: &[&str]| {
        let status = Command::new("rustc")
            .args([
                "a.rs",
                "-Ctarget-feature=+crt-static",
                "-Cstrip=symbols",
                &flag,
            ])
            .args(more)
            .current_dir(directory.path())
            .status();
        assert!(status.unwrap().success());
        fs::read(directory.path().join("a")).unwrap()
    };
    let linker = format!("-Clinker={linker}");
    assert!(
        program_with(&[]) == program_with(&[&linker]),
        "{flag} {linker}"
    );
}

#[test]
fn the_labels_of_the_image_say_what_the_package_says() {
    let dockerfile = read("Dockerfile");
    for (label, value) in [
        ("title", env!("CARGO_PKG_NAME")),
        ("description", env!("CARGO_PKG_DESCRIPTION")),
        ("version", env!("CARGO_PKG_VERSION")),
        ("licenses", "Apache-2.0"),
    ] {
        let line = format!("org.opencontainers.image.{label}=\"{value}\"");
        assert!(dockerfile.contains(&line), "{line}");
    }
}
