//! Checks the documents: configurations, command lines, links, names.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail as tests do"
)]

mod document;
mod generated;
mod layers;
mod owners;
mod reference;
mod schema;
mod workflow;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use document::{Block, Document, anchor};
use untaint::cli::Cli;
use untaint::config;
use untaint::events::Reason;

const REFERENCE: &str = "docs/configuration.md";

fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Without this, a check that finds nothing to check would pass.
fn some<T>(found: Vec<T>) -> Vec<T> {
    assert!(!found.is_empty(), "nothing to check was found");
    found
}

/// In Traditional Chinese.
const TRANSLATION: &str = "README.zh-TW.md";

/// README.md, its translation, and the pages in docs/.
fn documents() -> Vec<Document> {
    let entries = fs::read_dir(at_root("docs")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let pages = paths.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let mut paths = some(pages.collect());
    paths.extend(["README.md", TRANSLATION].map(at_root));
    paths.into_iter().map(Document::read).collect()
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(at_root(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "yaml");
    some(paths.filter(is_yaml).collect())
}

fn blocks(language: &str) -> Vec<Block> {
    let blocks = documents().into_iter().flat_map(|page| page.blocks);
    some(blocks.filter(|block| block.language == language).collect())
}

/// The texts between backquotes.
fn code_spans(prose: &str) -> BTreeSet<&str> {
    prose.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_configuration_in_the_documents_is_valid() {
    let is_one = |block: &Block| block.code.contains("kind: UntaintConfiguration");
    for block in some(blocks("yaml").into_iter().filter(is_one).collect()) {
        if let Err(problems) = config::parse(&block.code) {
            panic!("{}:\n{problems}", block.place);
        }
        schema::assert_accepts(&block.code, &block.place);
    }
}

#[test]
fn the_translation_of_the_readme_has_the_same_code_links_and_headings() {
    let [original, translation] = ["README.md", TRANSLATION].map(|name| {
        let page = Document::read(at_root(name));
        let code: Vec<_> = page.blocks.iter().map(|block| block.code.clone()).collect();
        let links = page.prose.split("](").skip(1);
        let links = links.map(|link| link.split(')').next().unwrap().to_owned());
        // Headings of the page itself are translated, and each page names the other.
        let links = links.filter(|link| !link.starts_with('#') && !link.starts_with("README"));
        let mut links: Vec<_> = links.collect();
        links.sort();
        let spans = page.prose.split('`').skip(1).step_by(2);
        let mut spans: Vec<_> = spans.map(str::to_owned).collect();
        spans.sort();
        let headings = page.prose.lines().filter(|line| line.starts_with('#'));
        let levels = headings.map(|line| line.split(' ').next().unwrap().to_owned());
        (
            some(code),
            some(links),
            some(spans),
            levels.collect::<Vec<_>>(),
        )
    });
    assert_eq!(translation, original);
}

/// A placeholder in a command line is a word in capitals that is valid, such as the name of a file.
#[test]
fn every_command_line_of_untaint_in_the_documents_is_understood() {
    let blocks = blocks("sh");
    let lines = blocks
        .iter()
        .flat_map(|block| block.code.lines().map(|line| (&block.place, line)));
    let ours = lines.filter(|(_, line)| line.starts_with("untaint "));
    for (place, line) in some(ours.collect()) {
        let command = line.split(" #").next().unwrap();
        let command = command.split(" > ").next().unwrap();
        assert!(
            !command.contains(['\'', '"', '\\', '|', ';']),
            "{place}: this test knows no shell: {line}"
        );
        if let Err(error) = Cli::try_parse_from(command.split_whitespace()) {
            panic!("{place}: {line}\n{error}");
        }
    }
}

#[test]
fn every_relative_link_in_the_documents_leads_to_a_file_and_to_a_heading_of_it() {
    let documents = documents();
    let links = documents.iter().flat_map(|page| {
        let parts = page.prose.split("](").skip(1);
        parts.map(move |part| (&page.path, part.split(')').next().unwrap()))
    });
    let relative = links.filter(|(_, link)| !link.contains("://"));
    for (page, link) in some(relative.collect()) {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() {
            page.clone()
        } else {
            page.parent().unwrap().join(file)
        };
        assert!(target.exists(), "{}: {link}", page.display());
        if !heading.is_empty() {
            let target = Document::read(target);
            let has_it = headings(&target.prose).any(|anchor| anchor == heading);
            assert!(has_it, "{}: {link}", page.display());
        }
    }
}

fn headings(prose: &str) -> impl Iterator<Item = String> {
    let titles = prose.lines().filter(|line| line.starts_with('#'));
    titles.map(anchor)
}

#[test]
fn the_table_of_events_is_what_is_written() {
    let page = Document::read(at_root("docs/events.md")).prose;
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<_> = some(rows.collect());
    assert_eq!(rows.len(), Reason::ALL.len());
    for (row, reason) in rows.into_iter().zip(Reason::ALL) {
        let (reason, kind, action) = reason.fields();
        let beginning = format!("| `{reason}` | {kind:?} | `{action}` | ");
        assert!(row.starts_with(&beginning), "{beginning}: {row}");
    }
}

#[test]
fn every_flag_and_every_variable_is_in_the_reference() {
    let mut cli = Cli::command();
    cli.build();
    let (mut flags, mut variables) = (BTreeSet::new(), BTreeSet::new());
    let mut commands = vec![&cli];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        for argument in command.get_arguments() {
            flags.extend(argument.get_long().map(|flag| format!("--{flag}")));
            variables.extend(
                argument
                    .get_env()
                    .map(|name| name.to_str().unwrap().to_owned()),
            );
        }
    }
    let reference = Document::read(at_root(REFERENCE)).prose;
    // The reference shows a flag together with the name of its value.
    let named: BTreeSet<_> = code_spans(&reference)
        .into_iter()
        .filter_map(|code| code.split_whitespace().next())
        .collect();
    for names in [flags, variables] {
        for name in some(names.into_iter().collect()) {
            assert!(named.contains(name.as_str()), "{name} is missing");
        }
    }
}

/// `row` is the row of tests/README.md that names the test.
fn assert_has_test(file: &str, test: &str, row: &str) {
    let source = fs::read_to_string(at_root(file));
    let source = source.unwrap_or_else(|error| panic!("{row}: {file}: {error}"));
    let is_there = source.contains(&format!("fn {test}("));
    assert!(is_there, "{row}: {file} has no test {test}");
}

#[test]
fn every_situation_in_the_table_has_its_test() {
    let table = fs::read_to_string(at_root("tests/README.md")).unwrap();
    let names = table
        .lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| line.rsplit('`').nth(1)?.split_once("::"))
        // A path to a file is in the table of the failures of other projects.
        .filter(|(module, _)| !module.contains('.'));
    let mut count = 0;
    for (module, test) in names {
        count += 1;
        assert_has_test(&format!("tests/behaviour/{module}.rs"), test, "a situation");
    }
    assert!(count > 20, "{count}");
}

#[test]
fn every_path_in_the_map_of_the_code_is_there() {
    let map = fs::read_to_string(at_root("CONTRIBUTING.md")).unwrap();
    let rows = map.lines().filter(|line| line.starts_with('|'));
    let paths = rows.flat_map(code_spans);
    for path in some(paths.filter(|path| path.contains('/')).collect()) {
        // A file for each kind.
        let path = path.strip_suffix("/KIND.rs").unwrap_or(path);
        assert!(at_root(path).exists(), "{path}");
    }
}

/// The failures of other projects, each of which needs a test here.
const FAILURES: &str = "A1 A2 A3 A4 A5 A6 A7 A9 A10 A11 A12 A13 A14 A15 A16 A17 A18 A19 A21 A22 A23 A25 A26 A27 A28 B1 B2 B3 B4 B5 B6 B7 B8 B9 B12 B13 B15 B16 B17 B19 B20 B21 B22 B23 B24 B25 B27 B28 B29 B30 B31 B33 C2 C4 C7 C9 C11 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D18 D19 D20 D21 D22 D23 D24 D25 D26 D27 D28 D29 D30 D31 D32 D33 D34 D35 D36 D37";

#[test]
fn every_failure_of_others_has_its_test() {
    let table = fs::read_to_string(at_root("tests/README.md")).unwrap();
    for id in FAILURES.split_whitespace() {
        let start = format!("| {id} | ");
        let rows = table.lines().filter(|line| line.starts_with(&start));
        let rows: Vec<_> = rows.collect();
        assert!(!rows.is_empty(), "{id} has no row");
        for row in rows {
            let tests = code_spans(row)
                .into_iter()
                .filter_map(|code| code.split_once("::"));
            for (file, test) in some(tests.collect()) {
                assert_has_test(file, test, id);
            }
        }
    }
}
