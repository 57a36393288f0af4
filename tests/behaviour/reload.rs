//! The configuration file changes while the agent runs.

mod several;
mod under_way;

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::Value;
use testkit::agent::Agent;
use testkit::api::Verb;
use testkit::config_map::{ConfigMap, HEAD};

use crate::scene::{Gates, OnCluster, OnStandIn, TAINT};

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];
const NEW: &str = "example.com/new:NoSchedule";
/// A rule for the taint [`NEW`].
const NEW_RULE: &str = "- {name: new, taint: {key: example.com/new}, gates: []}\n";
const RELOADED: &str = "reloaded the configuration";

async fn configuration(agent: &Agent) -> Value {
    agent.status().await.unwrap()["configuration"].clone()
}

/// configmap-reload#190 (A21).
#[tokio::test]
async fn twenty_swaps_of_a_configmap_are_twenty_reloads_and_the_same_content_is_none() {
    let Some(scene) = OnCluster::with("swaps", &[TAINT], Gates::closed().await).await else {
        return;
    };
    let rules = |version: usize| scene.gates.rule("") + &format!("# {version}\n");
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &rules(0));
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    for version in 1..=20 {
        map.swap(&rules(version));
        agent.wait_for_count(RELOADED, version).await.unwrap();
        let same = "read the configuration; it is the active one";
        let looks = agent.count(same);
        map.swap(&rules(version));
        agent.wait_for_count(same, looks + 1).await.unwrap();
    }
    map.swap_files(None);
    let bad = "the configuration file is invalid; continuing with the active configuration";
    agent.wait_for_message(bad).await.unwrap();
    assert_eq!(agent.count(RELOADED), 20);
    let status = configuration(&agent).await;
    assert_eq!(
        (&status["reloads"], &status["failedReloads"]),
        (&20.into(), &1.into()),
        "{status:#}"
    );
    assert_eq!(agent.count("saw the taint"), 1, "the rule is what it was");
}

#[tokio::test]
async fn what_stays_the_same_keeps_what_it_knows_and_not_one_probe_is_made_again() {
    let Some(scene) = OnCluster::with("keeps", &[TAINT, NEW], Gates::closed().await).await else {
        return;
    };
    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let once = format!(
        "  - {{name: once, httpGet: {{port: {}}}, periodSeconds: 3600}}\n",
        scene.gates.health.port()
    );
    let silence = format!(
        "  - {{name: silence, httpGet: {{port: {}}}, timeoutSeconds: 3600}}\n",
        silent.local_addr().unwrap().port()
    );
    let head = "- name: kept\n  taint: {key: example.com/not-ready}\n";
    let kept = format!("{head}  gates:\n{once}{silence}");
    scene.gates.health.set(200);
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &kept);
    let agent = scene.agent(&LISTEN);
    let is_open = |line: &Value| line["gate"] == "once" && line["state"] == "open";
    agent.wait_for_log(is_open).await.unwrap();
    agent.wait_for_message("saw the taint").await.unwrap();
    let before = agent.status().await.unwrap()["rules"][0].clone();

    // Another rule is added before it.
    map.swap(&format!("{NEW_RULE}{kept}"));
    scene.wait_for_taints(&[TAINT]).await;
    let after = agent.status().await.unwrap();
    assert_eq!(after["rules"][0]["name"], "new");
    assert_eq!(after["rules"][1], before);

    // The rule itself changes, and the other rule is deleted.
    let more = "  - {name: more, file: {path: /does/not/exist}}\n";
    map.swap(&format!(
        "{head}  stableFor: 1ms\n  gates:\n{more}{silence}{once}"
    ));
    let is_closed = |line: &Value| line["gate"] == "more" && line["state"] == "closed";
    agent.wait_for_log(is_closed).await.unwrap();
    let after = agent.status().await.unwrap();
    assert_eq!(after["rules"].as_array().unwrap().len(), 1);
    let after = &after["rules"][0];
    assert_eq!(after["gates"][1], before["gates"][1]);
    assert_eq!(after["gates"][2], before["gates"][0]);
    assert_eq!(after["since"], before["since"]);

    // One success of the gate `once` is enough, even if the configuration changes.
    map.swap(&format!("{head}  gates:\n{once}"));
    scene.wait_for_taints(&[]).await;
    assert_eq!(scene.gates.health.requests(), 1);
    silent.accept().unwrap();
    silent.set_nonblocking(true).unwrap();
    let second = silent.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(second, Err(ErrorKind::WouldBlock));
    let seen = |line: &&Value| line["message"] == "saw the taint" && line["rule"] == "kept";
    assert_eq!(agent.logs().iter().filter(seen).count(), 1);
}

/// receptor#350 (B30).
#[tokio::test]
async fn a_bad_file_leaves_the_last_good_configuration_active_and_is_seen_everywhere_until_it_is_mended()
 {
    let Some(scene) = OnCluster::with("bad-file", &[TAINT, NEW], Gates::closed().await).await
    else {
        return;
    };
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &scene.gates.rule(""));
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("saw the taint").await.unwrap();
    assert_eq!(agent.get("/readyz").await.unwrap(), (200, "ok\n".into()));
    let good = configuration(&agent).await;
    let file = scene.gates.config().display().to_string();
    assert_eq!(good["source"], file.as_str());

    let unknown = format!("{HEAD}{NEW_RULE}more: x\n");
    let yaml = format!("{HEAD}- [\n");
    let cases = [
        (Some(yaml.as_str()), ":4:3: unclosed bracket"),
        (Some(&unknown), ":5:1: more: "),
        (Some(""), ": is empty; "),
        (None, ": cannot be read: no such file or directory"),
    ];
    for (index, (text, why)) in cases.into_iter().enumerate() {
        map.swap_files(text);
        let expected = format!("{file}{why}");
        let is_it = |line: &Value| {
            let problem = line["problem"].as_str().unwrap_or_default();
            line["level"] == "ERROR" && problem.starts_with(&expected)
        };
        let bad = "the configuration file is invalid; continuing with the active configuration";
        agent.wait_for_count(bad, index + 1).await.unwrap();
        let line = agent.wait_for_log(is_it).await.unwrap();
        assert_eq!(line["message"], bad);

        let (code, body) = agent.get("/readyz").await.unwrap();
        assert_eq!(code, 503);
        assert!(body.contains(&expected), "{body}");
        let status = configuration(&agent).await;
        let failure = &status["lastFailure"];
        let message = failure["message"].as_str().unwrap();
        assert!(message.starts_with(&expected), "{message}");
        assert!(failure["time"].as_str() > good["loaded"].as_str());
        assert_eq!(
            (&status["failing"], &status["failedReloads"]),
            (&true.into(), &(index + 1).into())
        );
        for field in ["sha256", "loaded", "reloads"] {
            assert_eq!(status[field], good[field], "{field}");
        }
    }
    for index in 4..12 {
        let text = format!("apiVersion: untaint/v1alpha1\nkind: Kind{index}\n");
        map.swap_files(Some(&text));
        let text = format!("Kind{index}");
        let is_it = |line: &Value| line["problem"].to_string().contains(&text);
        agent.wait_for_log(is_it).await.unwrap();
    }
    let logs = agent.logs();
    let errors = logs.iter().filter(|line| line["level"] == "ERROR");
    assert_eq!(errors.count(), 10, "no more in a minute");
    scene.gates.open_both();
    scene.wait_for_taints(&[NEW]).await;

    map.swap(NEW_RULE);
    scene.wait_for_taints(&[]).await;
    assert_eq!(agent.get("/readyz").await.unwrap(), (200, "ok\n".into()));
    let status = configuration(&agent).await;
    assert_eq!(
        (&status["failing"], &status["reloads"]),
        (&false.into(), &1.into())
    );
    assert!(status["loaded"].as_str() > good["loaded"].as_str());
    assert_ne!(status["sha256"], good["sha256"]);
}

#[tokio::test]
async fn a_dry_run_of_the_command_line_is_one_for_rules_that_come_later_too() {
    let scene = OnStandIn::with(&[TAINT, NEW], Gates::closed().await).await;
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &scene.gates.rule(""));
    let agent = scene.agent(&["--dry-run"]);
    agent.wait_for_message("saw the taint").await.unwrap();
    map.swap(NEW_RULE);
    let would = agent
        .wait_for_message("would remove the taint (dry run)")
        .await;
    assert_eq!(would.unwrap()["rule"], "new");
    assert_eq!(scene.count(Verb::Patch), 0);
}

#[tokio::test]
async fn a_run_that_ends_by_itself_does_so_by_the_configuration_that_it_began_with() {
    let scene = OnStandIn::with(&[TAINT, NEW], Gates::closed().await).await;
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &scene.gates.rule(""));
    let mut agent = scene.agent(&["--once", "--settle", "1s"]);
    agent.wait_for_message("saw the taint").await.unwrap();
    map.swap(NEW_RULE);
    scene.gates.open_both();
    assert_eq!(agent.exit_code().await.unwrap(), 0);
    scene.wait_for_taints(&[NEW]).await;
    assert_eq!(agent.count(RELOADED), 0);
}
