//! Configuration files. Every valid file is accepted, and every invalid file has the expected errors.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail as tests do"
)]

mod several;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use untaint::config::{self, Configuration, Gate, HttpGet, Probe, ProbeHandler, Schedule};

fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The YAML files of a folder. Fails if there are none.
fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(at_root(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    assert!(!files.is_empty(), "no YAML file in {folder}");
    files.sort();
    files
}

fn load(path: &Path) -> Configuration {
    config::load(&[path.to_owned()]).unwrap_or_else(|error| panic!("{error}"))
}

/// Writes the expectation for `make generate`, so that its change is read in the diff. Otherwise returns it.
fn expectation(path: &Path, found: &str) -> String {
    if env::var("UNTAINT_GENERATE").as_deref() == Ok("true") {
        fs::write(path, found).unwrap();
    }
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_valid_file_and_every_example_is_read_and_reads_the_same_when_shown() {
    for folder in ["tests/fixtures/config/valid", "examples"] {
        for path in yaml_files(folder) {
            let configuration = load(&path);
            let shown = config::show(&configuration);
            match config::parse(&shown) {
                Ok(again) => assert_eq!(again, configuration, "{}:\n{shown}", path.display()),
                Err(problems) => panic!("{}: {problems}\n{shown}", path.display()),
            }
        }
    }
}

#[test]
fn a_shown_configuration_has_every_field_of_the_file_and_every_default() {
    let file = at_root("tests/fixtures/config/valid/everything.yaml");
    let shown = config::show(&load(&file));
    assert_eq!(shown, expectation(&file.with_extension("shown"), &shown));
}

#[test]
fn strings_and_numbers_that_look_like_something_else_read_the_same_when_shown() {
    let strings = [
        "~",
        "null",
        "true",
        "yes",
        "0x1F",
        "010",
        "1_0",
        "1e3",
        ".inf",
        "NaN",
        "1:30",
        "2026-01-01",
        "=",
        "<<",
        "- a",
        "a: b",
        "a #b",
        "#a",
        " a",
        "a ",
        "!a",
        "&a",
        "*a",
        "%a",
        "@a",
        "`a",
        "|",
        "> a",
        "'",
        "\"",
        "\\",
        "{}",
        "[",
        "a\nb",
        "a\n\n",
        "\n",
        "\t",
        "a\r\nb",
        "\u{85}",
        "\u{feff}",
        "\u{2028}",
        "\u{7f}",
        "é😀",
    ];
    let numbers = [
        0.0, -0.0, 100.0, 1e300, 1e-7, 0.1, 1e15, 1e16, 1e19, 2e19, 1e20, 1e21, 1e22,
    ];
    let mut check = "http://localhost".parse::<HttpGet>().unwrap();
    check.expect.json = BTreeMap::from([
        ("/strings".into(), serde_json::json!(strings.as_slice())),
        ("/numbers".into(), serde_json::json!(numbers)),
        ("/limits".into(), serde_json::json!([u64::MAX, i64::MIN])),
    ]);
    let mut configuration = load(&at_root("tests/fixtures/config/valid/minimal.yaml"));
    configuration.rules[0].gates = vec![Gate::from(Probe {
        name: "a".into(),
        handler: ProbeHandler::HttpGet(check),
        schedule: Schedule::default(),
    })];
    let shown = config::show(&configuration);
    match config::parse(&shown) {
        Ok(again) => assert_eq!(again, configuration, "{shown}"),
        Err(problems) => panic!("{problems}\n{shown}"),
    }
}

#[test]
fn every_invalid_file_is_refused_with_the_expected_problems_one_a_line() {
    let mut failures = Vec::new();
    for path in yaml_files("tests/fixtures/config/invalid") {
        let found = match config::load(std::slice::from_ref(&path)) {
            Ok(_) => "no problem".to_owned(),
            Err(error) => error.to_string(),
        };
        // The expected text has the name of the file without its folder.
        let folder = format!("{}/", path.parent().unwrap().display());
        let found = format!("{}\n", found.replace(&folder, ""));
        let expected = expectation(&path.with_extension("expected"), &found);
        if found != expected {
            failures.push(format!("expected:\n{expected}\nfound:\n{found}\n"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The result of `load` for a file with these bytes.
fn error_of(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("untaint.yaml");
    fs::write(&path, bytes).unwrap();
    let message = config::load(std::slice::from_ref(&path))
        .unwrap_err()
        .to_string();
    let name = format!("{}:", path.display());
    for line in message.lines() {
        assert!(line.starts_with(&name), "{line}");
    }
    message.replace(&name, "")
}

#[test]
fn a_file_that_cannot_be_read_as_text_is_refused_by_name() {
    assert_eq!(
        error_of(b"rules: \xff"),
        " is not UTF-8 text: byte 7 is invalid"
    );
    assert_eq!(
        error_of(
            "kind: x"
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>()
                .as_slice()
        ),
        " is binary, not text: byte 1 is NUL"
    );
    let elf = error_of(b"\x7fELF\x02\x01\x01\0\0\0");
    assert_eq!(elf, " is binary, not text: byte 7 is NUL");

    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.yaml");
    let message = config::load(&[missing]).unwrap_err().to_string();
    assert!(
        message.ends_with("missing.yaml: cannot be read: no such file or directory"),
        "{message}"
    );
}

#[test]
fn a_file_above_one_mebibyte_is_refused_and_one_of_that_size_is_read() {
    let valid = fs::read(at_root("examples/cilium.yaml")).unwrap();
    let padded = |size: usize| {
        let mut text = valid.clone();
        text.resize(size, b'#');
        text
    };
    let most = 1024 * 1024;
    assert_eq!(error_of(&padded(most + 1)), " is larger than 1 MiB");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.yaml");
    fs::write(&path, padded(most)).unwrap();
    load(&path);
}

#[test]
fn large_and_deep_texts_end_in_a_problem_without_delay_or_overflow() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        writeln!(bomb, "a{level}: &a{level} [{before}]").unwrap();
    }
    let mut chain = String::from("a0: &a0 x\n");
    for level in 1..100 {
        let (open, close) = ("[".repeat(20), "]".repeat(20));
        writeln!(chain, "a{level}: &a{level} {open}*a{}{close}", level - 1).unwrap();
    }
    for text in [
        bomb,
        chain,
        "[".repeat(1_000_000),
        "- ".repeat(500_000),
        "{a: ".repeat(250_000),
        "- x\n".repeat(250_000),
        "? ".repeat(500_000),
        format!("{}: 1", "k".repeat(1_000_000)),
        format!("? {}\n: 1", "k".repeat(1_000_000)),
        format!("apiVersion: {}", "v".repeat(1_000_000)),
    ] {
        let message = config::parse(&text).unwrap_err().to_string();
        assert!(message.len() < 1000, "{}", &message[..1000]);
    }
}

#[test]
fn every_beginning_of_a_valid_text_is_refused_or_read_without_panic() {
    let text = fs::read_to_string(at_root("tests/fixtures/config/valid/everything.yaml")).unwrap();
    for (end, _) in text.char_indices() {
        let _ = config::parse(&text[..end]);
    }
}
