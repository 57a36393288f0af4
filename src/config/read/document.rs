//! Reads texts, and explains problems whose cause is in their lines.

use std::collections::BTreeSet;

use super::cursor::Cursor;
use super::problem::{Problem, Problems};
use super::source::Source;
use super::tree::{self, MAX_SIZE, Node};

/// Reads texts that belong together with `read`, which gets those whose syntax is right. Also returns what is valid and worth
/// a warning.
pub(crate) fn documents<T>(
    sources: &[Source<'_>],
    read: impl FnOnce(&[Cursor<'_>]) -> Option<T>,
) -> Result<(T, Problems), Problems> {
    let trees = trees(sources);
    let roots = sources.iter().zip(&trees);
    let roots = roots.filter_map(|(source, node)| Some(Cursor::root(source, node.as_ref()?)));
    let value = read(&roots.collect::<Vec<_>>());
    let problems = sources.iter().zip(&trees).map(|(source, node)| {
        let (name, problems) = source.take_problems();
        // Those of the syntax can come from the line before or after.
        let around = u64::from(node.is_none());
        (name, with_templates(source.text, problems, around))
    });
    let problems: Vec<_> = problems.collect();
    match value {
        Some(value) if problems.iter().all(|(_, of_one)| of_one.is_empty()) => {
            let warnings = sources.iter().map(Source::take_warnings);
            Ok((value, Problems::new(warnings)))
        }
        _ => Err(Problems::new(problems)),
    }
}

/// Reads one YAML document in each text. `None` stands for a text with a problem of its syntax, and for those after the
/// text with which all are too large.
fn trees(sources: &[Source<'_>]) -> Vec<Option<Node>> {
    let mut total = 0;
    let trees = sources.iter().map(|source| {
        if total > MAX_SIZE {
            return None;
        }
        let node = tree::read(source.text)
            .map_err(|problem| source.report(tab(source.text, &problem).unwrap_or(problem)));
        total += node.as_ref().map_or(0, tree::size);
        if total > MAX_SIZE {
            source.report(Problem {
                place: None,
                message: format!(
                    "has more than {MAX_SIZE} values together with the files before it"
                ),
            });
        }
        node.ok()
    });
    trees.collect()
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

/// Adds a hint to problems that may come from templates of Helm, Jinja or `envsubst`. The template is in the line of the
/// problem or at most `around` lines from it. Only the first problem of a line has the hint.
fn with_templates(text: &str, mut problems: Vec<Problem>, around: u64) -> Vec<Problem> {
    let lines_with = |mark: &str| -> BTreeSet<u64> {
        let numbered = (1..).zip(text.lines());
        let lines = numbered.filter(|(_, content)| content.contains(mark));
        lines.map(|(line, _)| line).collect()
    };
    let marks = ["{{", "{%", "${"].map(|mark| (mark, lines_with(mark)));
    let mut explained = BTreeSet::new();
    for problem in &mut problems {
        let Some((line, _)) = problem.place else {
            continue;
        };
        let near = line.saturating_sub(around)..=line.saturating_add(around);
        // A value of another field in the line may be what a program gets.
        let may_be_cause =
            |mark: &str| mark != "${" || around > 0 || problem.message.contains(mark);
        let mut marks = marks.iter();
        let found = marks
            .find(|(mark, lines)| may_be_cause(mark) && lines.range(near.clone()).next().is_some());
        if let Some((mark, _)) = found
            && explained.insert(line)
        {
            let hint = ["; if ", mark, " begins a template here, render it first"].concat();
            problem.message.push_str(&hint);
        }
    }
    problems
}
