//! `untaint config`.

use super::{Failure, print, read_configuration};
use crate::cli::{ConfigCommand, Exit};
use crate::config;

pub(super) async fn config(command: ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Validate { files } => {
            let mut errors = Vec::new();
            for file in files {
                match read_configuration(&file, None, config::load).await {
                    Ok(_) => {}
                    Err(Failure::Usage(error)) => errors.push(error),
                    Err(other) => return Err(other),
                }
            }
            if errors.is_empty() {
                return Ok(Exit::Done);
            }
            Err(Failure::Usage(errors.join("\n")))
        }
        ConfigCommand::Show { file } => {
            let configuration = read_configuration(&file, None, config::load).await?;
            print(config::show(&configuration)).await
        }
        ConfigCommand::Schema => print(config::schema::TEXT).await,
    }
}
