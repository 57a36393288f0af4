//! `grpc`: the standard health service (`grpc.health.v1.Health/Check`, grpc/grpc doc/health-checking.md), plaintext.

use std::error::Error;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tower::service_fn;

use super::connect::{self, Stream, connect};
use super::drive::while_driving;
use super::lock::ProbeLock;
use crate::config::{Endpoint, Grpc};
use crate::text::{excerpt, http_status};

/// The answer is a message of two bytes.
const MESSAGE_LIMIT: usize = 1024;
/// Flow-control window: what a hostile peer can make the agent hold.
const WINDOW: u32 = 64 * 1024;

/// Asks on a connection of its own. Only `SERVING` opens.
pub async fn check(spec: &Grpc, lock: &ProbeLock) -> Result<String, String> {
    exchange(spec, connect(&spec.endpoint, lock).await?).await
}

/// Asks over `stream`. The error names the endpoint.
pub async fn exchange(spec: &Grpc, stream: Box<dyn Stream>) -> Result<String, String> {
    let (spawner, tasks) = unbounded_channel();
    let status = while_driving(run(tasks), call(stream, Spawner(spawner), spec)).await;
    let answer = status.and_then(|status| match status {
        ServingStatus::Serving => Ok(status.as_str_name().into()),
        _ => Err(status.as_str_name().into()),
    });
    answer.map_err(|why: String| format!("{}: {why}", connect::name(&spec.endpoint)))
}

async fn call(
    stream: Box<dyn Stream>,
    spawner: Spawner,
    spec: &Grpc,
) -> Result<ServingStatus, String> {
    let (mut sender, connection) = http2::Builder::new(spawner.clone())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| no_answer(&error))?;
    spawner.execute(connection);
    let service = service_fn(move |mut request: Request<Body>| {
        request
            .headers_mut()
            .insert(USER_AGENT, HeaderValue::from_static(crate::USER_AGENT));
        let response = sender.send_request(request);
        async move { only_grpc(response.await?) }
    });
    let request = HealthCheckRequest {
        service: spec.service.clone(),
    };
    HealthClient::with_origin(service, origin(&spec.endpoint)?)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .check(request)
        .await
        .map(|response| response.into_inner().status())
        .map_err(|status| describe(&status, &spec.service))
}

/// Why there is no gRPC answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error(transparent)]
    Http2(#[from] hyper::Error),
    /// tonic would take a web page for a corrupt message.
    #[error("HTTP status {}, without the content type application/grpc", http_status(*.0))]
    NotGrpc(StatusCode),
}

fn only_grpc(response: Response<Incoming>) -> Result<Response<Incoming>, NoAnswer> {
    let content_type = response.headers().get(CONTENT_TYPE);
    if content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc")) {
        Ok(response)
    } else {
        Err(NoAnswer::NotGrpc(response.status()))
    }
}

fn origin(endpoint: &Endpoint) -> Result<Uri, String> {
    let origin = format!("http://{}", connect::requested_host(endpoint));
    origin
        .parse()
        .map_err(|_| "the host is not valid in a request".into())
}

fn describe(status: &Status, service: &str) -> String {
    match status.code() {
        Code::Unimplemented => {
            "the server has no grpc.health.v1.Health service (UNIMPLEMENTED)".into()
        }
        Code::NotFound => format!("the server knows no service \"{service}\" (NOT_FOUND)"),
        code => match status.source() {
            Some(source) => no_answer(source),
            None => format!("{code:?}: {}", excerpt(status.message())),
        },
    }
}

/// Names the innermost cause: what wraps it only repeats that something failed.
fn no_answer(mut error: &(dyn Error + 'static)) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    format!("no gRPC answer: {}", excerpt(&error.to_string()))
}

type Task = BoxFuture<'static, ()>;

/// Hands the tasks that hyper spawns to [`run`], so that none outlives the check.
#[derive(Clone)]
struct Spawner(UnboundedSender<Task>);

impl<F> Executor<F> for Spawner
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        // Fails only once the check is over.
        let _ = self.0.send(future.map(drop).boxed());
    }
}

/// Runs every task that arrives.
async fn run(mut arriving: UnboundedReceiver<Task>) {
    let mut tasks = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(task) = arriving.recv() => tasks.push(task),
            Some(()) = tasks.next() => {}
            else => return,
        }
    }
}

#[cfg(test)]
mod tests;
