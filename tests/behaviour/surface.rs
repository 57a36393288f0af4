//! What others can do to the agent, or learn from it, over what it opens: its port, its files, its child processes.

mod descriptors;
mod flood;
mod host;
mod limits;
mod paths;
mod secrets;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];
/// Stands for whatever is secret.
const SECRET: &str = "hunter2";
/// The beginning of a request.
const BEGINNING: &[u8] = b"GET /statusz HTTP/1.1\r\nX-Slow: ";

/// A client that sends a byte from time to time, as long as it is let.
async fn dawdle(mut stream: TcpStream) {
    let mut pace = tokio::time::interval(std::time::Duration::from_millis(200));
    for byte in BEGINNING.iter().chain(std::iter::repeat(&b'x')) {
        pace.tick().await;
        if stream.write_all(&[*byte]).await.is_err() {
            return;
        }
    }
}
