//! `untaint config`.

use super::{Failure, print, print_warnings, read_configuration};
use crate::cli::{ConfigCommand, Exit};
use crate::config;

pub(super) async fn config(command: ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Validate { files: paths } => {
            let files = read_configuration(&paths, None, config::read_files).await?;
            let (configuration, warnings) = config::parse_files(&files)?;
            print_warnings(&warnings.to_string()).await;
            let names = config::names(&paths);
            let files = match files.len() {
                1 => String::new(),
                several => format!("{several} files, "),
            };
            let gates = configuration.rules.iter().map(|rule| rule.gates.len());
            let gates = counted(gates.sum(), "gate");
            let rules = counted(configuration.rules.len(), "rule");
            print(format!("{names}: valid: {files}{rules}, {gates}\n")).await
        }
        ConfigCommand::Show { files } => {
            let configuration = read_configuration(&files, None, config::load).await?;
            print(config::show(&configuration)).await
        }
        ConfigCommand::Schema => print(config::schema::TEXT).await,
    }
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
