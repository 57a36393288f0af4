//! A client for the parts of kube that need one.

use std::sync::Arc;

use http::{Method, Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use tower::{BoxError, service_fn};

use super::{ApiError, ApiServer, Verb, whole};

impl ApiServer {
    /// A client for kube's Event recorder, which creates Events and patches them. Its requests use the same connection,
    /// credentials and time-out as all others. A failure is an [`ApiError`] in a [`kube::Error`]: see [`ApiError::from`].
    ///
    /// Events are best effort: a failure does not make other requests reconnect.
    pub fn kube_client(self: Arc<Self>) -> Client {
        let service = service_fn(move |request: Request<Body>| {
            let api = Arc::clone(&self);
            async move {
                let verb = match *request.method() {
                    Method::POST => Verb::Create,
                    _ => Verb::Patch,
                };
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?.to_vec();
                let request = Request::from_parts(head, body);
                let answer = api.send(verb, request, whole).await;
                let answer = answer.and_then(|(origin, body)| origin.object(body));
                let answer = answer.inspect_err(|error| api.record(error))?;
                Ok::<_, BoxError>(Response::new(Full::new(answer)))
            }
        });
        Client::new(service, "default")
    }
}

/// An error of [`ApiServer::kube_client`].
impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Service(error) => match error.downcast() {
                Ok(error) => *error,
                Err(error) => Self::transport(error.as_ref()),
            },
            other => Self::Malformed(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::api::testing::unreachable;

    #[tokio::test]
    async fn an_event_is_counted_as_created_or_patched_and_its_failure_is_recorded() {
        let api = unreachable().await;
        let mut registry = Registry::default();
        api.traffic().register(&mut registry);
        let client = Arc::clone(&api).kube_client();
        for (method, verb) in [(Method::POST, "create"), (Method::PATCH, "patch")] {
            let request = Request::builder().method(method).uri("/api/v1/events");
            let answer = client.send(request.body(Body::empty()).unwrap()).await;
            let error = ApiError::from(answer.unwrap_err());
            assert!(matches!(error, ApiError::Transport(_)), "{error}");
            let recorded = api.last_failure().borrow().clone().unwrap();
            assert_eq!(recorded.message, error.to_string());
            let mut page = String::new();
            prometheus_text::encode(&mut page, &registry).unwrap();
            let line = format!(r#"untaint_api_requests_total{{verb="{verb}",code="error"}} 1"#);
            assert!(page.lines().any(|found| found == line), "{line} in {page}");
        }
    }
}
