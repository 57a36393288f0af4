//! What a program prints.

use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// How much is kept, in bytes. The kubelet keeps as much of the beginning; but the last line says most.
const KEPT: usize = 10 * 1024;
/// What a pipe holds by default (pipe(7)): all that an exited program can have left unread.
const PIPE_CAPACITY: usize = 64 * 1024;

/// The end of a program's output. The pipe is read for as long as the program runs, so that a program that prints more
/// than is kept neither blocks nor fails.
#[derive(Debug)]
pub(super) struct Output {
    pipe: Receiver,
    kept: Vec<u8>,
}

impl Output {
    /// A new pipe and its writing end.
    pub(super) fn pipe() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let output = Self {
            pipe: Receiver::from_owned_fd(OwnedFd::from(reader))?,
            kept: Vec::new(),
        };
        Ok((output, writer))
    }

    /// Reads until every writing end is closed.
    pub(super) async fn read(&mut self) {
        self.kept.reserve(2 * KEPT);
        while let Ok(1..) = self.pipe.read_buf(&mut self.kept).await {
            self.forget_beginning();
        }
    }

    /// Reads once, without waiting: other processes may still hold the writing end, and may still write.
    pub(super) fn read_rest(&mut self) {
        self.kept.reserve(PIPE_CAPACITY);
        // Not the runtime's `try_read`, which finds nothing before the runtime has seen an event. An error means that the
        // pipe is empty.
        let _ = rustix::io::read(&self.pipe, spare_capacity(&mut self.kept));
        self.forget_beginning();
    }

    fn forget_beginning(&mut self) {
        let excess = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..excess);
    }

    /// The last line that is not blank.
    pub(super) fn last_line(&self) -> Option<String> {
        String::from_utf8_lossy(&self.kept)
            .lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty())
            .map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn only_the_end_is_kept() {
        let (mut output, mut writer) = Output::pipe().unwrap();
        writer.write_all(&vec![b'x'; PIPE_CAPACITY / 2]).unwrap();
        output.read_rest();
        assert_eq!(output.kept.len(), KEPT);

        writer.write_all(&vec![b'y'; PIPE_CAPACITY]).unwrap();
        drop(writer);
        output.read().await;
        assert_eq!(output.kept, [b'y'; KEPT]);
    }
}
