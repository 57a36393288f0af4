//! Credentials that come late. The server refuses the agent until its waits are long. Then the files change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use http::HeaderValue;
use http::header::RETRY_AFTER;
use testkit::agent::Agent;
use testkit::api::{Answer, Request, Verb};
use testkit::cluster;

use super::{OTHERS, SLACK, Scene, is_start};
use crate::scene::own_taints;

/// The time from the change of a file to the request that uses it.
const SOON: Duration = Duration::from_secs(2);
/// After this number of failures, the agent waits between 8 s and 16 s.
const FAILURES: usize = 6;

/// Replaces a file next to the kubeconfig file with a rename.
fn rename_into_place(scene: &Scene, file: &str, content: &str) {
    let path = scene.kubeconfig.with_file_name(file);
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// Replaces the target of the link `..data`, as the kubelet does with a projected volume.
fn project(dir: &Path, version: usize, token: &str) {
    let name = format!("..version-{version}");
    fs::create_dir(dir.join(&name)).unwrap();
    fs::write(dir.join(&name).join("token"), token).unwrap();
    symlink(&name, dir.join("..data_tmp")).unwrap();
    fs::rename(dir.join("..data_tmp"), dir.join("..data")).unwrap();
}

/// Whether it has this verb. A server without streaming lists is asked for a list before a watch.
fn is_a(sent: &Request, verb: Verb) -> bool {
    match verb {
        Verb::Watch => is_start(sent),
        _ => sent.verb == verb,
    }
}

/// Waits until the server has refused so many requests, and the agent has found no new credentials.
async fn refused(scene: &Scene, agent: &Agent, verb: Verb, count: usize) {
    let is_refused = |sent: &&Request| is_a(sent, verb) && sent.status == Some(401);
    let enough = |all: &[Request]| all.iter().filter(is_refused).count() >= count;
    scene.middle.wait_for_requests(enough).await.unwrap();
    looks_again(agent).await;
}

async fn looks_again(agent: &Agent) {
    let same = "read the credentials; they are the same";
    let looks = agent.count(same);
    agent.wait_for_count(same, looks + 1).await.unwrap();
}

/// Fails unless the first good request comes soon after the `change`.
async fn is_used_soon(scene: &Scene, verb: Verb, change: impl FnOnce()) {
    let began = Instant::now();
    change();
    // A permission may be missing.
    let is_good = |sent: &&Request| {
        let is_new = sent.at >= began && is_a(sent, verb);
        is_new && sent.status.is_some_and(|code| code != 401)
    };
    let any = |all: &[Request]| all.iter().any(|sent| is_good(&sent));
    let all = scene.middle.wait_for_requests(any).await.unwrap();
    let took = all.iter().find(is_good).unwrap().at - began;
    assert!(took <= SOON + SLACK, "{took:?}");
}

#[tokio::test]
async fn a_token_that_comes_late_is_used_soon_by_a_watch_that_was_refused_from_the_start() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let scene = Scene::new(cluster, "late-token-at-start").await;
    scene.write("token", "nobody's");
    let agent = scene
        .gates
        .agent("late-token-at-start", &scene.kubeconfig, &[]);
    refused(&scene, &agent, Verb::Watch, FAILURES).await;
    is_used_soon(&scene, Verb::Watch, || {
        rename_into_place(&scene, "token", &scene.new_token);
    })
    .await;
}

#[tokio::test]
async fn a_projected_token_that_comes_late_is_used_soon_by_a_watch_that_broke_and_each_change_is_tried_once()
 {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let name = "late-token-of-broken-watch";
    let scene = Scene::new(cluster, name).await;
    let token = scene.kubeconfig.with_file_name("token");
    let dir = token.parent().unwrap();
    project(dir, 0, &fs::read_to_string(&token).unwrap());
    fs::remove_file(&token).unwrap();
    symlink("..data/token", &token).unwrap();
    let agent = scene.gates.agent(name, &scene.kubeconfig, &[]);
    agent.wait_for_message("watching the Node").await.unwrap();
    scene.middle.accept_tokens(&[&scene.new_token]);
    scene.proxy.reset_connections();
    refused(&scene, &agent, Verb::Watch, FAILURES).await;
    for version in 1..=3 {
        project(dir, version, &format!("nobody's-{version}"));
        refused(&scene, &agent, Verb::Watch, FAILURES + version).await;
    }
    is_used_soon(&scene, Verb::Watch, || {
        project(dir, 4, &scene.new_token);
    })
    .await;
    let watches = scene.watches();
    assert!(watches <= 1 + FAILURES + 3 + 2, "{watches} watches");
}

/// The wait that the server asks for applies only to the same token.
#[tokio::test]
async fn a_token_that_comes_late_is_used_soon_by_a_removal_that_alone_was_refused() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let name = "late-token-of-patch";
    let scene = Scene::new(cluster, name).await;
    let Answer::Reply(mut unauthorized) = Answer::failure(401, "Unauthorized", "Unauthorized")
    else {
        unreachable!();
    };
    let minute = HeaderValue::from_static("60");
    unauthorized.headers.insert(RETRY_AFTER, minute);
    let unauthorized = Answer::Reply(unauthorized);
    scene.middle.respond_next(Verb::Patch, 1000, unauthorized);
    let agent = scene.gates.agent(name, &scene.kubeconfig, &[]);
    scene.gates.open_both();
    looks_again(&agent).await;
    is_used_soon(&scene, Verb::Patch, || {
        scene.middle.respond_as_usual();
        rename_into_place(&scene, "token", &scene.new_token);
    })
    .await;
    let is_gone = |node: &_| own_taints(node) == OTHERS;
    cluster.wait_for_node(name, is_gone).await.unwrap();
}

/// Conditions and Events do not delay a removal. Their waits grow to 30 s or more.
#[tokio::test]
async fn a_token_that_comes_late_is_used_soon_for_conditions_and_events() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let condition = "  publishCondition: {type: example.com/Ready}\n";
    // With open gates, the agent writes the Event of the removal.
    for (name, more, are_open) in [
        ("late-token-of-condition", condition, false),
        ("late-token-of-event", "events: true\n", true),
    ] {
        let scene = Scene::new(cluster, name).await;
        let unauthorized = Answer::failure(401, "Unauthorized", "Unauthorized");
        scene.middle.respond_next(Verb::Other, 1000, unauthorized);
        scene.gates.configure(&scene.gates.rule(more));
        let agent = scene.gates.agent(name, &scene.kubeconfig, &[]);
        if are_open {
            scene.gates.open_both();
        }
        // The next wait is between 8 s and 16 s.
        refused(&scene, &agent, Verb::Other, 5).await;
        is_used_soon(&scene, Verb::Other, || {
            scene.middle.respond_as_usual();
            rename_into_place(&scene, "token", &scene.new_token);
        })
        .await;
    }
}

#[tokio::test]
async fn a_certificate_authority_that_comes_late_is_used_soon() {
    let Some(cluster) = cluster::shared().await else {
        return;
    };
    let name = "late-ca";
    let scene = Scene::new(cluster, name).await;
    let agent = scene.gates.agent(name, &scene.kubeconfig, &[]);
    agent.wait_for_message("watching the Node").await.unwrap();
    scene.middle.rotate_certificates().unwrap();
    scene.proxy.reset_connections();
    let connections = scene.proxy.connections();
    let failures = scene.proxy.wait_for_connections(connections + FAILURES);
    failures.await.unwrap();
    looks_again(&agent).await;
    is_used_soon(&scene, Verb::Watch, || {
        rename_into_place(&scene, "ca.crt", &scene.middle.authority());
    })
    .await;
}
