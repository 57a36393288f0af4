//! The entry of a version in CHANGELOG.md, which has the form of <https://keepachangelog.com>.

use anyhow::{Result, ensure};

/// The entry of `version`, with its heading.
pub(crate) fn entry(changelog: &str, version: &str) -> Result<String> {
    let beginning = format!("## [{version}] - ");
    let mut lines = changelog
        .lines()
        .skip_while(|line| !line.starts_with(&beginning));
    let heading = lines.next().unwrap_or_default();
    let date = heading.strip_prefix(&beginning);
    let is_dated = date.is_some_and(|date| date.parse::<jiff::civil::Date>().is_ok());
    ensure!(
        is_dated,
        "CHANGELOG.md has no entry for {version}: write one, with the heading `{beginning}YYYY-MM-DD`"
    );
    // The links of the headings are after the last entry.
    let text = lines.take_while(|line| !line.starts_with("## ") && !line.starts_with('['));
    let text: Vec<_> = text.collect();
    let text = text.join("\n");
    let text = text.trim();
    ensure!(
        !text.is_empty(),
        "CHANGELOG.md says nothing about {version}: write what it brings"
    );
    Ok(format!("{heading}\n\n{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::entry;

    const CHANGELOG: &str = "\
# Changelog

## [Unreleased]

- Soon.

## [0.2.0] - 2026-12-24

### Added

- Two.

## [0.1.1] - 2026-12-01

## [0.1.0] - soon

- One.

## [0.0.1] - 2026-11-01

- None.

[0.2.0]: https://example.com
";

    #[test]
    fn an_entry_ends_where_the_next_begins() {
        let found = entry(CHANGELOG, "0.2.0").unwrap();
        assert_eq!(found, "## [0.2.0] - 2026-12-24\n\n### Added\n\n- Two.\n");
        let found = entry(CHANGELOG, "0.0.1").unwrap();
        assert_eq!(found, "## [0.0.1] - 2026-11-01\n\n- None.\n");
    }

    #[test]
    fn a_version_without_a_date_or_a_text_cannot_be_released() {
        for (version, expected) in [
            (
                "0.3.0",
                "CHANGELOG.md has no entry for 0.3.0: write one, with the heading `## [0.3.0] - YYYY-MM-DD`",
            ),
            ("0.2", "CHANGELOG.md has no entry for 0.2: "),
            ("0.1.0", "CHANGELOG.md has no entry for 0.1.0: "),
            (
                "0.1.1",
                "CHANGELOG.md says nothing about 0.1.1: write what it brings",
            ),
        ] {
            let error = entry(CHANGELOG, version).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
