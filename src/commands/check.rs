//! `untaint check`: each gate once, and why it is what it is.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anyhow::Context;
use tokio::task::JoinSet;

use super::Failure;
use crate::cli::{CheckArgs, Exit};
use crate::config::{Configuration, Gate, Probe};
use crate::gate::{Outcome, runner};

pub(super) async fn check(args: CheckArgs) -> Result<Exit, Failure> {
    let configuration = args.gates.configuration()?;
    let rows = evaluate(&configuration).await.context("an evaluation was lost")?;
    let open = configuration.rules.iter().flat_map(|rule| &rule.gates).all(|gate| is_open(gate, &rows));
    io::stdout().write_all(table(&rows).as_bytes()).context("failed to print")?;
    Ok(if open { Exit::Done } else { Exit::NotReady })
}

struct Row {
    rule: String,
    gate: String,
    probe: Probe,
    outcome: Outcome,
}
