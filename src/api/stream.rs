//! The body of a watch, line by line.

use std::error::Error;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use kube::client::Body;
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;

use super::{ApiError, MAX_ANSWER};

/// A running watch. Dropping it ends the request.
pub struct Lines<B = Body> {
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
                let line = self.buffer.split_to(self.searched + length + 1);
                self.searched = 0;
                return match serde_json::from_slice(&line) {
                    Ok(WatchEvent::Error(status)) => Err(ApiError::from_status(&status, None)),
                    Ok(event) => Ok(Some(event)),
                    Err(error) => Err(ApiError::Malformed(error.to_string())),
                };
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_ANSWER {
                return Err(ApiError::Malformed(format!(
                    "an event of more than {MAX_ANSWER} bytes"
                )));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(ApiError::transport(&error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
