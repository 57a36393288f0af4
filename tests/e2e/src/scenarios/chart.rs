use std::time::SystemTime;

use anyhow::{Context as _, Result};

use super::flannel::{self, KEY};
use crate::agent;
use crate::client;
use crate::commands;
use crate::habitat::Habitat;
use crate::images::UNTAINT;
use crate::node::NAME;
use crate::timeline::World;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/chart");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/flannel.yaml");

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    flannel::deploy(habitat).await?;
    client::create(habitat).await?;
    let mut node = habitat.node(&[&format!("{KEY}:NoSchedule")])?;
    node.up().await?;
    let ready = |world: &World| world.is_ready(NAME);
    timeline.wait("the Node is Ready", ready).await?;
    habitat.expect(
        "without untaint, the Node is Ready and keeps its taint",
        timeline
            .when(|world| world.lacks_taint(NAME, KEY))
            .is_none(),
    );

    let (image, _) = UNTAINT.split_once(':').context("a tag")?;
    let image = format!("image.repository={image}");
    let from = SystemTime::now();
    let install = [
        "install",
        "untaint",
        CHART,
        "--namespace",
        "untaint",
        "--create-namespace",
    ];
    let values = ["--values", EXAMPLE, "--set", &image];
    let notes = helm(habitat, &[&install[..], &values].concat())?;
    timeline.say("`helm install` has ended");
    for line in notes.lines() {
        timeline.say(line);
    }
    let gone = timeline.wait("no taint", |world| world.lacks_taint(NAME, KEY));
    let sentence = "the taint goes after `helm install`";
    let gone = habitat.comes_true(sentence, gone).await?;
    habitat.measured(
        "from `helm install` to the end of the taint",
        gone.duration_since(from)?,
    );
    let connects = client::connects(habitat);
    let sentence = "an ordinary pod runs, and its first connection works";
    habitat.comes_true(sentence, connects).await?;
    let held = agent::status("a policy", |status| status["policy"]["state"] == "held");
    let sentence = "the policy of the chart restricts the account";
    habitat.comes_true(sentence, held).await?;
    let pods = ["get", "pods", "--namespace", "untaint"];
    let pods = habitat.cluster.kubectl(&pods).await?;
    timeline.say(pods.trim_end());
    habitat.expect(
        "`kubectl get pods` shows the pod of the node",
        pods.lines().count() == 2 && pods.contains(" Running "),
    );

    helm(
        habitat,
        &["uninstall", "untaint", "--namespace", "untaint", "--wait"],
    )?;
    let gone = |world: &World| world.pods_like("untaint/").next().is_none();
    let gone = timeline.wait("no pods", gone);
    habitat
        .comes_true("`helm uninstall` removes the pods", gone)
        .await?;
    let kinds = "clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,\
         validatingadmissionpolicies,validatingadmissionpolicybindings";
    let selector = "--selector=app.kubernetes.io/name=untaint";
    let rights = ["get", kinds, "--all-namespaces", selector, "--output=name"];
    let rights = habitat.cluster.kubectl(&rights).await?;
    habitat.expect(
        "it removes the roles, the policy and the account",
        rights.is_empty(),
    );
    Ok(())
}

/// Runs Helm, and returns what it prints.
fn helm(habitat: &Habitat, arguments: &[&str]) -> Result<String> {
    let program = habitat.programs("helm").join("helm");
    let kubeconfig = habitat.cluster.admin_kubeconfig();
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let arguments = [arguments, &[&kubeconfig]].concat();
    commands::run(&program.display().to_string(), &arguments)
}
