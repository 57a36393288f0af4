//! `untaint check`: evaluates each gate once.

use tracing::error;

use super::{Failure, print};
use crate::cli::{ConfigOrGates, Exit};
use crate::gate::run;

const HEADER: [&str; 4] = ["RULE", "GATE", "STATE", "REASON"];

pub(super) async fn check(gates: ConfigOrGates) -> Result<Exit, Failure> {
    let node_name = gates.node_name.clone();
    let configuration = gates.configuration(None).await?;
    let mut rows = vec![HEADER.map(str::to_owned)];
    let mut all_open = true;
    for rule in &configuration.rules {
        for (gate, outcome) in run::evaluate_once(&rule.gates, node_name.as_deref()).await {
            all_open &= outcome.is_open();
            rows.push(
                [
                    &rule.name,
                    gate,
                    outcome.state().as_str(),
                    outcome.message(),
                ]
                .map(str::to_owned),
            );
        }
    }
    print(table(&rows)).await?;
    if all_open {
        return Ok(Exit::Done);
    }
    match configuration.gates_of_api_server() {
        gates if gates.is_empty() => error!("not ready: the table has the reasons"),
        gates => error!(
            gates,
            "not ready: check does not use the API server, and only the API server can open these gates, so check always \
             ends with code 3; look at /statusz of the agent, or use untaint run --once"
        ),
    }
    Ok(Exit::NotReady)
}

/// All columns but the last are as wide as their widest cell.
fn table(rows: &[[String; 4]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let (rule, gate, state) = (width(0), width(1), width(2));
    let line = |[first, second, third, last]: &[String; 4]| {
        format!("{first:rule$}  {second:gate$}  {third:state$}  {last}\n")
    };
    rows.iter().map(line).collect()
}
