//! The parts of API objects that decide something here; all else is skipped while it is parsed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// An object that can be watched.
pub trait Object: DeserializeOwned + Send {
    /// Its `metadata`.
    fn metadata(&self) -> &Metadata;
}

/// The part of `metadata` that decides something here.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Another uid is another object, whatever its name.
    pub uid: String,
    /// Those of one resource compare as integers (KEP-5504).
    #[serde(deserialize_with = "integer")]
    pub resource_version: u64,
    /// Empty if there are none.
    #[serde(default, deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// When it was made.
    pub creation_timestamp: Option<Time>,
    /// Since when it is on its way out.
    pub deletion_timestamp: Option<Time>,
}

fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        serde::de::Error::custom(format!("resourceVersion {text:?} is not an integer"))
    })
}

/// The API may write a list or a mapping that is empty as null.
pub(crate) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
