//! From the tree to the checks that connect somewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;

use super::checks::{
    Endpoint, Expect, Grpc, HttpGet, HttpHeader, Scheme, StatusRange, TcpSocket, default_host,
    default_path,
};
use super::cursor::Cursor;
use super::fields::Fields;
use super::tree::Value;
use crate::syntax::{
    HEADER_NAME, HEADER_VALUE, HOST, JSON_POINTER, REQUEST_PATH, SEARCHED_TEXT, SOCKET_PATH, shown,
};

pub(super) fn http_get(cursor: &Cursor<'_>) -> Option<HttpGet> {
    cursor.mapping("httpGet", |fields| {
        let endpoint = endpoint(fields);
        let scheme = fields.optional("scheme");
        let path = fields.optional("path");
        let http_headers = fields.optional("httpHeaders");
        let expect = fields.optional("expect");

        let scheme = scheme.and_then(|scheme| scheme.parsed(parse_scheme));
        let path = path.and_then(|path| path.text(&REQUEST_PATH));
        let http_headers = http_headers.and_then(|headers| headers.secret().list(header));
        let expect = expect.and_then(|expect| self::expect(&expect));
        Some(HttpGet {
            endpoint: endpoint?,
            scheme: scheme.unwrap_or_default(),
            path: path.unwrap_or_else(default_path),
            http_headers: http_headers.unwrap_or_default(),
            expect: expect.unwrap_or_default(),
        })
    })
}

pub(super) fn tcp_socket(cursor: &Cursor<'_>) -> Option<TcpSocket> {
    cursor.mapping("tcpSocket", |fields| {
        let host = host(fields.optional("host").as_ref());
        let port = fields.required("port");
        Some(TcpSocket {
            host,
            port: self::port(&port?)?,
        })
    })
}

pub(super) fn grpc(cursor: &Cursor<'_>) -> Option<Grpc> {
    cursor.mapping("grpc", |fields| {
        let endpoint = endpoint(fields);
        let service = fields.optional("service");
        let service = service.and_then(|service| service.string().map(str::to_owned));
        Some(Grpc {
            endpoint: endpoint?,
            service: service.unwrap_or_default(),
        })
    })
}

/// `host` and `port`, or `unixSocket`.
fn endpoint(fields: &mut Fields<'_, '_>) -> Option<Endpoint> {
    let socket = fields.optional("unixSocket");
    let host_field = fields.optional("host");
    if let Some(socket) = socket {
        for other in [host_field, fields.optional("port")].iter().flatten() {
            other.report_key("must not stand beside unixSocket");
        }
        let path = socket.text(&SOCKET_PATH)?;
        return Some(Endpoint::Unix {
            path: PathBuf::from(path),
        });
    }
    let port_field = fields.required_or("port", "is missing (or unixSocket in its place)");
    let host = host(host_field.as_ref());
    Some(Endpoint::Tcp {
        host,
        port: port(&port_field?)?,
    })
}

fn host(field: Option<&Cursor<'_>>) -> String {
    field
        .and_then(|host| host.text(&HOST))
        .unwrap_or_else(default_host)
}

fn port(cursor: &Cursor<'_>) -> Option<u16> {
    let port = cursor.whole_number(&(1..=u16::MAX.into()))?;
    u16::try_from(port).ok()
}

fn parse_scheme(name: &str) -> Result<Scheme, String> {
    match name {
        "HTTP" => Ok(Scheme::Http),
        "HTTPS" => Ok(Scheme::Https),
        _ => Err(format!("must be HTTP or HTTPS, not {}", shown(name))),
    }
}

fn header(cursor: &Cursor<'_>) -> Option<HttpHeader> {
    cursor.mapping("a header", |fields| {
        let name = fields.required("name");
        let value = fields.required("value");
        let name = name.and_then(|name| name.text(&HEADER_NAME));
        let value = value.and_then(|value| value.text(&HEADER_VALUE));
        Some(HttpHeader {
            name: name?,
            value: value?,
        })
    })
}

fn expect(cursor: &Cursor<'_>) -> Option<Expect> {
    cursor.mapping("expect", |fields| {
        let status = fields.optional("status");
        let json = fields.optional("json");
        let text = fields.optional("text");
        Some(Expect {
            status: status
                .and_then(|codes| codes.filled_list(status_range))
                .unwrap_or_else(|| Expect::default().status),
            json: json
                .and_then(|values| expected_json(&values))
                .unwrap_or_default(),
            text: text.and_then(|text| text.text(&SEARCHED_TEXT)),
        })
    })
}

/// `204` or `200-299`.
fn status_range(cursor: &Cursor<'_>) -> Option<StatusRange> {
    let range = match cursor.value() {
        Value::Number(code) => code.as_u64().map(|code| (code, code)),
        Value::String(text) => text
            .split_once('-')
            .and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?))),
        _ => None,
    };
    let codes = u64::from(StatusRange::LEAST)..=u64::from(StatusRange::MOST);
    match range {
        Some((first, last)) if first <= last && codes.contains(&first) && codes.contains(&last) => {
            Some(StatusRange {
                first: u16::try_from(first).ok()?,
                last: u16::try_from(last).ok()?,
            })
        }
        _ => cursor.mismatch(
            "a status code or a range of them, between 100 and 599, such as 204 or 200-299",
        ),
    }
}

fn expected_json(cursor: &Cursor<'_>) -> Option<BTreeMap<String, Json>> {
    let values = cursor
        .entries()?
        .into_iter()
        .filter_map(|(pointer, value)| {
            if let Err(message) = JSON_POINTER.check(pointer) {
                value.report_key(message);
            }
            Some((pointer.to_owned(), json(&value)?))
        });
    Some(values.collect())
}

fn json(cursor: &Cursor<'_>) -> Option<Json> {
    Some(match cursor.value() {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => Json::Number(number.clone()),
        Value::String(text) => Json::String(text.clone()),
        Value::List(_) => Json::Array(cursor.list(json)?),
        Value::Map(_) => {
            let entries = cursor.entries()?.into_iter();
            let members =
                entries.filter_map(|(name, value)| Some((name.to_owned(), json(&value)?)));
            Json::Object(members.collect())
        }
    })
}
