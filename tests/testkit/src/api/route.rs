//! What a request asks for.

use http::Method;
use http::request::Parts;

use super::status::Status;

/// What is done to Nodes, as an audit log names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// One Node.
    Get,
    /// Those that the field selector selects.
    List,
    /// Their changes.
    Watch,
    /// A new Node.
    Create,
    /// A JSON Patch.
    Patch,
    /// The end of a Node.
    Delete,
    /// Not about Nodes, or nothing that the stand-in does.
    Other,
}

/// A request's verb, Node and parameters.
pub(super) struct Route {
    pub(super) verb: Verb,
    /// Empty for the verbs on all Nodes.
    pub(super) name: String,
    pub(super) parameters: Parameters,
}

impl Route {
    pub(super) fn of(request: &Parts) -> Self {
        let parameters = Parameters::of(request.uri.query().unwrap_or_default());
        let path = request.uri.path();
        let name = path.strip_prefix("/api/v1/nodes/").unwrap_or_default();
        let on_all = path == "/api/v1/nodes";
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

    /// Go's spelling of a boolean, as clients send it.
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

    /// The one field selector that the stand-in knows: `metadata.name=NAME`.
    pub(super) fn node_name(&self) -> Result<Option<String>, Status> {
        match self.get("fieldSelector") {
            None | Some("") => Ok(None),
            Some(selector) => selector
                .strip_prefix("metadata.name=")
                .map(|name| Some(name.to_owned()))
                .ok_or_else(|| Status::bad_request("only metadata.name=NAME can be selected")),
        }
    }
}
