use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::ProbeHandler;
use crate::config::read::Cursor;
use crate::syntax::{ABSOLUTE_PATH, Form, SEARCHED_TEXT};

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
    /// It must be a regular file with at least this size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "u32", range(min = 1, max = u32::MAX))]
    pub min_bytes: Option<u32>,
    /// It must be a regular file with this text in its first MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", transform = Form(&SEARCHED_TEXT))]
    pub contains: Option<String>,
}

impl FileCheck {
    /// With the defaults of all other fields.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            newer_than_boot: false,
            min_bytes: None,
            contains: None,
        }
    }
}

pub(super) fn read(cursor: &Cursor<'_>) -> Option<ProbeHandler> {
    cursor.mapping("file", |fields| {
        Some(ProbeHandler::File(FileCheck {
            path: fields.required("path", Cursor::absolute_path),
            newer_than_boot: fields.flag("newerThanBoot"),
            min_bytes: fields.optional("minBytes", |size| size.whole_number(&(1..=u32::MAX))),
            // No message shows what is in a file.
            contains: fields.optional("contains", |text| text.secret().text(&SEARCHED_TEXT)),
        }))
    })
}
