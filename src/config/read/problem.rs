//! What is wrong with a text, and where.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// Line and column, both from 1 and in characters. `None`: the text as a whole.
    pub(super) place: Option<(u64, u64)>,
    /// Begins with the path of the field, if there is one: `rules[0].gates[1].name: is missing`.
    pub(super) message: String,
}

/// Everything that is wrong with one or more texts, or worth a warning, each from top to bottom and with its name, if it has
/// one. As an error, it is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<(Option<String>, Problem)>);

impl Problems {
    /// Those of each text.
    pub(super) fn new<'n>(
        texts: impl IntoIterator<Item = (Option<&'n str>, Vec<Problem>)>,
    ) -> Self {
        let texts = texts.into_iter().flat_map(|(name, mut problems)| {
            problems.sort_by_key(|problem| problem.place);
            let name = name.map(str::to_owned);
            problems
                .into_iter()
                .map(move |problem| (name.clone(), problem))
        });
        Self(texts.collect())
    }

    /// One problem of each of these files, as a whole.
    pub(crate) fn of_files(files: Vec<(String, String)>) -> Self {
        let place = None;
        let files = files.into_iter();
        Self(
            files
                .map(|(name, message)| (Some(name), Problem { place, message }))
                .collect(),
        )
    }
}

/// One line a problem: `FILE:12:5: rules[0].name: must …`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, problem)) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match (name, problem.place) {
                (Some(name), Some(_)) => write!(f, "{name}:")?,
                (Some(name), None) => write!(f, "{name}: ")?,
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
