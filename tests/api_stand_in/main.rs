//! Asks the API stand-in and a real API server the same questions, so that the stand-in stays correct.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is a test, its helpers too"
)]

mod kind;
mod objects;
mod patches;
mod server;
mod watches;

use kube::Client;
use serde_json::Value;
use tempfile::tempdir;
use testkit::api::{ApiServer, Options, TOKEN};
use testkit::cluster::{self, client, streaming_lists};

use self::kind::{CSI_NODE, NODE, failure};
use self::objects::{creates_and_deletes, keeps_what_an_object_is};
use self::patches::{dry_runs, patches, refuses_patches};
use self::server::Server;
use self::watches::{
    does_not_watch_from_the_past, lists_and_watches, refuses_streaming_lists, streams_lists,
};

#[tokio::test]
async fn the_stand_in_answers_as_the_api_server_does() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    server.accept_tokens(&[TOKEN]);
    let dir = tempdir().unwrap();
    let kubeconfig = server.kubeconfig(dir.path()).unwrap();
    conform(&client(&kubeconfig).await.unwrap(), true).await;

    std::fs::write(dir.path().join("token"), "wrong").unwrap();
    refuses_a_wrong_token(&client(&kubeconfig).await.unwrap()).await;
}

#[tokio::test]
async fn the_api_server_answers_as_the_stand_in_does() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    conform(&cluster.client().await.unwrap(), streaming_lists().await).await;

    let dir = tempdir().unwrap();
    let kubeconfig = cluster.kubeconfig(dir.path(), "wrong").unwrap();
    refuses_a_wrong_token(&client(&kubeconfig).await.unwrap()).await;
}

#[tokio::test]
async fn a_stand_in_without_streaming_lists_answers_as_such_an_api_server_does() {
    let options = Options {
        streaming_lists: false,
        ..Options::default()
    };
    let server = ApiServer::start(options).await.unwrap();
    let dir = tempdir().unwrap();
    let kubeconfig = server.kubeconfig(dir.path()).unwrap();
    let client = client(&kubeconfig).await.unwrap();
    for kind in [&NODE, &CSI_NODE] {
        refuses_streaming_lists(&Server::new(&client, kind)).await;
    }
    server.forget_history();
    for kind in [&NODE, &CSI_NODE] {
        does_not_watch_from_the_past(&Server::new(&client, kind)).await;
    }
}

#[tokio::test]
async fn an_api_server_without_streaming_lists_answers_as_such_a_stand_in_does() {
    let Some(mut cluster) = cluster::fresh(&["--feature-gates=WatchList=false"]).await else {
        return;
    };
    let client = cluster.client().await.unwrap();
    for kind in [&NODE, &CSI_NODE] {
        refuses_streaming_lists(&Server::new(&client, kind)).await;
    }
    // The new process does not have the history of the old one.
    cluster.restart_api_server().await.unwrap();
    let client = cluster.client().await.unwrap();
    for kind in [&NODE, &CSI_NODE] {
        does_not_watch_from_the_past(&Server::new(&client, kind)).await;
    }
}

/// Each part has its own objects.
async fn conform(client: &Client, streaming_lists: bool) {
    let [nodes, csi_nodes] = [&NODE, &CSI_NODE].map(|kind| Server::new(client, kind));
    tokio::join!(
        conform_in_general(&nodes, streaming_lists),
        conform_in_general(&csi_nodes, streaming_lists),
        patches(&nodes),
        refuses_patches(&nodes),
        dry_runs(&nodes),
    );
}

/// As any kind of object does.
async fn conform_in_general(server: &Server, streaming_lists: bool) {
    tokio::join!(
        creates_and_deletes(server),
        keeps_what_an_object_is(server),
        lists_and_watches(server),
        async {
            if streaming_lists {
                streams_lists(server).await;
            } else {
                refuses_streaming_lists(server).await;
            }
        },
    );
}

async fn refuses_a_wrong_token(client: &Client) {
    let unauthorized = failure(401, "Unauthorized", "Unauthorized", Value::Null);
    assert_eq!(
        Server::new(client, &NODE).get("made").await,
        (401, unauthorized)
    );
}
