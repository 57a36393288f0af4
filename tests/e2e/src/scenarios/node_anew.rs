use anyhow::Result;

use crate::habitat::Habitat;
use crate::node::NAME;
use crate::stand_in::{self, KEY};
use crate::timeline::World;

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    habitat.install(stand_in::CONFIGURATION, &[]).await?;
    stand_in::deploy(habitat).await?;
    let mut node = habitat.node(&[&format!("{KEY}:NoExecute")])?;
    node.up().await?;
    stand_in::go(&node)?;
    timeline
        .wait("the taint is gone", |world| world.lacks_taint(NAME, KEY))
        .await?;
    let old = timeline.until("a Node", uid).await?;

    habitat.cluster.delete_node(NAME).await?;
    node.restart("kubelet").await?;
    timeline.say("the Node is deleted, and the kubelet restarted");
    let is_new = |world: &World| uid(world).is_some_and(|uid| uid != old);
    timeline.wait("another Node", is_new).await?;
    let made = timeline.when(is_new);
    let tainted = timeline.when(|world| is_new(world) && world.has_taint(NAME, KEY));
    habitat.expect(
        "the Node has another uid, and the taint from its first moment",
        made.is_some() && made == tainted,
    );
    let untainted = |world: &World| is_new(world) && world.lacks_taint(NAME, KEY);
    let gone = timeline.wait("no taint", untainted);
    let sentence = "untaint removes the taint of the new Node too";
    let gone = habitat.comes_true(sentence, gone).await?;
    if let Some(made) = made {
        habitat.measured(
            "from the new Node to the end of its taint",
            gone.duration_since(made)?,
        );
    }
    stand_in::create_app(habitat, "app").await?;
    let answered = timeline.wait("an answer", |world| world.pod_is_ready("default/app"));
    let sentence = "an ordinary pod runs on it";
    habitat.comes_true(sentence, answered).await?;
    Ok(())
}

fn uid(world: &World) -> Option<String> {
    let node = world.nodes.get(NAME)?;
    Some(node["metadata"]["uid"].as_str()?.to_owned())
}
