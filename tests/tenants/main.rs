//! What the policies that `untaint manifests` writes say to the pods of tenants, on the real API server.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail as tests do"
)]

mod exemptions;
mod node_names;
mod refusals;
mod scene;
mod scheduler;
mod templates;
mod tolerations;
mod trial;
mod updates;
