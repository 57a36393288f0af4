//! Templates of YAML documents, and strings in YAML.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Values for the names in templates.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(BTreeMap<&'static str, String>);

impl Values {
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.insert(name, value.into());
        self
    }

    /// Adds a part of other templates, filled with the values so far.
    pub(super) fn with_part(self, name: &'static str, template: &str) -> Self {
        let part = self.fill(template);
        self.with(name, part)
    }

    /// The template with the values instead of `{{name}}`. A value that is alone on its line may have several lines,
    /// which get the indentation of the name, or none. Placeholders in values stay, and so do those without a value.
    /// Lines that begin with `##` are comments on the template and are dropped.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut filled = String::new();
        for line in template.lines() {
            let content = line.trim_start();
            if content.starts_with("##") {
                continue;
            }
            let name = content.strip_prefix("{{");
            let name = name.and_then(|name| name.strip_suffix("}}"));
            if let Some(block) = name.and_then(|name| self.0.get(name)) {
                filled += &indent(block, line.len() - content.len());
            } else {
                filled += &self.fill_line(line);
                filled.push('\n');
            }
        }
        filled
    }

    fn fill_line(&self, line: &str) -> String {
        let Some((before, rest)) = line.split_once("{{") else {
            return line.to_owned();
        };
        let end = rest.split_once("}}");
        match end.and_then(|(name, after)| Some((self.0.get(name)?, after))) {
            Some((value, after)) => format!("{before}{value}{}", self.fill_line(after)),
            None => format!("{before}{{{{{}", self.fill_line(rest)),
        }
    }
}

/// Words that readers of YAML 1.1, for example kubectl, do not read as strings.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// A string on one line, in quotes if it would be read as something else without them.
pub(super) fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/_.@:-".contains(c))
        && !text.ends_with(':')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// The fields of a mapping of strings, one a line.
pub(super) fn fields(mapping: &BTreeMap<String, String>) -> String {
    let mut fields = String::new();
    for (key, value) in mapping {
        let _ = writeln!(fields, "{}: {}", scalar(key), scalar(value));
    }
    fields
}

/// A string of JSON is a string of YAML, except for the characters that YAML 1.1 reads as line breaks or drops.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in serde_json::Value::from(text).to_string().chars() {
        match c {
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted
}

/// `text` with `spaces` before each line that is not empty.
pub(super) fn indent(text: &str, spaces: usize) -> String {
    let mut indented = String::new();
    for line in text.lines() {
        if !line.is_empty() {
            let _ = write!(indented, "{:spaces$}{line}", "");
        }
        indented.push('\n');
    }
    indented
}

/// What follows `key:` for a text of several lines: a literal block, indented by `spaces`, or a string in quotes if a
/// block cannot hold the text exactly.
pub(super) fn literal(text: &str, spaces: usize) -> String {
    let fits = |c: char| {
        c == '\n' || (!c.is_control() && c != '\u{feff}' && c != '\u{2028}' && c != '\u{2029}')
    };
    if !text.ends_with('\n') || text.ends_with("\n\n") || text == "\n" || !text.chars().all(fits) {
        return format!(" {}", quoted(text));
    }
    // The number is the indentation: the first line of the text may begin with spaces.
    format!(" |2\n{}", indent(text, spaces).trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_several_lines_is_indented_and_an_empty_one_leaves_no_line() {
        let values = Values::default()
            .with("name", "a{{block}}")
            .with("block", "x: 1\n\ny: 2\n")
            .with("none", "");
        let template = "## why\n{{name}}: '{{name}}{{block}}{{other}}'\n  ## why\n  {{block}}\n  {{none}}\nend: {}\n";
        let expected =
            "a{{block}}: 'a{{block}}x: 1\n\ny: 2\n{{other}}'\n  x: 1\n\n  y: 2\nend: {}\n";
        assert_eq!(values.fill(template), expected);
    }

    #[test]
    fn a_string_that_looks_like_something_else_is_quoted() {
        assert_eq!(scalar("untaint"), "untaint");
        let long = "/x".repeat(500);
        for text in [
            "True", "null", "1e3", "0x1", "12", "12:30", "no", "a:", "~", "", "a: b", "a #b",
            "a\nb", "\u{85}", "- a", "'", "\"", &long,
        ] {
            assert_eq!(scalar(text).lines().count(), 1, "{}", scalar(text));
            let read: serde_json::Value = serde_yaml::from_str(&scalar(text)).unwrap();
            assert_eq!(read, text);
        }
        assert_eq!(scalar("no"), "\"no\"");
    }

    /// kubectl would make a space of a line break.
    #[test]
    fn characters_that_yaml_1_1_reads_differently_are_escaped() {
        let text = "a\u{85}b\u{2028}c\u{2029}d\u{feff}e\n";
        let expected = r#""a\u0085b\u2028c\u2029d\ufeffe\n""#;
        assert_eq!(scalar(text), expected);
        assert_eq!(literal(text, 4), format!(" {expected}"));
    }

    #[test]
    fn a_literal_block_reads_back_as_the_same_text() {
        for text in [
            "a: 1\n",
            "  first line moved\na\n",
            "a\n\nb  \n",
            "# ö\n",
            "",
            "\n",
            "no end",
            "ends\n\n",
            "a\r\nb\r\n",
            "tab\there\n",
            "a\u{85}b\n",
            "\u{feff}a\n",
            " \n",
            "a\n  \n",
        ] {
            let yaml = format!("data:\n  config.yaml:{}\nend: 1\n", literal(text, 4));
            let read: serde_json::Value = serde_yaml::from_str(&yaml).unwrap();
            assert_eq!(read["data"]["config.yaml"], text, "{yaml}");
            let _: BTreeMap<String, serde_json::Value> = serde_yaml::from_str(&yaml).unwrap();
        }
    }
}
