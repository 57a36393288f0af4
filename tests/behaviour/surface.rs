//! What other programs can do to the agent, or learn from it, through its port, its files and its child processes.

mod descriptors;
mod flood;
mod host;
mod limits;
mod paths;
mod secrets;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];
/// The text of every secret.
const SECRET: &str = "hunter2";
/// The start of a request.
const BEGINNING: &[u8] = b"GET /statusz HTTP/1.1\r\nX-Slow: ";

/// A client that sends a byte from time to time, until the agent closes the connection.
async fn dawdle(mut stream: TcpStream) {
    let mut pace = tokio::time::interval(std::time::Duration::from_millis(200));
    for byte in BEGINNING.iter().chain(std::iter::repeat(&b'x')) {
        pace.tick().await;
        if stream.write_all(&[*byte]).await.is_err() {
            return;
        }
    }
}
