//! Records, checks and executes one request, and answers it.

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::Ordering;

use anyhow::Result;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::request::Parts;
use http::{HeaderValue, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::{Value, json};

use super::object::Id;
use super::route::{Route, Verb};
use super::script::{Answer, Reply};
use super::serve::{ALL, Connection, NONE};
use super::status::Status;
use super::upstream::line;
use super::watch::Watch;
use super::{Request, Shared};

/// A body of the stand-in never fails. A body of the real server behind it can fail.
pub(super) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// Fails only when the request could not be read.
pub(super) async fn answer(
    request: http::Request<Incoming>,
    connection: &Connection,
    shared: &Shared,
) -> Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let route = Route::of(&parts);
    let index = record(
        Request::new(&parts, &body, route.verb, connection.id),
        shared,
    );
    let response = decide(&parts, &route, body, connection, shared).await;
    shared
        .requests
        .send_modify(|all| all[index].status = Some(response.status().as_u16()));
    Ok(response)
}

/// The index of the request.
fn record(request: Request, shared: &Shared) -> usize {
    let mut index = 0;
    shared.requests.send_modify(|all| {
        index = all.len();
        all.push(request);
    });
    index
}

async fn decide(
    parts: &Parts,
    route: &Route,
    body: Bytes,
    connection: &Connection,
    shared: &Shared,
) -> Response<Body> {
    let path = parts.uri.path();
    let scripted = shared.script.lock().unwrap().next(route.verb, path);
    let usual = async {
        authorize(parts, shared)?;
        let Some(upstream) = &shared.upstream else {
            return carry_out(parts, route, &body, shared);
        };
        let store = shared.store.subscribe();
        let answer = upstream.carry_out(parts, route.verb, body.clone(), store);
        answer.await.map_err(|error| Status::bad_gateway(&error))
    };
    let usual = usual.map(|answer| answer.unwrap_or_else(|status| reply(status.into())));
    match scripted {
        None => return usual.await,
        Some(Answer::Reply(scripted)) => return reply(scripted),
        Some(Answer::Stall(events)) => return respond(200, stalled(&events)),
        Some(Answer::Hang) => {}
        Some(Answer::Reset) => connection.reset.notify_one(),
        Some(Answer::GoAway) => connection.go_away(NONE),
        Some(Answer::ApplyAndHang) => drop(usual.await),
        Some(Answer::ApplyAndReset) => {
            drop(usual.await);
            connection.reset.notify_one();
        }
        Some(Answer::ApplyAndGoAway) => {
            drop(usual.await);
            connection.go_away(ALL);
        }
    }
    pending().await
}

fn authorize(parts: &Parts, shared: &Shared) -> Result<(), Status> {
    let tokens = shared.tokens.lock().unwrap();
    let Some(tokens) = tokens.as_ref() else {
        return Ok(());
    };
    parts
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        .filter(|token| tokens.contains(*token))
        .map(|_| ())
        .ok_or_else(Status::unauthorized)
}

fn carry_out(
    parts: &Parts,
    route: &Route,
    body: &[u8],
    shared: &Shared,
) -> Result<Response<Body>, Status> {
    let resource = route.resource.ok_or_else(Status::unknown_resource)?;
    let id = Id::new(resource, &route.name);
    match route.verb {
        Verb::Get => shared.store.borrow().get(&id).cloned().map(ok),
        Verb::List => {
            let selection = route.parameters.selection(resource)?;
            let store = shared.store.borrow();
            let items: Vec<&Value> = store.list(&selection).collect();
            let list = json!({
                "metadata": {"resourceVersion": store.version().to_string()},
                "items": items,
            });
            Ok(ok(resource.typed("List", list)))
        }
        Verb::Watch => {
            let store = shared.store.subscribe();
            let streaming = shared.streaming_lists;
            let watch = Watch::open(store, resource, &route.parameters, streaming)?;
            let body = infallible(StreamBody::new(watch.into_frames()));
            Ok(respond(200, body))
        }
        Verb::Create => {
            let object = serde_json::from_slice(body)
                .map_err(|_| Status::bad_request("the object provided is unrecognized"))?;
            let object = shared.write(|store| store.create(resource, object))?;
            Ok(reply(Reply {
                status: 201,
                ..ok_reply(object)
            }))
        }
        Verb::Patch => {
            let kind = parts.headers.get(header::CONTENT_TYPE);
            if kind.is_none_or(|kind| kind != "application/json-patch+json") {
                return Err(Status::unsupported_media_type());
            }
            let heeds = shared.dry_runs.load(Ordering::Relaxed);
            if heeds && route.parameters.get("dryRun") == Some("All") {
                return shared.store.borrow().try_patch(&id, body).map(ok);
            }
            shared.write(|store| store.patch(&id, body)).map(ok)
        }
        Verb::Delete => {
            let object = shared.write(|store| store.delete(&id))?;
            if resource.returns_deleted {
                return Ok(ok(object));
            }
            let mut details = id.details();
            details["uid"] = object["metadata"]["uid"].clone();
            Ok(ok(json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": details,
            })))
        }
        Verb::Other => Err(Status::unknown_resource()),
    }
}

fn ok(body: Value) -> Response<Body> {
    reply(ok_reply(body))
}

fn ok_reply(body: Value) -> Reply {
    Status { code: 200, body }.into()
}

fn reply(reply: Reply) -> Response<Body> {
    let body = match reply.body {
        Value::String(page) => Full::from(page),
        body => Full::from(line(&body)),
    };
    let body = infallible(body);
    let mut response = respond(reply.status, body);
    response.headers_mut().extend(reply.headers);
    response
}

/// These events, in a stream that does not end.
fn stalled(events: &[Value]) -> Body {
    let events: String = events.iter().map(line).collect();
    let frame = (!events.is_empty()).then(|| Ok(Frame::data(events.into())));
    infallible(StreamBody::new(
        stream::iter(frame).chain(stream::pending()),
    ))
}

fn infallible(
    body: impl hyper::body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Body {
    body.map_err(|never| match never {}).boxed_unsync()
}

fn respond(status: u16, body: Body) -> Response<Body> {
    let json = HeaderValue::from_static("application/json");
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, json)
        .body(body)
        .expect("a status code")
}
