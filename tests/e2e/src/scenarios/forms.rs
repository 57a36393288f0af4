use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::habitat::{Habitat, RUN};
use crate::node::NAME;
use crate::stand_in::{self, KEY};
use crate::timeline::World;

const SIDECAR: &str = r"
apiVersion: untaint/v1alpha1
kind: UntaintConfiguration
rules:
- name: network
  taint: {key: stand-in.example.com/not-ready, effect: NoExecute}
  gates:
  - name: conflist
    cniConfig: {network: stand-in, plugins: [bridge], first: true}
  - name: agent
    httpGet: {port: 9879, path: /healthz}
";

/// `run --once` waits for 1 s, and reads the Node once more. Then the kubelet starts what comes next.
const SOON: Duration = Duration::from_secs(10);

/// A form whose example DaemonSet is applied as it is.
struct Example {
    form: &'static str,
    configuration: &'static str,
    namespace: &'static str,
    key: &'static str,
}

const EXAMPLES: [Example; 2] = [
    Example {
        form: "init-container",
        configuration: include_str!("../../../../examples/init-container.yaml"),
        namespace: "storage",
        key: "storage.example.com/agent-not-ready",
    },
    Example {
        form: "post-start",
        configuration: include_str!("../../../../examples/post-start.yaml"),
        namespace: "vendor",
        key: "vendor.example.com/agent-not-ready",
    },
];

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    stand_in::deploy(habitat).await?;
    add_sidecar(habitat).await?;
    for example in &EXAMPLES {
        apply(habitat, example).await?;
    }
    stand_in::create_app(habitat, "app").await?;

    let mut taints = vec![format!("{KEY}:NoExecute")];
    taints.extend(
        EXAMPLES
            .iter()
            .map(|example| format!("{}:NoSchedule", example.key)),
    );
    let taints: Vec<&str> = taints.iter().map(String::as_str).collect();
    let mut node = habitat.node(&taints)?;
    node.up().await?;
    timeline.wait("the sidecar runs", sidecar_runs).await?;
    timeline
        .wait("the Node is Ready", |world| world.is_ready(NAME))
        .await?;
    // A sidecar serves no status page.
    for text in [
        r#""gate":"conflist","state":"open""#,
        r#""gate":"agent","state":"closed","reason":"127.0.0.1:9879: GET /healthz: 404"#,
    ] {
        node.wait_for_log("stand-in_stand-in-*/untaint", text, 1)
            .await?;
    }
    habitat.expect(
        "sidecar: the taint stays while the network does not work",
        timeline
            .when(|world| world.lacks_taint(NAME, KEY))
            .is_none(),
    );
    stand_in::go(&node)?;
    let gone = timeline.wait("no taint", |world| world.lacks_taint(NAME, KEY));
    let sentence = "sidecar: the taint goes when the network works";
    habitat.comes_true(sentence, gone).await?;

    for example in &EXAMPLES {
        let gone = |world: &World| world.lacks_taint(NAME, example.key);
        let sentence = format!("{}: the taint goes", example.form);
        habitat
            .comes_true(&sentence, timeline.wait("no taint", gone))
            .await?;
        let ready = |world: &World| world.pod_is_ready(&format!("{}/", example.namespace));
        timeline.wait(example.form, ready).await?;
        let (gone, ready) = (timeline.when(gone), timeline.when(ready));
        let after = ready
            .zip(gone)
            .map(|(ready, gone)| ready.duration_since(gone));
        habitat.expect(
            &format!("{}: its pod is ready soon after that", example.form),
            // An error means that it is ready before that.
            after.is_some_and(|after| after.is_ok_and(|after| after <= SOON)),
        );
    }
    let answered = timeline.wait("an answer", |world| world.pod_is_ready("default/app"));
    let sentence = "an ordinary pod runs when all three taints are gone";
    habitat.comes_true(sentence, answered).await?;
    Ok(())
}

/// Adds untaint to the DaemonSet of the stand-in, as the documents describe it: the parts, then the patch.
async fn add_sidecar(habitat: &Habitat) -> Result<()> {
    let sidecar = [
        "--form",
        "sidecar",
        "--namespace",
        "stand-in",
        "--service-account",
        "stand-in",
    ];
    let parts = [&sidecar[..], &["--only", "rbac,policy,config"]].concat();
    habitat.install(SIDECAR, &parts).await?;
    let patch = [&sidecar[..], &["--patch", "stand-in"]].concat();
    let file = format!("{RUN}/patch.yaml");
    fs::write(&file, habitat.manifests(SIDECAR, &patch)?)?;
    let patch = [
        "patch",
        "daemonset",
        "stand-in",
        "--namespace",
        "stand-in",
        "--patch-file",
        &file,
    ];
    habitat.cluster.kubectl(&patch).await?;
    Ok(())
}

async fn apply(habitat: &Habitat, example: &Example) -> Result<()> {
    let namespace = example.namespace;
    habitat
        .cluster
        .kubectl(&["create", "namespace", namespace])
        .await?;
    let account = [
        "create",
        "serviceaccount",
        "agent",
        "--namespace",
        namespace,
    ];
    habitat.cluster.kubectl(&account).await?;
    let form = ["--form", example.form, "--namespace", namespace];
    let arguments = [
        &form[..],
        &["--service-account", "agent", "--strict-policy"],
    ]
    .concat();
    habitat.install(example.configuration, &arguments).await
}

/// Whether the container of untaint has started in the pod of the stand-in.
fn sidecar_runs(world: &World) -> bool {
    world.pods_like("stand-in/").any(|pod| {
        let containers = pod["status"]["initContainerStatuses"].as_array();
        let mut containers = containers.into_iter().flatten();
        containers.any(|one| one["name"] == "untaint" && one["started"] == true)
    })
}
