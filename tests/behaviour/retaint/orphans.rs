//! A taint that `retaint` has put back, and whose rule is not the same any more, or does not select the Node.

use serde_json::{Value, json};
use testkit::agent::Agent;
use testkit::api::{Answer, Verb};
use testkit::config_map::ConfigMap;

use super::{TAINT, just_booted, retainting};
use crate::metrics::{LISTEN, Page};
use crate::scene::{FOREIGN, Gates, OnCluster, OnStandIn};

const TOOK_OFF: &str = "removed the taint that untaint had put back";
/// The key of a `retaint` with its own key, and its taint.
const OTHER_KEY: &str = "  retaint: {key: example.com/lapsed}\n";
const OTHER: &str = "example.com/lapsed:NoSchedule";
/// What the server says when it denies a request.
const REFUSED: &str = "403: nodes \"node\" is forbidden: no such rule";
/// A rule that has nothing to do.
const ELSEWHERE: &str = "- {name: other, taint: {key: example.com/else}, gates: []}\n";

struct PutBack {
    scene: OnCluster,
    map: ConfigMap,
    agent: Agent,
}

impl PutBack {
    /// A Node of `pool: a` on which the agent has put back the taint `put_back`, because a gate is closed. `None` if the
    /// test was skipped.
    async fn with(
        name: &'static str,
        rules: impl FnOnce(&Gates) -> String,
        put_back: &str,
    ) -> Option<Self> {
        let gates = Gates::open().await;
        gates.health.set(503);
        let map = ConfigMap::mount(gates.dir.path(), &rules(&gates));
        let scene = OnCluster::with(name, &[FOREIGN], gates).await?;
        let created = scene.cluster.backdate_node(name, "2026-01-01T00:00:00Z");
        created.await.unwrap();
        label(&scene, "a").await;
        let agent = just_booted(&scene.gates, name, &scene.kubeconfig, &LISTEN)?;
        scene.wait_for_taints(&[FOREIGN, put_back]).await;
        agent.wait_for_message("put the taint back").await.unwrap();
        Some(Self { scene, map, agent })
    }

    async fn reload(&mut self, rules: &str) {
        let before = self.agent.count("reloaded the configuration");
        self.map.swap(rules);
        let reloaded = self
            .agent
            .wait_for_count("reloaded the configuration", before + 1);
        reloaded.await.unwrap();
    }

    /// `leftTaints` and `done` of the first rule.
    async fn left(&self) -> (Value, Value) {
        let mut status = self.agent.status().await.unwrap();
        (
            status["leftTaints"].take(),
            status["rules"][0]["done"].take(),
        )
    }

    /// The agent decides after the reload, and still has the taint to judge.
    async fn assert_judged(&self, put_back: &str, decision: &str) {
        self.scene.gates.health.wait_for_requests(3).await.unwrap();
        assert_eq!(self.scene.taints().await, [FOREIGN, put_back]);
        let rule = &self.agent.status().await.unwrap()["rules"][0];
        let found = (&rule["decision"], &rule["done"]);
        assert_eq!(found, (&decision.into(), &false.into()), "{rule:#}");
    }
}

async fn label(scene: &OnCluster, pool: &str) {
    let labels = json!({"metadata": {"labels": {"pool": pool}}});
    scene.cluster.patch_node(scene.name, &labels).await.unwrap();
}

/// The rule that puts [`TAINT`] back on Nodes of `pool: a`.
fn of_pool_a(gates: &Gates) -> String {
    retainting(gates) + "  nodeSelector: {pool: a}\n"
}

#[tokio::test]
async fn a_node_that_is_relabelled_out_of_the_rule_loses_what_was_put_back_and_gets_it_again() {
    let Some(it) = PutBack::with("orphan-label", of_pool_a, TAINT).await else {
        return;
    };
    label(&it.scene, "b").await;
    it.scene.wait_for_taints(&[FOREIGN]).await;
    let line = it.agent.wait_for_message(TOOK_OFF).await.unwrap();
    assert_eq!(
        (&line["rule"], &line["key"]),
        (&"cni".into(), &"example.com/not-ready".into())
    );
    assert_eq!(it.left().await, (json!([]), true.into()));
    Page::of(&it.agent).await.has(&[
        (r#"untaint_rule_removals_total{rule="cni"}"#, "1"),
        (
            r#"untaint_rule_state{rule="cni",state="not-selected"}"#,
            "1",
        ),
    ]);
    label(&it.scene, "a").await;
    it.scene.wait_for_taints(&[FOREIGN, TAINT]).await;
    it.scene.gates.health.set(200);
    it.scene.wait_for_taints(&[FOREIGN]).await;
}

#[tokio::test]
async fn a_rule_that_a_reload_removes_or_aims_elsewhere_leaves_nothing_behind() {
    for (name, elsewhere) in [("orphan-removed", false), ("orphan-selector", true)] {
        let Some(mut it) = PutBack::with(name, of_pool_a, TAINT).await else {
            return;
        };
        let rules = of_pool_a(&it.scene.gates).replace("pool: a", "pool: b");
        it.reload(if elsewhere { &rules } else { ELSEWHERE }).await;
        it.scene.wait_for_taints(&[FOREIGN]).await;
        it.agent.wait_for_message(TOOK_OFF).await.unwrap();
        assert_eq!(it.left().await, (json!([]), true.into()));
    }
}

#[tokio::test]
async fn a_rule_of_the_same_name_judges_what_it_has_put_back_before_whatever_it_names_now() {
    let key = ["key: example.com/not-ready", "key: example.com/renamed"];
    let value = ["effect: NoSchedule", "value: x, effect: NoSchedule"];
    let off = ["  retaint: {}\n", ""];
    let cases: [(&str, &str, &[[&str; 2]], &str); 7] = [
        ("judged-key", "", &[key], TAINT),
        ("judged-value", "", &[value], TAINT),
        (
            "judged-effect",
            "",
            &[off, ["NoSchedule", "NoExecute"]],
            TAINT,
        ),
        ("judged-name", "", &[["name: cni", "name: network"]], TAINT),
        ("judged-off", "", &[off], TAINT),
        ("judged-own-off", OTHER_KEY, &[[OTHER_KEY, ""]], OTHER),
        ("judged-own-key", OTHER_KEY, &[["lapsed", "moved"]], OTHER),
    ];
    for (name, retaint, changes, put_back) in cases {
        let rules = |gates: &Gates| match retaint {
            "" => retainting(gates),
            other => retainting(gates).replace(off[0], other),
        };
        let Some(mut it) = PutBack::with(name, rules, put_back).await else {
            return;
        };
        let mut changed = rules(&it.scene.gates);
        for [from, to] in changes {
            assert!(changed.contains(from), "{name}");
            changed = changed.replace(from, to);
        }
        it.reload(&changed).await;
        it.assert_judged(put_back, "waiting").await;
        it.scene.gates.health.set(200);
        it.scene.wait_for_taints(&[FOREIGN]).await;
        it.agent
            .wait_for_message("removed the taint")
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_tells_that_what_was_put_back_stays() {
    let Some(mut it) = PutBack::with("orphan-dry-run", retainting, TAINT).await else {
        return;
    };
    let rule = retainting(&it.scene.gates);
    it.reload(&(rule.clone() + "  dryRun: true\n")).await;
    let stays = "the taint that untaint put back stays, because the rule is a dry run now";
    let line = it.agent.wait_for_message(stays).await.unwrap();
    assert_eq!(
        (&line["level"], &line["taint"]),
        (&"WARN".into(), &TAINT.into())
    );
    it.scene.gates.health.set(200);
    let would = "would remove the taint (dry run)";
    it.agent.wait_for_message(would).await.unwrap();
    let (left, done) = it.left().await;
    assert_eq!(done, false);
    let found = (&left[0]["taint"], &left[0]["rule"], &left[0]["reason"]);
    assert_eq!(found, (&TAINT.into(), &"cni".into(), &"dry-run".into()));
    assert_eq!(it.scene.taints().await, [FOREIGN, TAINT]);
    it.reload(&rule).await;
    it.scene.wait_for_taints(&[FOREIGN]).await;
    it.agent
        .wait_for_message("removed the taint")
        .await
        .unwrap();
    assert_eq!(it.left().await, (json!([]), true.into()));
}

#[tokio::test]
async fn a_taint_of_others_stays_whatever_was_put_back_before_and_after_a_restart_all_are_of_others()
 {
    let Some(mut it) = PutBack::with("orphan-of-others", of_pool_a, TAINT).await else {
        return;
    };
    // It is another taint by now, although key and effect are the same.
    let theirs = "example.com/not-ready=theirs:NoSchedule";
    it.scene.set_taints(&[FOREIGN, theirs]).await;
    label(&it.scene, "b").await;
    let stays = "the taint stays, because nodeSelector does not select this Node";
    it.agent.wait_for_message(stays).await.unwrap();
    let (left, done) = it.left().await;
    let found = (&left[0]["taint"], &left[0]["reason"]);
    assert_eq!(
        (found, done),
        ((&theirs.into(), &"not-selected".into()), false.into())
    );

    it.agent.signal("TERM").await.unwrap();
    assert_eq!(it.agent.exit_code().await.unwrap(), 0);
    it.scene.set_taints(&[FOREIGN, TAINT]).await;
    it.agent = it.scene.agent(&LISTEN);
    it.agent.wait_for_message(stays).await.unwrap();
    let (left, done) = it.left().await;
    let found = (&left[0]["taint"], &left[0]["reason"]);
    assert_eq!(
        (found, done),
        ((&TAINT.into(), &"not-selected".into()), false.into())
    );
    assert_eq!(it.scene.taints().await, [FOREIGN, TAINT]);
}

#[tokio::test]
async fn a_put_back_that_takes_effect_after_its_rule_is_gone_is_taken_off() {
    let scene = OnStandIn::with(&[FOREIGN], Gates::closed().await).await;
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &retainting(&scene.gates));
    scene
        .server
        .respond_next(Verb::Patch, 1, Answer::ApplyAndHang);
    // Meanwhile, the watch sends no events.
    scene.server.pause_watches(true);
    let Some(agent) = just_booted(&scene.gates, "node", &scene.kubeconfig, &[]) else {
        return;
    };
    scene.wait_for_taints(&[FOREIGN, TAINT]).await;
    map.swap(ELSEWHERE);
    agent.wait_for_message(TOOK_OFF).await.unwrap();
    scene.wait_for_taints(&[FOREIGN]).await;
    assert_eq!(
        scene.verbs(),
        [Verb::Watch, Verb::Patch, Verb::Get, Verb::Patch]
    );
}

#[tokio::test]
async fn a_refusal_to_take_it_off_is_told_and_a_removal_without_an_answer_is_told_once_it_is_known()
{
    let scene = OnStandIn::with(&[FOREIGN], Gates::closed().await).await;
    let mut map = ConfigMap::mount(scene.gates.dir.path(), &retainting(&scene.gates));
    let Some(agent) = just_booted(&scene.gates, "node", &scene.kubeconfig, &LISTEN) else {
        return;
    };
    agent.wait_for_message("put the taint back").await.unwrap();
    let denied = Answer::denied(403, "Forbidden", "node", "no such rule");
    scene.server.respond_next(Verb::Patch, 1, denied);
    map.swap(ELSEWHERE);
    let refused = agent
        .wait_for_message("the server refused the removal")
        .await;
    let refused = refused.unwrap();
    assert_eq!(
        (&refused["rule"], &refused["error"]),
        (&"cni".into(), &REFUSED.into())
    );
    let status = agent.status().await.unwrap();
    let left = &status["leftTaints"][0];
    assert_eq!(
        (&left["reason"], &left["denied"]),
        (&"orphaned".into(), &REFUSED.into())
    );
    // It is tried again, and takes effect, but the answer is lost.
    scene
        .server
        .respond_next(Verb::Patch, 1, Answer::ApplyAndHang);
    agent.wait_for_message(TOOK_OFF).await.unwrap();
    scene.wait_for_taints(&[FOREIGN]).await;
}

#[tokio::test]
async fn two_rules_that_exchange_their_keys_or_their_names_remove_what_one_of_them_has_put_back() {
    const OTHER_RULE: &str = "- {name: other, taint: {key: example.com/else}, gates: []}\n";
    for (name, exchanged) in [
        (
            "exchange-keys",
            ["example.com/not-ready", "example.com/else"],
        ),
        ("exchange-names", ["name: cni", "name: other"]),
    ] {
        let rules = |gates: &Gates| retainting(gates) + OTHER_RULE;
        let Some(mut it) = PutBack::with(name, rules, TAINT).await else {
            return;
        };
        let [one, two] = exchanged;
        let changed = rules(&it.scene.gates);
        let changed = changed
            .replace(one, "\0")
            .replace(two, one)
            .replace('\0', two);
        it.reload(&changed).await;
        if name == "exchange-names" {
            it.assert_judged(TAINT, "waiting").await;
            it.scene.gates.health.set(200);
        }
        it.scene.wait_for_taints(&[FOREIGN]).await;
        let removed = it.agent.wait_for_message("removed the taint").await;
        assert_eq!(removed.unwrap()["rule"], "other", "{name}");
        assert_eq!(it.left().await.0, json!([]), "{name}");
    }
}
