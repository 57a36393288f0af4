//! The body of a watch, line by line.

use std::error::Error;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use kube::client::Body;
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::foreign::{Origin, is_object};
use super::page::PAGE;
use super::{ApiError, MAX_ANSWER};

/// How long the rest of a page is waited for.
const PAGE_TIMEOUT: Duration = Duration::from_secs(1);

/// A running watch. Dropping it ends the request.
pub struct Lines<B = Body> {
    origin: Origin,
    body: B,
    buffer: BytesMut,
    /// The length of the beginning of `buffer` that contains no newline.
    searched: usize,
}

impl<B> Lines<B>
where
    B: HttpBody<Data = Bytes, Error: Error + 'static> + Unpin,
{
    pub fn new(body: B) -> Self {
        Self {
            origin: Origin::default(),
            body,
            buffer: BytesMut::new(),
            searched: 0,
        }
    }

    /// The next event, or `None` at the clean end. An `ERROR` event is an error. Cancel safe.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<WatchEvent<T>>, ApiError> {
        loop {
            if let Some(length) = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                let length = self.searched + length + 1;
                let event = serde_json::from_slice(&self.buffer[..length]);
                self.searched = 0;
                return match event {
                    Ok(WatchEvent::Error(status)) => Err(ApiError::from_status(&status, None)),
                    Ok(event) => {
                        self.buffer.advance(length);
                        Ok(Some(event))
                    }
                    Err(error) => {
                        if !is_object(&self.buffer) {
                            // What identifies a page comes later than its first line.
                            let _ = timeout(PAGE_TIMEOUT, self.read_page()).await;
                        }
                        Err(self.origin.error(&self.buffer, &error))
                    }
                };
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_ANSWER {
                return Err(ApiError::Malformed(format!(
                    "an event of more than {MAX_ANSWER} bytes"
                )));
            }
            if !self.read().await? {
                return match self.buffer.trim_ascii() {
                    [] => Ok(None),
                    rest if is_object(rest) => Err(ApiError::Transport(
                        "the watch ended within an event".into(),
                    )),
                    rest => Err(self.origin.foreign(rest)),
                };
            }
        }
    }

    /// Reads on. Returns whether there was anything.
    async fn read(&mut self) -> Result<bool, ApiError> {
        match self.body.frame().await {
            None => Ok(false),
            Some(Err(error)) => Err(ApiError::transport(&error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.buffer.extend_from_slice(&data);
                }
                Ok(true)
            }
        }
    }

    async fn read_page(&mut self) {
        while self.buffer.len() < PAGE && matches!(self.read().await, Ok(true)) {}
    }
}

impl From<Response<Body>> for Lines {
    fn from(response: Response<Body>) -> Self {
        let origin = Origin::of(&response);
        Self {
            origin,
            ..Self::new(response.into_body())
        }
    }
}
