use anyhow::Result;

use crate::habitat::Habitat;
use crate::node::NAME;
use crate::stand_in::{self, KEY};
use crate::timeline::World;

/// Everything that a kubelet and a runtime can know, and nothing of the agent.
const CONFIGURATION: &str = r"
apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: network
  taint: {key: stand-in.example.com/not-ready, effect: NoExecute}
  gates:
  - name: conflist
    cniConfig: {network: stand-in, plugins: [bridge], first: true}
  - name: node
    nodeCondition: {type: Ready}
";

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    habitat.install(CONFIGURATION, &[]).await?;
    stand_in::deploy(habitat).await?;
    stand_in::create_app(habitat, "app").await?;
    let mut node = habitat.node(&[&format!("{KEY}:NoExecute")])?;
    node.up().await?;

    let ended = timeline
        .until("the app ends", |world| world.ended("default/app"))
        .await?;
    timeline.say(&format!("the app: {}", ended["message"]));
    habitat.expect(
        "the Node is Ready and without its taint before its network works",
        timeline
            .when(|world| world.is_ready(NAME) && world.lacks_taint(NAME, KEY))
            .is_some(),
    );
    let message = ended["message"].as_str().unwrap_or_default();
    habitat.expect(
        "the pod runs, and its first request to the network fails",
        ended["exitCode"] == 1 && message.contains("nc: "),
    );

    stand_in::go(&node)?;
    stand_in::create_app(habitat, "later").await?;
    let answered = |world: &World| world.pod_is_ready("default/later");
    let sentence = "the same request has an answer when the network works";
    let answered = timeline.wait("an answer", answered);
    habitat.comes_true(sentence, answered).await?;
    Ok(())
}
