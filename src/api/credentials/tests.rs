use std::fs;
use std::path::Path;

use super::*;

/// A kubeconfig with a token in a file.
fn kubeconfig(dir: &Path) -> Source {
    let file = dir.join("kubeconfig");
    let text = "
        apiVersion: v1
        kind: Config
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
        users: [{name: u, user: {tokenFile: token}}]
        contexts: [{name: x, context: {cluster: c, user: u}}]
        current-context: x";
    fs::write(&file, text).unwrap();
    Source::Kubeconfig(file)
}

async fn credentials(dir: &Path, token: &str) -> Result<Arc<Credentials>, ApiError> {
    fs::write(dir.join("token"), token).unwrap();
    let credentials = Credentials::new(kubeconfig(dir), watch::Sender::default()).await;
    credentials.map(Arc::new)
}

fn token(in_use: &InUse) -> &str {
    let header = in_use.authorization.as_ref().unwrap();
    assert!(header.is_sensitive());
    header.to_str().unwrap()
}

#[tokio::test]
async fn a_token_is_what_is_in_its_file_without_the_line_break_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let good = credentials(dir.path(), "good\n").await.unwrap();
    assert_eq!(token(&good.for_request().await), "Bearer good");
    for (bad, why) in [
        ("", "is empty"),
        ("\n", "is empty"),
        ("hunter2\nhunter2", "something besides a token"),
    ] {
        let error = credentials(dir.path(), bad).await.err().unwrap();
        let error = error.to_string();
        assert!(error.contains("/token ") && error.contains(why), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn refused_credentials_are_replaced_only_by_other_ones() {
    let dir = tempfile::tempdir().unwrap();
    let credentials = credentials(dir.path(), "old").await.unwrap();
    let old = credentials.for_request().await;
    assert!(credentials.replace(&old).await.is_none());
    fs::write(dir.path().join("token"), "").unwrap();
    assert!(credentials.replace(&old).await.is_none());
    fs::write(dir.path().join("token"), "new").unwrap();
    let new = credentials.replace(&old).await.unwrap();
    assert_eq!(token(&new), "Bearer new");
    // Another request that was refused with the old token needs no further look.
    fs::write(dir.path().join("token"), "newer").unwrap();
    let new = credentials.replace(&old).await.unwrap();
    assert_eq!(token(&new), "Bearer new");
}

#[tokio::test]
async fn a_wait_for_other_credentials_reads_them_once_a_second_and_ends_when_they_change() {
    let dir = tempfile::tempdir().unwrap();
    let credentials = credentials(dir.path(), "old").await.unwrap();
    let readings = |credentials: &Credentials| credentials.state().read_at;
    let mut one = Box::pin(credentials.renewed());
    let mut other = Box::pin(credentials.renewed());
    let mut both = async || tokio::join!(&mut one, &mut other);
    let first = readings(&credentials);
    let early = timeout(RETRY_INTERVAL / 2, both()).await;
    assert!(early.is_err() && readings(&credentials) == first);
    fs::write(dir.path().join("token"), "new").unwrap();
    both().await;
    let took = first.elapsed();
    assert!(took < RETRY_INTERVAL * 2, "{took:?}");
    assert_eq!(token(&credentials.for_request().await), "Bearer new");
}

#[tokio::test]
async fn new_settings_are_used_after_the_old_connection_is_refused_or_broken() {
    let dir = tempfile::tempdir().unwrap();
    let credentials = credentials(dir.path(), "token").await.unwrap();
    let old = credentials.for_request().await;
    let Source::Kubeconfig(file) = &credentials.source else {
        unreachable!();
    };
    let text = fs::read_to_string(file).unwrap();
    let point_at = |port: u8| {
        let url = format!("127.0.0.1:{port}'");
        fs::write(file, text.replace("127.0.0.1:1'", &url)).unwrap();
    };
    point_at(2);
    let version = |credentials: &Credentials| {
        let state = credentials.state();
        state.client.as_ref().map(|(_, version)| *version)
    };
    credentials.read_again(LONG_PATIENCE).await;
    let same = credentials.for_request().await;
    assert_eq!((version(&credentials), same.version), (Some(0), 0));
    let new = credentials.replace(&old).await.unwrap();
    assert_eq!((version(&credentials), new.version), (Some(1), 1));
    assert_eq!(credentials.url(), "http://127.0.0.1:2/");
    assert!(credentials.replace(&new).await.is_none());
    point_at(3);
    credentials.read_again(LONG_PATIENCE).await;
    assert_eq!(version(&credentials), None, "that one was refused");
    assert_eq!(credentials.for_request().await.version, 2);
    credentials.reconnect();
    assert_eq!(version(&credentials), None);
}
