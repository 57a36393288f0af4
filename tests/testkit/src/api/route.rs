//! The verb and the objects of a request.

use http::Method;
use http::request::Parts;

use super::object::{Resource, Selection};
use super::status::Status;

/// The verb of a request, with the name of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// One of them.
    Get,
    /// Those that the field selector selects.
    List,
    /// Their changes.
    Watch,
    /// A new one.
    Create,
    /// A JSON Patch.
    Patch,
    /// The end of one.
    Delete,
    /// A request that the stand-in does not know.
    Other,
}

/// The verb, the objects and the parameters of a request.
pub(super) struct Route {
    pub(super) verb: Verb,
    /// `None` if the stand-in has no such kind.
    pub(super) resource: Option<Resource>,
    /// Empty for the verbs on all objects.
    pub(super) name: String,
    pub(super) parameters: Parameters,
}

impl Route {
    pub(super) fn of(request: &Parts) -> Self {
        let parameters = Parameters::of(request.uri.query().unwrap_or_default());
        let (resource, rest) = Resource::of(request.uri.path()).unzip();
        let name = rest
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or_default();
        let on_all = rest == Some("");
        let on_one = !name.is_empty() && !name.contains('/');
        let verb = match request.method {
            Method::GET if on_all && parameters.flag("watch") => Verb::Watch,
            Method::GET if on_all => Verb::List,
            Method::GET if on_one => Verb::Get,
            Method::POST if on_all => Verb::Create,
            Method::PATCH if on_one => Verb::Patch,
            Method::DELETE if on_one => Verb::Delete,
            _ => Verb::Other,
        };
        Self {
            verb,
            resource,
            name: name.to_owned(),
            parameters,
        }
    }
}

/// The query.
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn of(query: &str) -> Self {
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The spellings of a boolean in Go, as clients send it.
    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    /// Missing and empty are the same.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| Status::bad_request(&format!("{name} is no number"))),
        }
    }

    /// From the only field selector that the stand-in knows: `metadata.name=NAME`.
    pub(super) fn selection(&self, resource: Resource) -> Result<Selection, Status> {
        let name = match self.get("fieldSelector") {
            None | Some("") => None,
            Some(selector) => {
                let name = selector.strip_prefix("metadata.name=");
                let only = "only metadata.name=NAME can be selected";
                Some(name.ok_or_else(|| Status::bad_request(only))?.to_owned())
            }
        };
        Ok(Selection { resource, name })
    }
}
