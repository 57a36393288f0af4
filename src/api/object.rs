//! The parts of API objects that this program uses. The parser skips all others.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// An object that can be watched.
pub trait Object: DeserializeOwned + Send {
    fn metadata(&self) -> &Metadata;
}

/// The part of `metadata` that this program uses.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub name: String,
    /// An object with another uid is another object, even if the name is the same.
    pub uid: String,
    /// The versions of one resource compare as integers (KEP-5504).
    #[serde(deserialize_with = "integer")]
    pub resource_version: u64,
    #[serde(default, deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    pub creation_timestamp: Option<Time>,
    pub deletion_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "or_default")]
    pub owner_references: Vec<Owner>,
}

impl Metadata {
    /// The object that controls this one, such as the DaemonSet of a pod.
    pub fn controller(&self) -> Option<&Owner> {
        let mut owners = self.owner_references.iter();
        owners.find(|owner| owner.controller == Some(true))
    }
}

/// The part of an entry of `metadata.ownerReferences` that this program uses.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    api_version: String,
    pub kind: String,
    pub name: String,
    controller: Option<bool>,
}

impl Owner {
    /// Its API group; empty for the core group.
    pub fn group(&self) -> &str {
        let version = self.api_version.split_once('/');
        version.map_or("", |(group, _)| group)
    }
}

fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        serde::de::Error::custom(format!("resourceVersion {text:?} is not an integer"))
    })
}

/// The API may write an empty list or mapping as null.
pub(crate) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
