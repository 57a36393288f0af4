//! `untaint config`.

use super::{Failure, load, print};
use crate::cli::{ConfigCommand, Exit};
use crate::config;

pub(super) async fn config(command: ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Validate { files } => {
            let mut errors = Vec::new();
            for file in files {
                if let Err(Failure::Usage(error)) = load(&file, None, config::load).await {
                    errors.push(error);
                }
            }
            if errors.is_empty() {
                return Ok(Exit::Done);
            }
            Err(Failure::Usage(errors.join("\n")))
        }
        ConfigCommand::Show { file } => {
            let configuration = load(&file, None, config::load).await?;
            print(config::show(&configuration)).await
        }
        ConfigCommand::Schema => print(config::schema::TEXT).await,
    }
}
