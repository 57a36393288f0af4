//! `untaint check`: each gate once, and why it is what it is.

use std::io::{self, Write as _};
use std::time::Instant;

use anyhow::Context;
use tokio::sync::mpsc;

use super::Failure;
use crate::cli::{CheckArgs, Exit};
use crate::config::Configuration;
use crate::gate::Outcome;
use crate::gate::runner::Gates;

pub(super) async fn check(args: CheckArgs) -> Result<Exit, Failure> {
    let rows = evaluate(args.gates.configuration()?).await;
    let open = rows.iter().all(|row| row.outcome.is_open());
    io::stdout().write_all(table(&rows).as_bytes()).context("failed to print")?;
    Ok(if open { Exit::Done } else { Exit::NotReady })
}
