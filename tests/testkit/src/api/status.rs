//! The `Status` objects that the API server returns instead of an object.

use serde_json::{Map, Value, json};

use super::object::Id;

/// A failure, as its code and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) body: Value,
}

/// The last event of a watch that cannot continue.
pub(super) fn error_event(status: &Status) -> Value {
    json!({"type": "ERROR", "object": status.body})
}

impl Status {
    pub(super) fn new(code: u16, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        });
        Self { code, body }
    }

    pub(super) fn with_details(mut self, details: Value) -> Self {
        self.body["details"] = details;
        self
    }

    fn about(self, id: &Id) -> Self {
        self.with_details(id.details())
    }

    /// Failures for which the server does not know the object have empty details.
    fn generic(code: u16, reason: &str, message: &str) -> Self {
        Self::new(code, reason, message).with_details(Value::Object(Map::new()))
    }

    /// The failure of a man in the middle.
    pub(super) fn bad_gateway(error: &anyhow::Error) -> Self {
        Self::new(502, "BadGateway", &format!("{error:#}"))
    }

    pub(super) fn not_found(id: &Id) -> Self {
        let message = format!("{} not found", id.of_resource());
        Self::new(404, "NotFound", &message).about(id)
    }

    pub(super) fn already_exists(id: &Id) -> Self {
        let message = format!("{} already exists", id.of_resource());
        Self::new(409, "AlreadyExists", &message).about(id)
    }

    pub(super) fn conflict(id: &Id) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {}: the object has been modified; \
             please apply your changes to the latest version and try again",
            id.of_resource()
        );
        Self::new(409, "Conflict", &message).about(id)
    }

    /// A failed validation, also by an admission policy, names the object and the error.
    pub(super) fn denied(code: u16, reason: &str, id: &Id, message: &str) -> Self {
        let whole = format!("{} is forbidden: {message}", id.of_resource());
        let mut details = id.details();
        details["causes"] = json!([{"message": message}]);
        Self::new(code, reason, &whole).with_details(details)
    }

    pub(super) fn immutable(id: &Id, field: &str, value: &Value) -> Self {
        let cause = format!("Invalid value: {value}: field is immutable");
        let message = format!("{} is invalid: {field}: {cause}", id.of_kind());
        let mut details = id.details_of_kind();
        details["causes"] =
            json!([{"reason": "FieldValueInvalid", "message": cause, "field": field}]);
        Self::new(422, "Invalid", &message).with_details(details)
    }

    /// The answer to a failed `test`, and to a path that does not exist.
    pub(super) fn patch_failed() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::generic(422, "Invalid", message)
    }

    pub(super) fn bad_request(message: &str) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(super) fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::generic(404, "NotFound", message)
    }

    pub(super) fn unsupported_media_type() -> Self {
        Self::generic(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }

    /// The answer to `ListOptions` that a watch must not have.
    pub(super) fn forbidden_option(field: &str, message: &str) -> Self {
        let cause = format!("Forbidden: {message}");
        let whole = format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {cause}");
        Self::new(422, "Invalid", &whole).with_details(json!({
            "group": "meta.k8s.io",
            "kind": "ListOptions",
            "causes": [{"reason": "FieldValueForbidden", "message": cause, "field": field}],
        }))
    }

    /// The answer to a watch that starts before `oldest`.
    pub(super) fn expired(version: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {version} ({oldest})");
        Self::new(410, "Expired", &message)
    }
}
