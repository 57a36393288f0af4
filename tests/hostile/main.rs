//! What somebody could do with a token of the agent, tried on the real API server with the manifests that the program
//! makes: nothing but the agent's own work on the one Node; what tenants could do to slip past the taint; and which
//! new Nodes get it. With `--nocapture`, tables of the requests.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the helpers of tests fail as tests do, and tables are for people"
)]

mod changes;
mod events;
mod installation;
mod large;
mod new_nodes;
mod nodes;
mod others;
mod owners;
mod renaming;
mod request;
mod self_check;
mod shared;
mod tenants;
mod tokens;
mod validations;
mod ways;
mod work;
