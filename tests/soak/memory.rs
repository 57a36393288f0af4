//! The memory of an agent.

use std::fmt::{self, Display, Formatter};

use testkit::agent::Agent;

/// Its resident memory over time, in KiB.
#[derive(Default)]
pub(crate) struct Memory(Vec<usize>);

impl Memory {
    pub(crate) fn look(&mut self, agent: &Agent) {
        self.0.push(agent.resident().unwrap());
    }

    /// Fails if the memory grows by more than this after a fifth of the time, in KiB.
    pub(crate) fn assert_flat(&self, limit: usize) {
        let [warm, end] = self.highest();
        assert!(end <= warm + limit, "{self}: more than {limit} KiB more");
    }

    /// The highest value in the first fifth, and the highest value after it.
    fn highest(&self) -> [usize; 2] {
        let (begin, rest) = self.0.split_at(self.0.len().div_ceil(5));
        [begin, rest].map(|part| part.iter().copied().max().unwrap_or_default())
    }
}

impl Display for Memory {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [warm, end] = self.highest();
        write!(
            f,
            "resident: {warm} KiB in the first fifth, {end} KiB after it"
        )
    }
}
