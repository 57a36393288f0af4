//! The API server: one client, its time-outs, and the meaning of answers.
//!
//! Callers retry and pace themselves. The client sends a request again only if the server refused its credentials and the
//! files have other ones.

mod connect;
mod credentials;
mod error;
mod foreign;
mod kube_client;
pub mod object;
mod page;
mod resolver;
mod stream;
#[cfg(test)]
pub(crate) mod testing;
pub mod traffic;
mod transport;
pub mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use kube::core::request;
use serde::de::DeserializeOwned;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, timeout_at};

use crate::incident::Incident;
pub use credentials::Source;
use credentials::{Credentials, InUse};
pub use error::ApiError;
use foreign::Origin;
pub use stream::Lines;
pub use traffic::Verb;
use traffic::{End, Traffic};
use watch::ListMethod;

/// From sending a request to the last byte of its answer; for a watch, to its answer's headers.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// In bytes. Larger than any object that etcd stores (1.5 MiB by default, 2 MiB in a request).
const MAX_ANSWER: usize = 8 << 20;

/// The API server as this process sees it. Where the server speaks HTTP/2, one connection serves all requests.
pub struct ApiServer {
    credentials: Arc<Credentials>,
    list_method: Mutex<ListMethod>,
    traffic: Traffic,
    last_failure: Sender<Option<Incident>>,
}

impl ApiServer {
    /// Reads the credentials once, so that a bad kubeconfig is found at the start. Does not connect.
    pub async fn new(source: Source) -> Result<Self, ApiError> {
        let last_failure = Sender::default();
        let credentials = Credentials::new(source, last_failure.clone()).await?;
        Ok(Self {
            credentials: Arc::new(credentials),
            list_method: Mutex::new(ListMethod::Streaming),
            traffic: Traffic::default(),
            last_failure,
        })
    }

    pub fn url(&self) -> Uri {
        self.credentials.url()
    }

    /// The uid of the pod to which the ServiceAccount token is bound, as the token has it.
    pub fn own_pod(&self) -> Option<String> {
        self.credentials.own_pod()
    }

    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The last failure of any request.
    pub fn last_failure(&self) -> Receiver<Option<Incident>> {
        self.last_failure.subscribe()
    }

    /// Completes as soon as the credentials differ from those at the time of this call. Use it to wait after an error that
    /// [refuses the credentials](ApiError::refuses_credentials): it reads their files once a second.
    pub fn renewed(&self) -> impl Future<Output = ()> + use<> {
        self.credentials.renewed()
    }

    /// Sends `request` and reads its answer as a `T`.
    pub async fn request<T: DeserializeOwned>(
        &self,
        verb: Verb,
        request: Request<Vec<u8>>,
    ) -> Result<T, ApiError> {
        let answer = self.request_best_effort(verb, request).await;
        answer.inspect_err(|error| self.reconnect_after(error))
    }

    /// Like [`Self::request`], for work that may fail: a failure does not make other requests reconnect.
    pub async fn request_best_effort<T: DeserializeOwned>(
        &self,
        verb: Verb,
        request: Request<Vec<u8>>,
    ) -> Result<T, ApiError> {
        let answer = self.request_unrecorded(verb, request).await;
        answer.inspect_err(|error| self.record(error))
    }

    /// Like [`Self::request_best_effort`], for requests that the server is expected to refuse: a failure does not become
    /// the [last failure](Self::last_failure).
    pub async fn request_unrecorded<T: DeserializeOwned>(
        &self,
        verb: Verb,
        request: Request<Vec<u8>>,
    ) -> Result<T, ApiError> {
        let (origin, body) = self.send(verb, request, whole).await?;
        serde_json::from_slice(&body).map_err(|error| origin.error(&body, &error))
    }

    /// Starts a watch. Only the start has a time-out: the first line may take any time. The refusal of a streaming list
    /// does not become the [last failure](Self::last_failure): many servers refuse it all the time.
    pub async fn watch(&self, request: Request<Vec<u8>>) -> Result<Lines, ApiError> {
        let lines = self.send(Verb::Watch, request, lines).await;
        lines.inspect_err(|error| {
            if !error.refuses_streaming_list() {
                self.record(error);
            }
            self.reconnect_after(error);
        })
    }

    fn list_method(&self) -> MutexGuard<'_, ListMethod> {
        self.list_method
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, watches begin with `method` or a later one.
    fn fall_back_to(&self, method: ListMethod) {
        let mut current = self.list_method();
        *current = method.max(*current);
    }

    fn record(&self, error: &ApiError) {
        let incident = Incident::now(error.to_string());
        self.last_failure.send_replace(Some(incident));
    }

    /// A connection that failed may be dead without knowing it, and is not used again.
    fn reconnect_after(&self, error: &ApiError) {
        if let ApiError::Transport(_) | ApiError::Certificate(_) = error {
            self.credentials.reconnect();
        }
    }

    /// Sends the request, and returns the answer as `read` reads it. If the server refuses the credentials, reads them again, and sends the
    /// request again if they differ.
    async fn send<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        verb: Verb,
        request: Request<Vec<u8>>,
        read: fn(Response<Body>) -> F,
    ) -> Result<T, ApiError> {
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let mut used = self.credentials.for_request().await;
        loop {
            let sent = send_once(&used, request.clone(), read);
            let answer = self.count(verb, deadline, sent).await;
            if !answer.as_ref().is_err_and(ApiError::refuses_credentials) {
                return answer;
            }
            match self.credentials.replace(&used).await {
                Some(others) => used = others,
                None => return answer,
            }
        }
    }

    /// Ends `exchange` at the `deadline`, and counts it as one request.
    async fn count<T>(
        &self,
        verb: Verb,
        deadline: Instant,
        exchange: impl Future<Output = Result<(u16, T), ApiError>>,
    ) -> Result<T, ApiError> {
        let mut counted = self.traffic.begin(verb);
        let (end, result) = match timeout_at(deadline, exchange).await {
            Ok(Ok((code, answer))) => (End::Answer(code), Ok(answer)),
            Ok(Err(error)) => (error.status().map_or(End::Error, End::Answer), Err(error)),
            Err(_) => {
                let message = format!("no answer within {} s", REQUEST_TIMEOUT.as_secs());
                (End::Timeout, Err(ApiError::Transport(message)))
            }
        };
        counted.end = end;
        result
    }
}

/// Returns the status code of the answer, and the answer as `read` reads it. A code that an API server does not send with
/// an object is an error.
async fn send_once<T, F: Future<Output = Result<T, ApiError>>>(
    used: &InUse,
    mut request: Request<Vec<u8>>,
    read: fn(Response<Body>) -> F,
) -> Result<(u16, T), ApiError> {
    if let Some(value) = &used.authorization {
        request.headers_mut().insert(AUTHORIZATION, value.clone());
    }
    let response = used.client.send(request.map(Body::from)).await;
    let response = response.map_err(|error| ApiError::transport(&error))?;
    let code = response.status().as_u16();
    let origin = Origin::of(&response);
    if origin.is_expected() {
        return Ok((code, read(response).await?));
    }
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let body = whole(response).await.unwrap_or_default().1;
    if code < 400 {
        return Err(origin.foreign(&body));
    }
    let retry_after = retry_after.map(Duration::from_secs);
    Err(ApiError::refused(code, retry_after, &body))
}

async fn whole(response: Response<Body>) -> Result<(Origin, Bytes), ApiError> {
    let origin = Origin::of(&response);
    let body = Limited::new(response.into_body(), MAX_ANSWER)
        .collect()
        .await;
    let body = body.map_err(|error| ApiError::transport(error.as_ref()))?;
    Ok((origin, body.to_bytes()))
}

async fn lines(response: Response<Body>) -> Result<Lines, ApiError> {
    Ok(Lines::from(response))
}

/// kube builds no request with invalid parameters.
impl From<request::Error> for ApiError {
    fn from(error: request::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}
