//! A text that is read, and what is found to be wrong with it.

use std::cell::RefCell;

use super::problem::Problem;

/// A text, with what all cursors into it share.
pub(crate) struct Source<'t> {
    /// What messages call it.
    pub(super) name: Option<&'t str>,
    pub(super) text: &'t str,
    problems: RefCell<Vec<Problem>>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(name: Option<&'t str>, text: &'t str) -> Self {
        let problems = RefCell::default();
        Self {
            name,
            text,
            problems,
        }
    }

    pub(super) fn report(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Its name and what has been reported.
    pub(super) fn take_problems(&self) -> (Option<&'t str>, Vec<Problem>) {
        (self.name, self.problems.take())
    }
}
