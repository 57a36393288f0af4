//! The ways in which people are told of what happens.

use tracing::debug;

use crate::notice::Notice;

/// Tells of what happens to rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Teller {}

impl Teller {
    /// `aloud`: where each telling costs a reader something, and not merely counted.
    #[expect(clippy::unused_self, reason = "metrics and Events come here")]
    pub(super) fn tell(&self, notice: &Notice, aloud: bool) {
        if aloud {
            notice.log();
        } else {
            debug!(?notice, "not told: it happens too often");
        }
    }
}
