//! Values of command-line flags, in the forms that the file has for them. Errors begin with `must be`.

use std::path::PathBuf;
use std::time::Duration;

use super::duration::{self, DURATION};
use crate::syntax::{
    ABSOLUTE_PATH, DNS_LABEL, DNS_SUBDOMAIN, IMAGE, NETWORK_NAME, SELINUX_TYPE, Syntax, shown,
};

/// `metadata.name` of a Node.
pub fn parse_node_name(text: &str) -> Result<String, String> {
    of_form(&DNS_SUBDOMAIN, text)
}

/// `metadata.name` of a Namespace.
pub fn parse_namespace(text: &str) -> Result<String, String> {
    of_form(&DNS_LABEL, text)
}

/// `metadata.name` of a ServiceAccount.
pub fn parse_service_account(text: &str) -> Result<String, String> {
    of_form(&DNS_SUBDOMAIN, text)
}

/// The name of a container image, with or without tag and digest.
pub fn parse_image(text: &str) -> Result<String, String> {
    of_form(&IMAGE, text)
}

/// The type of an SELinux context.
pub fn parse_selinux_type(text: &str) -> Result<String, String> {
    of_form(&SELINUX_TYPE, text)
}

/// The `name` of a CNI network.
pub fn parse_network(text: &str) -> Result<String, String> {
    of_form(&NETWORK_NAME, text)
}

/// An absolute path.
pub fn parse_path(text: &str) -> Result<PathBuf, String> {
    of_form(&ABSOLUTE_PATH, text).map(PathBuf::from)
}

/// A duration such as `90s` or `1m30s`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .ok_or_else(|| format!("must be {}, not {}", DURATION.expected, shown(text)))
}

fn of_form(syntax: &Syntax, text: &str) -> Result<String, String> {
    syntax.check(text).map(|()| text.to_owned())
}
