//! The API server: one client, its time-outs, and what its answers mean.
//!
//! There is one retry layer, and it is not here: callers pace themselves. The only request sent again is one that was
//! refused for its credentials, where these turn out to have been rotated.

mod connect;
mod credentials;
mod error;
mod kube_client;
mod name;
pub mod object;
mod stream;
pub mod traffic;
pub mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use serde::de::DeserializeOwned;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, timeout_at};

use crate::incident::Incident;
pub use credentials::Source;
use credentials::{Credentials, InUse};
pub use error::ApiError;
pub use stream::Lines;
use traffic::{End, Traffic};

/// From sending a request to the last byte of its answer; for a watch, to its answer's headers.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Larger than any object etcd stores (1.5 MiB by default, 2 MiB in a request).
const MAX_ANSWER: usize = 8 << 20;

/// The API server as this process sees it. One connection serves all requests where HTTP/2 is spoken.
pub struct ApiServer {
    credentials: Arc<Credentials>,
    url: Uri,
    /// Whether streaming lists were refused. They are off by default in 1.30, 1.31 and 1.33, and may be off in any.
    lists: AtomicBool,
    /// Whether one was accepted and not completed. Whatever held it back may hold back the events of a watch too.
    doubts: AtomicBool,
    traffic: Traffic,
    last_failure: Sender<Option<Incident>>,
}

impl ApiServer {
    /// Reads the credentials once, so that a bad kubeconfig is found at start. Does not connect.
    pub async fn new(source: Source) -> Result<Self, ApiError> {
        let last_failure = Sender::default();
        let credentials = Credentials::new(source, last_failure.clone()).await?;
        Ok(Self {
            url: credentials.url(),
            credentials: Arc::new(credentials),
            lists: AtomicBool::new(false),
            doubts: AtomicBool::new(false),
            traffic: Traffic::default(),
            last_failure,
        })
    }

    /// Where the server was to be found at the start.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// What is counted of the requests.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The last failure of any request, whoever sent it and whatever is made of it.
    pub fn last_failure(&self) -> Receiver<Option<Incident>> {
        self.last_failure.subscribe()
    }

    /// Completes as soon as the credentials differ from those at the time of this call. For whoever waits after an error
    /// that [refuses the credentials](ApiError::refuses_credentials): it looks at their files once a second.
    pub fn renewed(&self) -> impl Future<Output = ()> + use<> {
        self.credentials.renewed()
    }

    fn failed(&self, error: &ApiError) {
        let incident = Incident::now(error.to_string());
        self.last_failure.send_replace(Some(incident));
    }

    /// Sends `request` and reads its answer as a `T`.
    pub async fn request<T: DeserializeOwned>(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<T, ApiError> {
        let answer = self.request_best_effort(request).await;
        self.judge(answer)
    }

    /// Like [`Self::request`], for what is beside the main job: no failure of it makes other requests connect anew.
    pub async fn request_best_effort<T: DeserializeOwned>(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<T, ApiError> {
        let answer = self.ask(request).await;
        answer.inspect_err(|error| self.failed(error))
    }

    /// Like [`Self::request_best_effort`], but a refusal is an answer and no failure.
    pub async fn ask<T: DeserializeOwned>(&self, request: Request<Vec<u8>>) -> Result<T, ApiError> {
        let body = self.send(request, whole).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::Malformed(error.to_string()))
    }

    /// Starts a watch. Its first lines may take as long as they want; only its start is bounded.
    pub async fn watch(&self, request: Request<Vec<u8>>) -> Result<Lines, ApiError> {
        let lines = self.send(request, lines).await;
        self.judge(lines.inspect_err(|error| self.failed(error)))
    }

    /// Whether watches are to begin with a list.
    fn lists(&self) -> bool {
        self.lists.load(Ordering::Relaxed)
    }

    fn list_from_now_on(&self) {
        self.lists.store(true, Ordering::Relaxed);
    }

    /// Whether a watch must show that its events arrive.
    fn doubts(&self) -> bool {
        self.doubts.load(Ordering::Relaxed)
    }

    fn doubt_from_now_on(&self) {
        self.doubts.store(true, Ordering::Relaxed);
    }

    /// After a failure of the connection it is not used again: it may be dead without knowing it.
    fn judge<T>(&self, result: Result<T, ApiError>) -> Result<T, ApiError> {
        if let Err(ApiError::Transport(_) | ApiError::Certificate(_)) = result {
            self.credentials.connect_anew();
        }
        result
    }

    /// Gives what `read` makes of the answer. Sends the request again if its credentials are refused and there are others
    /// by then.
    async fn send<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        request: Request<Vec<u8>>,
        read: fn(Response<Body>) -> F,
    ) -> Result<T, ApiError> {
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let mut used = self.credentials.for_request().await;
        loop {
            let answer = self.attempt(&used, request.clone(), read, deadline).await;
            if !answer.as_ref().is_err_and(ApiError::refuses_credentials) {
                return answer;
            }
            match self.credentials.instead_of(&used).await {
                Some(others) => used = others,
                None => return answer,
            }
        }
    }

    /// One request on the wire, ended at its `deadline`, and counted.
    async fn attempt<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        used: &InUse,
        mut request: Request<Vec<u8>>,
        read: fn(Response<Body>) -> F,
        deadline: Instant,
    ) -> Result<T, ApiError> {
        if let Some(value) = &used.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        let mut counted = self.traffic.begin(&request);
        let result = timeout_at(deadline, exchange(&used.client, request, read)).await;
        counted.end = match &result {
            Ok(Ok((code, _))) => End::Answer(code.as_u16()),
            Ok(Err(error)) => error.code().map_or(End::Error, End::Answer),
            Err(_) => End::Timeout,
        };
        let result = result.unwrap_or_else(|_| {
            let limit = REQUEST_TIMEOUT.as_secs();
            Err(ApiError::Transport(format!("no answer within {limit} s")))
        });
        result.map(|(_, answer)| answer)
    }
}

async fn whole(response: Response<Body>) -> Result<Bytes, ApiError> {
    Limited::new(response.into_body(), MAX_ANSWER)
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| ApiError::transport(error.as_ref()))
}

async fn lines(response: Response<Body>) -> Result<Lines, ApiError> {
    Ok(Lines::new(response.into_body()))
}

/// A request whose parameters were right.
pub(crate) fn valid(
    request: Result<Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<Request<Vec<u8>>, ApiError> {
    request.map_err(|error| ApiError::Malformed(error.to_string()))
}

/// The answer's status code and what `read` makes of it; a code of 400 or more is an error.
async fn exchange<T, F: Future<Output = Result<T, ApiError>>>(
    client: &Client,
    request: Request<Vec<u8>>,
    read: fn(Response<Body>) -> F,
) -> Result<(StatusCode, T), ApiError> {
    let response = client
        .send(request.map(Body::from))
        .await
        .map_err(|error| ApiError::transport(&error))?;
    let code = response.status();
    if code.as_u16() < 400 {
        return Ok((code, read(response).await?));
    }
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let body = whole(response).await.unwrap_or_default();
    Err(ApiError::refused(code.as_u16(), retry_after, &body))
}
