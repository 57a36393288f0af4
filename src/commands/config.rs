//! `untaint config`.

use super::{Failure, print};
use crate::cli::{ConfigCommand, Exit};
use crate::config;

pub(super) fn config(command: &ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Validate { files } => {
            let errors: Vec<_> = files
                .iter()
                .filter_map(|file| config::load(file).err())
                .collect();
            if errors.is_empty() {
                return Ok(Exit::Done);
            }
            Err(Failure::Usage(
                errors
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("\n"),
            ))
        }
        ConfigCommand::Show { file } => {
            let configuration =
                config::load(file).map_err(|error| Failure::Usage(error.to_string()))?;
            print(&config::show(&configuration))
        }
        ConfigCommand::Schema => print(config::schema::TEXT),
    }
}
