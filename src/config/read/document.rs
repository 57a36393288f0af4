//! Reads a text, and explains problems whose cause is in its lines.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::cursor::{Cursor, Source};
use super::problem::{Problem, Problems};
use super::tree;

/// Reads a text with `read`.
pub(crate) fn document<T>(
    text: &str,
    read: impl FnOnce(&Cursor<'_>) -> Option<T>,
) -> Result<T, Problems> {
    let node = match tree::read(text) {
        Ok(node) => node,
        Err(problem) => {
            let problem = tab(text, &problem).unwrap_or(problem);
            return Err(Problems::new(with_templates(text, vec![problem], 1)));
        }
    };
    let source = Source {
        text,
        problems: RefCell::default(),
    };
    let value = read(&Cursor::root(&source, &node));
    let problems = source.problems.take();
    match value {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(Problems::new(with_templates(text, problems, 0))),
    }
}

/// The tab in the indentation that the parser stumbles over at `problem`, or in the line after it.
fn tab(text: &str, problem: &Problem) -> Option<Problem> {
    let (line, _) = problem.place?;
    let skipped = usize::try_from(line).ok()?.checked_sub(1)?;
    let near = (line..).zip(text.lines().skip(skipped).take(2));
    let mut tabs = near.filter_map(|(line, content)| {
        let spaces = content.bytes().take_while(|byte| *byte == b' ').count();
        let is_tab = content.as_bytes().get(spaces) == Some(&b'\t');
        Some((line, is_tab.then(|| u64::try_from(spaces + 1).ok())??))
    });
    Some(Problem {
        place: Some(tabs.next()?),
        message: "the line is indented with a tab: use spaces".into(),
    })
}

/// Adds a hint to problems that may come from templates of Helm or `envsubst`. The template is in the line of the problem or
/// at most `around` lines from it. Only the first problem of a line has the hint.
fn with_templates(text: &str, mut problems: Vec<Problem>, around: u64) -> Vec<Problem> {
    let numbered = (1..).zip(text.lines());
    let templates = numbered.filter_map(|(line, content)| content.contains("{{").then_some(line));
    let templates: BTreeSet<u64> = templates.collect();
    let mut explained = BTreeSet::new();
    for problem in &mut problems {
        let Some((line, _)) = problem.place else {
            continue;
        };
        let near = line.saturating_sub(around)..=line.saturating_add(around);
        let mark = if problem.message.contains("${") {
            "${"
        } else if templates.range(near).next().is_some() {
            "{{"
        } else {
            continue;
        };
        if explained.insert(line) {
            let hint = ["; if ", mark, " begins a template here, render it first"].concat();
            problem.message.push_str(&hint);
        }
    }
    problems
}
