//! A reader of Markdown for the tests.

use std::fs;
use std::path::PathBuf;

pub(crate) struct Document {
    pub(crate) path: PathBuf,
    /// All lines outside code blocks.
    pub(crate) prose: String,
    pub(crate) blocks: Vec<Block>,
}

/// A code block between fences.
pub(crate) struct Block {
    pub(crate) language: String,
    /// `FILE:LINE` of its fence.
    pub(crate) place: String,
    /// Without the fence's indentation.
    pub(crate) code: String,
}

impl Document {
    pub(crate) fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap();
        let (mut prose, mut blocks) = (String::new(), Vec::new());
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let Some(language) = line.trim_start().strip_prefix("```") else {
                prose += line;
                prose.push('\n');
                continue;
            };
            let place = format!("{}:{}", path.display(), index + 1);
            let indentation = line.len() - line.trim_start().len();
            let mut code = String::new();
            loop {
                match lines.next() {
                    Some((_, line)) if line.trim() == "```" => break,
                    Some((_, line)) => code += line.get(indentation..).unwrap_or_default(),
                    None => panic!("{place}: the fence is not closed"),
                }
                code.push('\n');
            }
            blocks.push(Block {
                language: language.into(),
                place,
                code,
            });
        }
        Self {
            path,
            prose,
            blocks,
        }
    }
}

/// The anchor of a heading, as GitHub writes it: lower case, hyphens for blanks, no punctuation.
pub(crate) fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let title = title.replace(' ', "-");
    title.replace(|c: char| !c.is_alphanumeric() && c != '-', "")
}
