//! `untaint config`.

use std::path::Path;

use super::{Failure, print, print_error, read_configuration};
use crate::cli::{ConfigCommand, Exit};
use crate::config::{self, Problems};

pub(super) async fn config(command: ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Validate { files } => {
            let mut errors = Vec::new();
            for file in files {
                match read_configuration(&file, None, check).await {
                    Ok(Some(warnings)) => print_error(warnings).await,
                    Ok(None) => {}
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

/// Reads a file for its problems, and returns the warnings about it.
fn check(path: &Path) -> Result<Option<String>, Problems> {
    let text = config::read(path)?;
    config::parse_file(path, &text)?;
    Ok(config::warnings(path, &text).map(|warnings| warnings.to_string()))
}
