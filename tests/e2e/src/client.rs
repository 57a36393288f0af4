//! An ordinary pod, for scenarios with a real CNI.

use anyhow::Result;

use crate::habitat::Habitat;
use crate::node::NAME;
use crate::timeline::World;

const POD: &str = "default/client";

/// Creates it.
pub(crate) async fn create(habitat: &Habitat) -> Result<()> {
    habitat
        .cluster
        .apply(include_str!("../manifests/client.yaml"))
        .await
}

/// Waits until its first connection works.
pub(crate) async fn connects(habitat: &Habitat) -> Result<()> {
    let ready = |world: &World| world.pod_is_ready(POD).then_some(());
    habitat
        .timeline
        .until("the client has a connection", ready)
        .await
}

pub(crate) fn is_scheduled(world: &World) -> bool {
    let pod = world.pods.get(POD);
    pod.is_some_and(|pod| pod["spec"]["nodeName"] == NAME)
}

pub(crate) fn address(world: &World) -> Option<&str> {
    world.pods.get(POD)?["status"]["podIP"].as_str()
}
