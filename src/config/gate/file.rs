use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::ProbeHandler;
use crate::config::read::Cursor;
use crate::syntax::{ABSOLUTE_PATH, Form};

/// A file, directory or socket that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileCheck {
    /// A file, directory or socket. A symbolic link counts as what it points to.
    #[schemars(transform = Form(&ABSOLUTE_PATH))]
    pub path: PathBuf,
    /// The file must have been modified since the machine booted.
    #[schemars(default)]
    pub newer_than_boot: bool,
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ProbeHandler> {
    cursor.mapping("file", |fields| {
        Some(ProbeHandler::File(FileCheck {
            path: fields.required("path", Cursor::absolute_path),
            newer_than_boot: fields.flag("newerThanBoot"),
        }))
    })
}
