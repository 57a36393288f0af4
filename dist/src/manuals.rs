//! The pages of the manual, and the completion for shells.

use anyhow::Result;
use clap::{Command, CommandFactory as _};
use clap_complete::{Generator as _, Shell, generate};
use clap_mangen::Man;
use untaint::cli::Cli;

use crate::files::Files;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

pub(crate) fn add(files: &mut Files) -> Result<()> {
    // Each command would have a second page as a part of `help`.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    pages(files, &command)?;
    for shell in SHELLS {
        let mut script = Vec::new();
        generate(shell, &mut Cli::command(), "untaint", &mut script);
        files.add(format!("completion/{}", shell.file_name("untaint")), script);
    }
    Ok(())
}

fn pages(files: &mut Files, command: &Command) -> Result<()> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    files.add(format!("man/{}", page.get_filename()), text);
    command
        .get_subcommands()
        .try_for_each(|command| pages(files, command))
}
