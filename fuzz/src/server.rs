//! A server in memory whose answers are given: connections without sockets.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// One end of a connection: answers once it is asked, and then closes.
pub(crate) struct Answer {
    rest: Bytes,
    /// Most bytes that one read returns.
    chunk: usize,
    written: Vec<u8>,
    is_asked: fn(&[u8]) -> bool,
    waiting: Option<Waker>,
}

impl Answer {
    /// `chunk` bytes arrive at a time; 0 counts as 1. `is_asked` is whether what was written is a request.
    pub(crate) fn new(bytes: &[u8], chunk: u8, is_asked: fn(&[u8]) -> bool) -> Self {
        Self {
            rest: Bytes::copy_from_slice(bytes),
            chunk: usize::from(chunk).max(1),
            written: Vec::new(),
            is_asked,
            waiting: None,
        }
    }
}

impl AsyncRead for Answer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !(self.is_asked)(&self.written) {
            self.waiting = Some(context.waker().clone());
            return Poll::Pending;
        }
        let length = self.chunk.min(self.rest.len()).min(into.remaining());
        into.put_slice(&self.rest[..length]);
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Answer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // What comes after the request is of no interest.
        if !(self.is_asked)(&self.written) {
            self.written.extend_from_slice(bytes);
            if let Some(waiting) = self.waiting.take() {
                waiting.wake();
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The result of `future`, which must end by itself. Its clock stands still while there is anything to do: a future that
/// waits for something that cannot come is at its deadline at once.
pub(crate) fn ends<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: RefCell<Runtime> = RefCell::new(
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap(),
        );
    }
    RUNTIME.with_borrow_mut(|runtime| {
        runtime
            .block_on(async { timeout(Duration::from_secs(1), future).await })
            .expect("ends by itself")
    })
}
