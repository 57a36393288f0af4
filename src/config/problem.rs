//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// One fault in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// Line and column, both from 1 and in characters. `None`: the text as a whole.
    place: Option<(u64, u64)>,
    /// Such as `rules[0].gates[1].name`; empty for the text as a whole.
    path: String,
    message: String,
}

impl Problem {
    pub(super) fn new(place: Option<(u64, u64)>, path: &str, message: String) -> Self {
        Self {
            place,
            path: path.to_owned(),
            message,
        }
    }

    /// A fault of the text as a whole.
    pub(super) fn of_the_whole(message: impl Into<String>) -> Self {
        Self::new(None, "", message.into())
    }
}

/// `12:5: rules[0].name: must …`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong with a text, from top to bottom; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.place);
        Self(problems)
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// One line a problem.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A file that is not a valid configuration: it could not be read, or its text has problems.
#[derive(Debug)]
pub struct LoadError {
    path: PathBuf,
    problems: Problems,
}

impl LoadError {
    pub(super) fn new(path: &Path, problems: Problems) -> Self {
        Self {
            path: path.to_owned(),
            problems,
        }
    }
}

/// One line a problem, each with the file's name: `FILE:12:5: rules[0].name: must …`.
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.path.display();
        for (index, problem) in self.problems.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            let gap = if problem.place.is_none() { " " } else { "" };
            write!(f, "{separator}{file}:{gap}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}
