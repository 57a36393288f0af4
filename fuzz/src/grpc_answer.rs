//! What a gRPC server answers.
//!
//! The first byte is how much arrives at a time. If the second is even, the rest is the connection itself, from the
//! server's preface on. If it is odd, it chooses the status, and the rest are the messages.

use std::iter;

use untaint::config::{Endpoint, Grpc};
use untaint::gate::probe::grpc;

use super::assert_printable;
use super::server::{Answer, ends};

/// RFC 9113, section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Types of frames (RFC 9113, section 6), and their flags.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

pub fn check(input: &[u8]) -> bool {
    let [chunk, kind, rest @ ..] = input else {
        return false;
    };
    let is_framed = kind % 2 == 1;
    let code = kind / 2 % 17;
    let connection = if is_framed {
        framed(rest, code)
    } else {
        rest.to_vec()
    };
    let spec = Grpc {
        endpoint: Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: 80,
        },
        service: String::new(),
    };
    let stream = Box::new(Answer::new(&connection, *chunk, has_request));
    let answer = ends(grpc::exchange(&spec, stream));
    let (Ok(message) | Err(message)) = &answer;
    assert_printable(message);
    if answer.is_ok() {
        assert!(says_serving(&data(&connection)), "{connection:?}");
        assert!(!is_framed || code == 0, "status {code}");
    }
    answer.is_ok()
}

/// The connection of a server that answers the first request with these messages and this status.
fn framed(messages: &[u8], code: u8) -> Vec<u8> {
    let mut connection = frame(SETTINGS, 0, 0, &[]);
    // `:status: 200` and `content-type` (31) of the static table, without Huffman coding (RFC 7541).
    let headers = [b"\x88\x0f\x10\x10", &b"application/grpc"[..]].concat();
    connection.extend(frame(HEADERS, END_HEADERS, 1, &headers));
    for part in messages.chunks(1 << 14) {
        connection.extend(frame(DATA, 0, 1, part));
    }
    let code = code.to_string();
    let mut trailers = b"\x00\x0bgrpc-status".to_vec();
    trailers.push(u8::from(code.len() > 1) + 1);
    trailers.extend(code.bytes());
    connection.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailers));
    connection
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Whether the client has sent its preface and the header of a request.
fn has_request(written: &[u8]) -> bool {
    written
        .strip_prefix(PREFACE)
        .is_some_and(|written| frames(written).any(|frame| frame.kind == HEADERS))
}

struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
}

fn frames(mut connection: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    iter::from_fn(move || {
        let ([a, b, c, kind, flags, stream @ ..], rest) = connection.split_first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let (payload, rest) = rest.split_at_checked(length)?;
        connection = rest;
        Some(Frame {
            kind: *kind,
            flags: *flags,
            // The first bit is reserved.
            stream: u32::from_be_bytes(*stream) & (u32::MAX >> 1),
            payload,
        })
    })
}

/// What the DATA frames of the first stream carry.
fn data(connection: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    for frame in frames(connection).filter(|frame| frame.kind == DATA && frame.stream == 1) {
        let mut payload = frame.payload;
        if frame.flags & PADDED != 0
            && let Some((padding, padded)) = payload.split_first()
        {
            payload = &padded[..padded.len().saturating_sub(usize::from(*padding))];
        }
        data.extend_from_slice(payload);
    }
    data
}

/// Whether the first message, as gRPC delimits it, is a `HealthCheckResponse` whose `status` (1) is `SERVING` (1).
fn says_serving(data: &[u8]) -> bool {
    let Some(([0, length @ ..], rest)) = data.split_first_chunk::<5>() else {
        return false;
    };
    let Some(mut message) = rest.get(..u32::from_be_bytes(*length) as usize) else {
        return false;
    };
    let mut status = 0;
    while !message.is_empty() {
        let Some(key) = varint(&mut message) else {
            return false;
        };
        let skipped = match key & 7 {
            0 => {
                let Some(value) = varint(&mut message) else {
                    return false;
                };
                if key >> 3 == 1 {
                    // An enum is an int32: what is above is cut off.
                    status = value & u64::from(u32::MAX);
                }
                continue;
            }
            1 => Some(8),
            2 => varint(&mut message),
            5 => Some(4),
            // Groups, which this does not read. What follows them may be anything.
            _ => return true,
        };
        let Some(rest) = skipped.and_then(|length| message.get(usize::try_from(length).ok()?..))
        else {
            return false;
        };
        message = rest;
    }
    status == 1
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
