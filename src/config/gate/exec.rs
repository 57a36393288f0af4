use std::iter::{once, repeat};

use schemars::JsonSchema;
use serde::Serialize;

use super::ProbeHandler;
use crate::config::read::Cursor;
use crate::syntax::{ABSOLUTE_PATH, ARGUMENT, Each};

/// A program that runs without a shell. Exit code 0 opens the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Exec {
    /// The program's absolute path, then its arguments.
    #[schemars(length(min = 1), transform = Each(&ARGUMENT), extend("prefixItems" = [ABSOLUTE_PATH.schema()]))]
    pub command: Vec<String>,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ProbeHandler> {
    // The program is secret too, because it may be a whole command by mistake.
    cursor.secret().mapping("exec", |fields| {
        let mut forms = once(&ABSOLUTE_PATH).chain(repeat(&ARGUMENT));
        Some(ProbeHandler::Exec(Exec {
            command: fields.required("command", |command| {
                command.filled_list(|argument| argument.text(forms.next()?))
            }),
        }))
    })
}
