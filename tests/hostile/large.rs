//! Large Nodes and large configurations: the server gives an expression only so much work.

use serde_json::json;
use testkit::taints;
use untaint::manifests::Part;

use crate::installation::{Installation, Options};
use crate::request::{JSON_PATCH, Request};
use crate::tokens::removal;

#[tokio::test]
pub(crate) async fn a_node_with_a_thousand_taints_is_no_trouble() {
    let Some(shipped) = Installation::new("thousand", Options::default()).await else {
        return;
    };
    let foreign: Vec<_> = (0..1000)
        .map(|index| format!("foreign.example/{index}=x:NoSchedule"))
        .collect();
    let mut all = vec!["example.com/not-ready:NoExecute"];
    all.extend(foreign.iter().map(String::as_str));
    shipped.cluster.create_node("thousand", &all).await.unwrap();
    let answer = removal("thousand")
        .send(&shipped.client_for("thousand").await)
        .await;
    assert_eq!(answer.code, 200, "{answer:?}");
    assert_eq!(taints(&answer.body).len(), 1001);
}

/// A configuration that the server refuses leaves an account with rights and without a policy.
#[tokio::test]
async fn the_longest_policy_that_is_written_is_one_that_the_server_takes() {
    let Some(mut longest) = Installation::account("longest", Options::default()).await else {
        return;
    };
    let mut written = |rules: usize| {
        let rules = (0..rules).map(|nth| {
            format!(
                "- name: r{nth}\n  taint: {{key: example.com/of-a-driver-{nth}, value: x, effect: NoSchedule}}\n  \
                 gates: [{{name: g, file: {{path: /nonexistent/g}}}}]\n  retaint: {{after: 30s}}\n"
            )
        });
        let head = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";
        let text = format!("{head}{}", rules.collect::<String>());
        longest.manifests.configuration = untaint::config::parse(&text).unwrap();
        longest.manifests.render(&[Part::Rbac, Part::Policy])
    };
    let mut rules = 1000;
    let error = loop {
        match written(rules + 10) {
            Ok(_) => rules += 10,
            Err(error) => break error.to_string(),
        }
        assert!(rules < 1200, "nothing is too long");
    };
    assert!(
        error.starts_with(
            "the admission policy untaint.longest.agent is too long: one of its expressions has 10"
        ),
        "{error}"
    );
    let yaml = written(rules).unwrap();
    longest.cluster.apply(&yaml).await.unwrap();
}

#[tokio::test]
pub(crate) async fn a_configuration_of_five_hundred_rules_is_no_trouble() {
    let rules = (0..500).map(|nth| {
        format!(
            "- name: r{nth}\n  taint: {{key: example.com/{nth}, value: x, effect: NoSchedule}}\n  \
             nodeSelector: {{pool: big}}\n  gates: [{{name: g, file: {{path: /run/nonexistent/file}}}}]\n  \
             retaint: {{after: 30s}}\n"
        )
    });
    let head = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";
    let options = Options {
        configuration: format!("{head}{}", rules.collect::<String>()),
        ..Options::default()
    };
    let Some(shipped) = Installation::new("many-rules", options).await else {
        return;
    };
    let all: Vec<_> = (0..500)
        .map(|nth| format!("example.com/{nth}=x:NoSchedule"))
        .collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let cluster = shipped.cluster;
    cluster.create_node("many-rules", &all).await.unwrap();
    let labels = json!({"metadata": {"labels": {"pool": "big"}}});
    cluster.patch_node("many-rules", &labels).await.unwrap();
    let client = shipped.client_for("many-rules").await;
    let remove = json!([{"op": "remove", "path": "/spec/taints/499"}]);
    let uri = "/api/v1/nodes/many-rules";
    let request = Request::patch("", uri, JSON_PATCH, remove);
    let answer = request.send(&client).await;
    assert_eq!(answer.code, 200, "{answer:?}");
}
