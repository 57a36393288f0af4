//! What the API server lets through of what the account may ask, and of what others may.

mod cel;
mod tenants;
mod yaml;

use super::{Manifests, RenderError};

pub use tenants::{Enforcement, MAY_TOLERATE, Tenants};

/// The policies against pods that slip past start-up taints, as far as they are asked for.
pub(super) fn documents(manifests: &Manifests) -> Result<Vec<String>, RenderError> {
    tenants::documents(manifests)
}
