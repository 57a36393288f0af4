use std::fs;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use testkit::cluster::AuditEntry;

use crate::agent;
use crate::commands;
use crate::eventually::eventually_async;
use crate::habitat::Habitat;
use crate::images;
use crate::node::{NAME, Node};
use crate::stand_in::{self, CONFIGURATION, CONFLIST, KEY};
use crate::timeline::{Timeline, World};

/// The last gate is a file: the scenario creates it, so it knows exactly when the gate opens.
const LAST_GATE: &str = "  - name: last
    file: {path: /run/stand-in/last}
";
const LAST: &str = "/run/stand-in/last";
const APP: &str = "default/app";
/// How often the time is measured after that, each time with a taint and a gate of its own: untaint does not remove a
/// taint at full speed again and again.
const SAMPLES: usize = 12;
/// The time of untaint itself.
const SHARE: Duration = Duration::from_millis(10);

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let timeline = &habitat.timeline;
    habitat.install(&configuration(), &[]).await?;
    stand_in::create_app(habitat, "app").await?;
    let mut taints = vec![format!("{KEY}:NoExecute")];
    // Pods do not wait for these.
    taints.extend((0..SAMPLES).map(|sample| format!("{}:PreferNoSchedule", key(sample))));
    let taints: Vec<&str> = taints.iter().map(String::as_str).collect();
    let mut node = habitat.node(&taints)?;
    node.up().await?;

    let exists = |world: &World| world.nodes.contains_key(NAME);
    let tainted = |world: &World| world.has_taint(NAME, KEY);
    let ready = |world: &World| world.is_ready(NAME);
    timeline.wait("the Node is there", exists).await?;
    habitat.expect(
        "the Node has its taint, and is not Ready, from its first moment",
        timeline
            .when(|world| exists(world) && tainted(world) && !ready(world))
            .is_some()
            && timeline.when(exists) == timeline.when(tainted),
    );
    // The kubelet asks whether it is ready only every 10 s.
    agent::ready().await?;
    timeline.say("untaint is ready");
    habitat.expect(
        "untaint runs before there is a network of pods",
        timeline.when(ready).is_none(),
    );

    stand_in::deploy(habitat).await?;
    node.wait_for_path(CONFLIST).await?;
    timeline.say("the conflist is there");
    let conflist = fs::metadata(node.path(CONFLIST)?)?.modified()?;
    let is_ready = timeline.wait("the Node is Ready", ready).await?;
    agent::waits_for("network", &["agent", "last"]).await?;
    explain(habitat)?;
    stand_in::go(&node)?;
    timeline.say("the stand-in makes its network");
    agent::waits_for("network", &["last"]).await?;
    timeline.say("untaint sees that the network works");
    let opened = open(habitat, &node, LAST)?;
    let gone = timeline
        .wait("the taint is gone", |world| world.lacks_taint(NAME, KEY))
        .await?;
    let answered = timeline.wait("an answer", |world| world.pod_is_ready(APP));
    let sentence = "the first request of the pod to the network has an answer";
    habitat.comes_true(sentence, answered).await?;

    let has_address = |world: &World| field(world, "/status/podIP").is_some();
    let changes = [
        timeline.version_when(ready),
        timeline.version_when(|world| world.lacks_taint(NAME, KEY)),
        timeline.version_when(|world| field(world, "/spec/nodeName").is_some()),
        timeline.version_when(has_address),
    ];
    habitat.expect(
        "in this order: conflist, Node Ready, last gate open, taint gone, pod scheduled, pod has an address",
        [conflist, is_ready, opened, gone].is_sorted() && Timeline::in_order(&changes),
    );
    let address = timeline
        .until("an address", |world| field(world, "/status/podIP"))
        .await?;
    habitat.expect(
        "the address is one of the stand-in",
        address.starts_with("10.98.0."),
    );

    let removal = removal_after(habitat, opened).await?;
    habitat.measured(
        "from the last gate to the arrival of the PATCH",
        removal.share,
    );
    habitat.measured(
        "from the arrival of the PATCH to its answer",
        removal.server,
    );
    let watched = gone.duration_since(opened)?;
    habitat.measured("from the last gate to the watch of the Node", watched);
    if let Some(runs) = timeline.when(has_address) {
        habitat.measured(
            "from the last gate to the pod's address",
            runs.duration_since(opened)?,
        );
    }
    measure(habitat, &node).await
}

/// Asks as a person at a laptop does. The answer comes from the agent, through the API server and the kubelet.
fn explain(habitat: &Habitat) -> Result<()> {
    let program = std::env::current_exe()?.with_file_name("kubectl-untaint");
    let kubeconfig = habitat.cluster.admin_kubeconfig().display().to_string();
    let words = ["explain", NAME, "--kubeconfig", &kubeconfig];
    let said = commands::run(&program.display().to_string(), &words)?;
    for line in said.lines() {
        habitat.timeline.say(line);
    }
    let expected = [
        "rule network waits for the gate agent",
        "gate agent is closed: ",
        "gate last is closed: ",
    ];
    habitat.expect(
        "`kubectl untaint explain` shows the gates that the agent waits for",
        expected.iter().all(|text| said.contains(text)),
    );
    Ok(())
}

/// A rule for the network, and one for each sample.
fn configuration() -> String {
    let rule = |sample: usize| {
        format!(
            r"- name: sample-{sample}
  taint: {{key: {}}}
  gates:
  - name: last
    file: {{path: {}}}
",
            key(sample),
            file(sample)
        )
    };
    let samples: Vec<_> = (0..SAMPLES).map(rule).collect();
    format!("{CONFIGURATION}{LAST_GATE}{}", samples.concat())
}

fn key(sample: usize) -> String {
    format!("sample-{sample}.example.com/not-ready")
}

fn file(sample: usize) -> String {
    format!("/run/stand-in/sample-{sample}")
}

/// A field of the app.
fn field(world: &World, pointer: &str) -> Option<String> {
    let field = world.pods.get(APP)?.pointer(pointer)?;
    Some(field.as_str()?.to_owned())
}

/// Opens the gate for this file, and returns when that was.
fn open(habitat: &Habitat, node: &Node, file: &str) -> Result<SystemTime> {
    // The file has its name just after this.
    let now = SystemTime::now();
    node.write(file, "")?;
    habitat
        .timeline
        .say(&format!("the file {file} opens a gate"));
    Ok(now)
}

/// The times of a removal.
struct Removal {
    /// From the opening of the last gate to the arrival of the PATCH at the API server: what untaint takes.
    share: Duration,
    /// From there to the answer: what the API server takes, with its policy.
    server: Duration,
}

/// The times of the first PATCH of untaint after `from`, by the audit log, which has the times of the same clock.
async fn removal_after(habitat: &Habitat, from: SystemTime) -> Result<Removal> {
    let from = Timestamp::try_from(from)?;
    // untaint tries out the policy with a dry run.
    let is_patch = |entry: &AuditEntry| {
        entry.verb == "patch"
            && entry.user == "system:serviceaccount:untaint:untaint"
            && entry.code == Some(200)
            && !entry.uri.contains("dryRun")
    };
    // The watch of the Node can be faster than the answer to the PATCH, which the log waits for.
    eventually_async("a PATCH of untaint in the audit log", async || {
        let patches = habitat.cluster.requests(is_patch).await.ok()?;
        // The share of an earlier one is negative.
        patches.into_iter().find_map(|patch| {
            let received: Timestamp = patch.received.parse().ok()?;
            let answered: Timestamp = patch.answered.parse().ok()?;
            Some(Removal {
                share: received.duration_since(from).try_into().ok()?,
                server: answered.duration_since(received).try_into().ok()?,
            })
        })
    })
    .await
}

/// Measures more removals.
async fn measure(habitat: &Habitat, node: &Node) -> Result<()> {
    let mut removals = Vec::new();
    for sample in 0..SAMPLES {
        let opened = open(habitat, node, &file(sample))?;
        let gone = |world: &World| world.lacks_taint(NAME, &key(sample));
        habitat.timeline.wait("the taint is gone", gone).await?;
        removals.push(removal_after(habitat, opened).await?);
    }
    let show = |what: &str, time: fn(&Removal) -> Duration| {
        let mut times: Vec<_> = removals.iter().map(time).collect();
        times.sort();
        let text: Vec<_> = times
            .iter()
            .map(|time| format!("{:.1}", time.as_secs_f64() * 1e3))
            .collect();
        habitat
            .timeline
            .say(&format!("{what}, in ms: {}", text.join(" ")));
        times
    };
    let shares = show("from gate to PATCH", |removal| removal.share);
    show("from PATCH to answer", |removal| removal.server);
    // Whatever else runs on the machine only adds to these times, so the shorter ones show more of untaint.
    let quarter = shares.get(shares.len() / 4).context("a time")?;
    let limit = SHARE.as_millis();
    let sentence =
        format!("the fastest quarter of the times from gate to PATCH takes at most {limit} ms");
    if images::is_debug_build()? {
        let text =
            format!("a debug build is not judged; with a release build as PROGRAM: {sentence}");
        habitat.timeline.say(&text);
    } else {
        habitat.expect(&sentence, *quarter <= SHARE);
    }
    Ok(())
}
