//! A text that is read, and what is found to be wrong with it.

use std::cell::RefCell;

use super::problem::Problem;

/// A text, with what all cursors into it share.
pub(crate) struct Source<'t> {
    /// What messages call it.
    pub(super) name: Option<&'t str>,
    pub(super) text: &'t str,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(name: Option<&'t str>, text: &'t str) -> Self {
        Self {
            name,
            text,
            problems: RefCell::default(),
            warnings: RefCell::default(),
        }
    }

    pub(super) fn report(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    pub(super) fn warn(&self, warning: Problem) {
        self.warnings.borrow_mut().push(warning);
    }

    /// Its name and what has been reported.
    pub(super) fn take_problems(&self) -> (Option<&'t str>, Vec<Problem>) {
        (self.name, self.problems.take())
    }

    /// Its name and the warnings.
    pub(super) fn take_warnings(&self) -> (Option<&'t str>, Vec<Problem>) {
        (self.name, self.warnings.take())
    }
}
