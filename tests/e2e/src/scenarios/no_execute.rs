use anyhow::{Result, ensure};

use super::flannel::{self, EXAMPLE, KEY};
use crate::agent;
use crate::client;
use crate::habitat::Habitat;
use crate::node::NAME;
use crate::timeline::World;

const NAMESPACE: &str = "kube-flannel";
const DAEMON_SET: &str = "kube-flannel-ds";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    let line = format!("key: {KEY}\n");
    ensure!(EXAMPLE.contains(&line), "the example has no {line}");
    let with_effect = format!("{line}    effect: NoExecute\n");
    let configuration = EXAMPLE.replace(&line, &with_effect);
    let warnings = habitat.validate(&configuration)?;
    timeline.say(&format!("config validate: {}", warnings.trim()));
    let cause = "tolerate only NoSchedule, such as Flannel's";
    let remedy = "use the effect NoSchedule";
    habitat.expect(
        "`config validate` warns that the effect keeps Flannel away, and says what to do",
        warnings.contains(cause) && warnings.contains(remedy),
    );

    habitat.install(&configuration, &[]).await?;
    flannel::deploy(habitat).await?;
    client::create(habitat).await?;
    let mut node = habitat.node(&[&format!("{KEY}:NoExecute")])?;
    node.up().await?;
    let messages = agent::waits_for("flannel", &["conflist", "lease"]).await?;
    timeline.say(&format!("untaint says: {}", messages.join("; ")));
    // untaint runs, so the controller of DaemonSets knows the Node.
    let daemon_set = format!("{NAMESPACE}/{DAEMON_SET}");
    let desired = |world: &World| {
        world.daemon_sets.get(&daemon_set)?["status"]["desiredNumberScheduled"].as_u64()
    };
    let desired = timeline.until("a number of pods", desired).await?;
    habitat.expect(
        "the DaemonSet of Flannel has no pod: DESIRED is 0",
        desired == 0,
    );
    let progress = |world: &World| world.lacks_taint(NAME, KEY) || world.is_ready(NAME);
    habitat.expect(
        "the Node is not Ready, and keeps its taint",
        timeline.when(progress).is_none(),
    );

    let patch = r#"[{"op": "replace", "path": "/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]}]"#;
    let words = ["--namespace", NAMESPACE, "patch", "daemonset", DAEMON_SET];
    let words = [&words[..], &["--type", "json", "--patch", patch]].concat();
    habitat.cluster.kubectl(&words).await?;
    timeline.say("the DaemonSet tolerates every taint");
    let goes = timeline.wait("no taint", |world| world.lacks_taint(NAME, KEY));
    let sentence = "with a DaemonSet that tolerates the taint, the taint goes";
    habitat.comes_true(sentence, goes).await?;
    let connects = client::connects(habitat);
    let sentence = "an ordinary pod runs, and its first connection works";
    habitat.comes_true(sentence, connects).await?;
    Ok(())
}
