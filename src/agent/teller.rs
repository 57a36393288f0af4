//! The ways in which people are told of what happens.

use tracing::debug;

use crate::metrics::Counters;
use crate::notice::Notice;

/// Tells of what happens to rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Teller {
    counters: Counters,
}

impl Teller {
    pub(super) fn new(counters: Counters) -> Self {
        Self { counters }
    }

    /// `aloud`: where each telling costs a reader something, and not merely counted.
    pub(super) fn tell(&self, notice: &Notice, aloud: bool) {
        self.counters.count(notice);
        if aloud {
            notice.log();
        } else {
            debug!(?notice, "not told: it happens too often");
        }
    }
}
