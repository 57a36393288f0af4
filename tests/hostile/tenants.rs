//! What the policies against pods that slip past start-up taints say to tenants.

mod exemptions;
mod node_names;
mod refusals;
mod scene;
mod scheduler;
mod templates;
mod tolerations;
mod trial;
mod updates;

pub(crate) use scene::{Caller, Scene};
