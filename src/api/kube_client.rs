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
