//! Several configuration files and directories.

use std::fs;

use serde_json::Value;
use testkit::agent::{Agent, write_configuration};
use testkit::config_map::ConfigMap;

use super::{LISTEN, NEW, NEW_RULE, RELOADED, configuration};
use crate::scene::{Gates, OnCluster, OnStandIn, TAINT};

const OTHER: &str = "example.com/other:NoSchedule";
const OTHER_RULE: &str = "- {name: other, taint: {key: example.com/other}, gates: []}\n";
const BAD: &str = "the configuration file is invalid; continuing with the active configuration";

/// Waits until a problem of the configuration begins like this.
async fn problem(agent: &Agent, beginning: &str) {
    let is_it = |line: &Value| {
        let problem = line["problem"].as_str().unwrap_or_default();
        line["message"] == BAD && problem.starts_with(beginning)
    };
    agent.wait_for_log(is_it).await.unwrap();
}

#[tokio::test]
async fn files_and_a_mounted_configmap_of_other_teams_are_one_configuration_that_each_can_change() {
    let taints = [TAINT, NEW, OTHER];
    let Some(scene) = OnCluster::with("teams", &taints, Gates::closed().await).await else {
        return;
    };
    let mounted = scene.gates.dir.path().join("conf.d");
    fs::create_dir(&mounted).unwrap();
    let mut map = ConfigMap::mount_all(&mounted, &[("new.yaml", NEW_RULE)]);
    let directory = mounted.to_str().unwrap();
    let agent = scene.agent(&[&LISTEN[..], &["--config", directory]].concat());
    scene.wait_for_taints(&[TAINT, OTHER]).await;
    let config = scene.gates.config().display().to_string();
    let good = configuration(&agent).await;
    assert_eq!(good["source"], format!("{config}, {directory}"));
    // All that follows is done without another look at this rule.
    agent.wait_for_message("saw the taint").await.unwrap();
    let saw = |agent: &Agent| {
        let is_it = |line: &&Value| line["message"] == "saw the taint" && line["rule"] == "cni";
        agent.logs().iter().filter(is_it).count()
    };

    // A team takes the name of another team's rule.
    let taken = OTHER_RULE.replace("other,", "cni,");
    map.swap_all(&[("new.yaml", NEW_RULE), ("other.yaml", &taken)]);
    let other = format!("{directory}/other.yaml");
    problem(
        &agent,
        &format!(
            "{other}:4:10: rules[0].name: must be unique, but is also the name at {config}:4:3"
        ),
    )
    .await;
    let (code, body) = agent.get("/readyz").await.unwrap();
    assert_eq!(code, 503);
    assert!(body.contains(&other), "{body}");
    let bad = configuration(&agent).await;
    assert_eq!(
        (&bad["failing"], &bad["sha256"]),
        (&true.into(), &good["sha256"])
    );

    // The same key is mended, another goes, and the taint of the rule that goes is not touched any more.
    map.swap_all(&[("other.yaml", OTHER_RULE)]);
    scene.wait_for_taints(&[TAINT]).await;
    agent.wait_for_message(RELOADED).await.unwrap();
    assert_eq!(agent.get("/readyz").await.unwrap().0, 200);
    let status = agent.status().await.unwrap();
    let names = status["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["cni", "other"]);
    scene.set_taints(&[TAINT, NEW]).await;

    // The directory becomes empty, and the last good configuration of all stays at work.
    map.swap_all(&[]);
    problem(
        &agent,
        &format!("{directory}: is a directory without a file"),
    )
    .await;
    scene.gates.open_both();
    scene.wait_for_taints(&[NEW]).await;
    scene.set_taints(&[NEW, OTHER]).await;
    scene.wait_for_taints(&[NEW]).await;
    assert_eq!(saw(&agent), 1, "the rule is what it was");

    map.swap_all(&[("a.yml", NEW_RULE)]);
    scene.wait_for_taints(&[]).await;
    assert_eq!(agent.get("/readyz").await.unwrap().0, 200);
}

#[tokio::test]
async fn several_files_come_from_the_environment_and_each_is_followed() {
    let scene = OnStandIn::with(&[TAINT, NEW, OTHER], Gates::closed().await).await;
    let at = |name: &str| scene.gates.dir.path().join(name);
    let [new, other] = ["new.yaml", "other"].map(at);
    let elsewhere = "example.com/elsewhere";
    let later = |rule: &str, name: &str| rule.replace(&format!("example.com/{name}"), elsewhere);
    write_configuration(&new, &later(NEW_RULE, "new")).unwrap();
    write_configuration(&other, OTHER_RULE).unwrap();
    let files = [scene.gates.config(), new.clone(), other];
    let files = files.map(|path| path.display().to_string()).join(":");
    let arguments = [
        "run",
        "--node-name",
        "node",
        "--listen",
        "off",
        "--log-level",
        "debug",
        "--kubeconfig",
    ];
    let kubeconfig = scene.kubeconfig.to_str().unwrap();
    let environment = [
        ("UNTAINT_CONFIG", files.as_str()),
        ("UNTAINT_NO_POLICY_CHECK", "true"),
    ];
    let _agent = Agent::start(
        crate::scene::PROGRAM,
        &[&arguments[..], &[kubeconfig]].concat(),
        &environment,
    )
    .unwrap();
    scene.wait_for_taints(&[TAINT, NEW]).await;
    write_configuration(&new, NEW_RULE).unwrap();
    scene.wait_for_taints(&[TAINT]).await;
    scene.gates.open_both();
    scene.wait_for_taints(&[]).await;
}
