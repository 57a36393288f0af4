//! A client for the parts of kube that want one.

use std::sync::Arc;

use http::{Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use tower::{BoxError, service_fn};

use super::{ApiError, ApiServer, whole};

impl ApiServer {
    /// A client whose requests go the way of all others: on their connection, with the credentials of the moment, within
    /// the same time. What goes wrong is an [`ApiError`] in a [`kube::Error`], see [`ApiError::from`].
    ///
    /// It is for what does not matter: no failure of it makes the requests of the main job connect anew.
    pub fn kube_client(self: Arc<Self>) -> Client {
        let service = service_fn(move |request: Request<Body>| {
            let api = Arc::clone(&self);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?.to_vec();
                let answer = api.send(Request::from_parts(head, body), whole).await;
                let answer = answer.inspect_err(|error| api.failed(error))?;
                Ok::<_, BoxError>(Response::new(Full::new(answer)))
            }
        });
        Client::new(service, "default")
    }
}

/// Of a client that was lent.
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
