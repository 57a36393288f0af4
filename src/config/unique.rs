//! Names that may be used once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// The names so far, each with the line where it stands.
pub(super) struct Unique<N>(HashMap<N, u64>);

impl<N> Default for Unique<N> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<N: Eq + Hash> Unique<N> {
    /// Takes in a name that stands in `line`; the error is the line where the same name was first.
    pub(super) fn admit(&mut self, name: N, line: u64) -> Result<(), u64> {
        match self.0.entry(name) {
            Entry::Occupied(first) => Err(*first.get()),
            Entry::Vacant(place) => {
                place.insert(line);
                Ok(())
            }
        }
    }
}
