//! What is wrong with a text, and where.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// Line and column, both from 1 and in characters. `None`: the text as a whole.
    pub(super) place: Option<(u64, u64)>,
    /// Begins with the path of the field, if there is one: `rules[0].gates[1].name: is missing`.
    pub(super) message: String,
}

/// Everything that is wrong with a text or a file, or worth a warning, from top to bottom. As an error, it is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    file: Option<PathBuf>,
    problems: Vec<Problem>,
}

impl Problems {
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.place);
        Self {
            file: None,
            problems,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// One problem of the text as a whole.
    pub(crate) fn of_the_whole(message: String) -> Self {
        let place = None;
        Self::new(vec![Problem { place, message }])
    }

    /// The same, with the name of the file in each line.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self {
            file: Some(path.to_owned()),
            ..self
        }
    }
}

/// One line a problem: `FILE:12:5: rules[0].name: must …`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match (&self.file, problem.place) {
                (Some(file), Some(_)) => write!(f, "{}:", file.display())?,
                (Some(file), None) => write!(f, "{}: ", file.display())?,
                (None, _) => {}
            }
            if let Some((line, column)) = problem.place {
                write!(f, "{line}:{column}: ")?;
            }
            f.write_str(&problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
