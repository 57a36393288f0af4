//! Every toleration, by every kind of rule.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use http::Method;
use serde_json::json;
use testkit::cluster::feature_gate;

use super::scene::{Caller, SHOP, Scene, manifests, pod, tolerating};
use super::scheduler::{BARRIERS, Taint, Toleration};
use crate::request::Request;

const KEY: &str = "example.com/not-ready";
const GREATEST: &str = "9223372036854775807";

const PREFER: &str = "PreferNoSchedule";
const BESIDE: Taint = Taint {
    key: "example.com/beside",
    value: "none",
    effect: "NoExecute",
};

/// What of the taint a rule names, besides its key.
struct Shape {
    name: &'static str,
    value: Option<&'static str>,
    effect: Option<&'static str>,
}

impl Shape {
    const fn new(
        name: &'static str,
        value: Option<&'static str>,
        effect: Option<&'static str>,
    ) -> Self {
        Self {
            name,
            value,
            effect,
        }
    }

    fn rules(&self) -> String {
        let Self { value, effect, .. } = self;
        let mut taint = json!({"key": KEY});
        if let Some(value) = value {
            taint["value"] = json!(value);
        }
        if let Some(effect) = effect {
            taint["effect"] = json!(effect);
        }
        let rule = format!("- {{name: rule, taint: {taint}, gates: []}}\n");
        if *effect != Some(PREFER) {
            return rule;
        }
        // Without any barrier, there is no policy.
        let Taint { key, value, effect } = BESIDE;
        let taint = json!({"key": key, "value": value, "effect": effect});
        format!("{rule}- {{name: beside, taint: {taint}, gates: []}}\n")
    }

    /// The taints that the rule may stand for and the scheduler keeps pods away from, as far as a toleration of
    /// [`tolerations`] can tell them apart.
    fn barriers(&self) -> Vec<Taint> {
        if self.effect == Some(PREFER) {
            return vec![BESIDE];
        }
        let values = self.value.map_or_else(
            || vec!["", "ready", "other", "0", "5", GREATEST],
            |value| vec![value],
        );
        let mut barriers = Vec::new();
        for effect in BARRIERS {
            if self.effect.is_none_or(|only| only == effect) {
                barriers.extend(values.iter().map(|value| Taint {
                    key: KEY,
                    value,
                    effect,
                }));
            }
        }
        barriers
    }

    fn slips(&self, toleration: Toleration) -> bool {
        let mut barriers = self.barriers().into_iter();
        barriers.any(|taint| toleration.tolerates(taint))
    }

    fn policy(&self) -> String {
        format!("untaint-tolerations.untaint.{}", self.name)
    }
}

const SHAPES: [Shape; 11] = [
    Shape::new("any", None, None),
    Shape::new("prefer", None, Some(PREFER)),
    Shape::new("valued", Some("ready"), None),
    Shape::new("empty", Some(""), None),
    Shape::new("number", Some("5"), None),
    Shape::new("greatest", Some(GREATEST), None),
    Shape::new("too-great", Some("9223372036854775808"), None),
    Shape::new("schedule", None, Some("NoSchedule")),
    Shape::new("execute", None, Some("NoExecute")),
    Shape::new("valued-schedule", Some("ready"), Some("NoSchedule")),
    Shape::new("empty-execute", Some(""), Some("NoExecute")),
];

fn tolerations() -> Vec<Toleration> {
    let mut all = Vec::new();
    for key in [KEY, "", "example.com/other"] {
        for operator in ["", "Equal", "Exists", "Lt", "Gt"] {
            let values: &[_] = match operator {
                "Exists" => &["", "ready"],
                "Lt" | "Gt" => &[
                    "",
                    "ready",
                    "05",
                    "-1",
                    "0",
                    "1",
                    "4",
                    "5",
                    "6",
                    "9223372036854775806",
                    GREATEST,
                ],
                _ => &["", "ready", "other", "5", "-1"],
            };
            for value in values {
                for effect in ["", "NoSchedule", "NoExecute", PREFER] {
                    all.push(Toleration {
                        key,
                        operator,
                        value,
                        effect,
                    });
                }
            }
        }
    }
    all
}

/// With the policies as warnings, one request says what each of them makes of a pod.
#[tokio::test]
async fn a_toleration_slips_past_a_rule_if_the_scheduler_would_let_it_past_a_taint_of_the_rule() {
    // A version without the operators `Lt` and `Gt` does not know the gate, and refuses the operators.
    let gate = "TaintTolerationComparisonOperators";
    let compares = feature_gate(gate).await.is_some();
    let flag = format!("--feature-gates={gate}=true");
    let flags = if compares { &[flag.as_str()][..] } else { &[] };
    let Some(scene) = Scene::start(flags).await else {
        return;
    };
    for shape in &SHAPES {
        let account = format!("--service-account={}", shape.name);
        let flags = ["--toleration-policy=Warn", account.as_str()];
        scene.apply_policies(&shape.rules(), &flags).await;
    }
    let everything = tolerating(&json!({"operator": "Exists"}));
    scene
        .wait_for(async || {
            let answer = scene.try_pod(Caller::Tenant, SHOP, &everything).await;
            answer.warnings.len() == SHAPES.len()
        })
        .await;

    let client = scene.client(Caller::Tenant).await;
    let pods = format!("/api/v1/namespaces/{SHOP}/pods");
    let judged = stream::iter(tolerations()).map(async |toleration| {
        let pod = tolerating(&toleration.to_json());
        let request = Request::new("", Method::POST, &pods, pod).dry();
        (toleration, request.send(&client).await)
    });
    let judged: Vec<_> = judged.buffer_unordered(8).collect().await;
    let (mut cells, mut bypasses, mut invalid) = (0, 0, 0);
    for (toleration, answer) in judged {
        if !toleration.is_valid() || (toleration.compares() && !compares) {
            assert_eq!(answer.code, 422, "{toleration:?}");
            invalid += 1;
            continue;
        }
        assert_eq!(answer.code, 201, "{toleration:?}: {answer:?}");
        let slips = SHAPES.iter().filter(|shape| shape.slips(toleration));
        let expected: BTreeSet<_> = slips.map(Shape::policy).collect();
        let warned = answer.warned_by().into_iter().map(str::to_owned);
        assert_eq!(warned.collect::<BTreeSet<_>>(), expected, "{toleration:?}");
        cells += SHAPES.len();
        bypasses += expected.len();
    }
    println!(
        "{cells} verdicts on tolerations, {bypasses} of them bypasses; {invalid} are no tolerations"
    );
    let least = if compares { (1500, 250) } else { (800, 130) };
    assert!(cells > least.0 && bypasses > least.1 && invalid > 50);
}

#[tokio::test]
async fn a_pod_with_many_tolerations_is_judged_by_a_configuration_of_many_rules() {
    let Some(scene) = Scene::start(&[]).await else {
        return;
    };
    let rules = (0..200).map(|rule| {
        format!("- {{name: r{rule}, taint: {{key: example.com/r{rule}, effect: NoSchedule}}, gates: []}}\n")
    });
    let rules: String = rules.collect();
    scene.apply_policies(&rules, &["--toleration-policy"]).await;
    let of = |last: &str| {
        let others = (0..49)
            .map(|key| json!({"key": format!("example.com/other{key}"), "operator": "Exists"}));
        let tolerations: Vec<_> = others
            .chain([json!({"key": last, "operator": "Exists"})])
            .collect();
        pod(&json!({"tolerations": tolerations}))
    };
    let bypass = of("example.com/r199");
    scene
        .wait_for(async || scene.try_pod(Caller::Tenant, SHOP, &bypass).await.code == 403)
        .await;
    let answer = scene.try_pod(Caller::Tenant, SHOP, &bypass).await;
    answer.assert_refused("tolerates example.com/r199:NoSchedule;");
    let harmless = of("example.com/r200");
    scene
        .try_pod(Caller::Tenant, SHOP, &harmless)
        .await
        .assert_accepted();
}

#[test]
fn a_configuration_without_a_taint_that_keeps_pods_away_has_no_policy() {
    let rules = "- {name: rule, taint: {key: example.com/not-ready, effect: PreferNoSchedule}, gates: []}\n";
    let output = manifests(rules, &["--toleration-policy"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = "--toleration-policy has no taint to protect: all rules have the effect PreferNoSchedule, which keeps no pod away";
    assert!(error.contains(expected), "{error}");
    assert!(manifests(rules, &["--node-name-policy"]).status.success());
}
