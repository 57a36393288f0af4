//! The body of a watch, in pieces of any size. The first byte is how much arrives at a time.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream::iter;
use http_body_util::StreamBody;
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Taint;
use kube::core::WatchEvent;
use serde_json::Value;
use untaint::api::{ApiError, Lines};
use untaint::node::view::NodeView;

use super::server::ends;

pub fn check(input: &[u8]) -> bool {
    let Some((chunk, body)) = input.split_first() else {
        return false;
    };
    let (events, end) = read(body, usize::from(*chunk).max(1));
    // The size of the pieces changes nothing.
    let (whole, whole_end) = read(body, body.len().max(1));
    assert_eq!(
        format!("{events:?}{end:?}"),
        format!("{whole:?}{whole_end:?}")
    );

    let lines: Vec<_> = body.split(|byte| *byte == b'\n').collect();
    // What is after the last newline is no line yet, and a watch does not end in the middle of one.
    let (rest, complete) = lines.split_last().expect("at least one part");
    let is_cut = !rest.trim_ascii().is_empty();
    assert!(events.len() <= complete.len());
    for (event, line) in events.iter().zip(complete) {
        // A line may be no valid JSON in the fields that are skipped, for example half a surrogate pair.
        if let Ok(whole) = serde_json::from_slice(line) {
            assert!(is_in(event, &whole), "{event:?}");
        }
    }
    match end {
        Ok(()) => assert!(events.len() == complete.len() && !is_cut),
        Err(error) => {
            assert!(events.len() < complete.len() || is_cut, "{error}");
            assert!(error.to_string().len() < 8192);
        }
    }
    !events.is_empty()
}

/// The events, and how the watch ends.
fn read(body: &[u8], chunk: usize) -> (Vec<WatchEvent<NodeView>>, Result<(), ApiError>) {
    let frames = body
        .chunks(chunk)
        .map(|part| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(part))));
    let frames: Vec<_> = frames.collect();
    let mut lines = Lines::new(StreamBody::new(iter(frames)));
    let mut events = Vec::new();
    ends(async {
        loop {
            match lines.next().await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return (events, Ok(())),
                Err(error) => return (events, Err(error)),
            }
        }
    })
}

/// Whether the line has what the event has.
fn is_in(event: &WatchEvent<NodeView>, line: &Value) -> bool {
    let says =
        |pointer: &str, value: &str| line.pointer(pointer).and_then(Value::as_str) == Some(value);
    let (kind, node) = match event {
        WatchEvent::Added(node) => ("ADDED", node),
        WatchEvent::Modified(node) => ("MODIFIED", node),
        WatchEvent::Deleted(node) => ("DELETED", node),
        WatchEvent::Bookmark(_) => return says("/type", "BOOKMARK"),
        WatchEvent::Error(_) => return false,
    };
    // A missing field is read as an empty one, as everywhere in the API.
    let has = |pointer: &str, value: &str| {
        says(pointer, value) || (value.is_empty() && line.pointer(pointer).is_none())
    };
    let taint = |(index, taint): (usize, &Taint)| {
        has(&format!("/object/spec/taints/{index}/key"), &taint.key)
            && has(
                &format!("/object/spec/taints/{index}/effect"),
                &taint.effect,
            )
    };
    let label = |(key, value): (&String, &String)| {
        let key = key.replace('~', "~0").replace('/', "~1");
        says(&format!("/object/metadata/labels/{key}"), value)
    };
    says("/type", kind)
        && says("/object/metadata/name", &node.metadata.name)
        && says("/object/metadata/uid", &node.metadata.uid)
        && node.taints.iter().enumerate().all(taint)
        && node.metadata.labels.iter().all(label)
}
