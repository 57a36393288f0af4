//! The image, as far as it can be judged without a container engine.

use std::fs;
use std::path::Path;

use crate::render::ROOT;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

#[test]
fn the_image_is_built_by_the_toolchain_that_the_tests_run_with() {
    let toolchain = read("rust-toolchain.toml");
    let channel = toolchain
        .lines()
        .find_map(|line| line.strip_prefix("channel = "));
    let tag = format!("/rust:{}-", channel.unwrap().trim_matches('"'));
    let dockerfile = read("Dockerfile");
    let image = dockerfile
        .lines()
        .find(|line| line.starts_with("ARG RUST_IMAGE="));
    assert!(image.unwrap().contains(&tag), "{image:?}: {tag}");
}

/// npd#797 (C2): a node of the other architecture cannot run the program. What the document has built is what the
/// Dockerfile compiles for.
#[test]
fn the_image_is_built_for_both_architectures() {
    let (dockerfile, installing) = (read("Dockerfile"), read("docs/installing.md"));
    let platforms = "--platform linux/amd64,linux/arm64 ";
    for (page, text) in [("Dockerfile", &dockerfile), ("installing.md", &installing)] {
        let mut builds = text
            .lines()
            .filter(|line| line.contains("docker buildx build"));
        assert!(builds.next().unwrap().contains(platforms), "{page}");
        assert!(builds.all(|line| line.contains(platforms)), "{page}");
    }
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
    assert!(
        dockerfile.contains(r#"cargo build --release --locked --bin untaint --target "$target""#)
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
