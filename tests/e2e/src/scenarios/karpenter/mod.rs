//! Scenarios with Karpenter itself. The machines that it launches exist only as objects, and each has an agent that is a
//! process beside the others.

mod history;
mod machines;
mod measures;
pub(super) mod nodes;
pub(super) mod pools;
mod program;
