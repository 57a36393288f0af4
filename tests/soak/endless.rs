//! An endpoint with endless answers.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Answers with endless bodies, until the test sets `good`.
pub(crate) struct Endless {
    pub(crate) port: u16,
    pub(crate) answers: watch::Sender<usize>,
    pub(crate) good: watch::Sender<bool>,
    _task: JoinSet<()>,
}

impl Endless {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, good) = (watch::Sender::new(0), watch::Sender::new(false));
        let mut task = JoinSet::new();
        let (count, is_good) = (answers.clone(), good.clone());
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let (count, is_good) = (count.clone(), *is_good.borrow());
                connections.spawn(async move {
                    let head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
                    let _ = stream.write_all(head).await;
                    if is_good {
                        let _ = stream.write_all(b"ready").await;
                        return;
                    }
                    let piece = vec![b'x'; 64 * 1024];
                    // Until the agent closes the connection.
                    while stream.write_all(&piece).await.is_ok() {}
                    count.send_modify(|answers| *answers += 1);
                });
            }
        });
        Self {
            port,
            answers,
            good,
            _task: task,
        }
    }
}
