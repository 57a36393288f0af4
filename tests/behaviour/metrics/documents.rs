//! Checks `docs/metrics.md` and `deploy/monitoring` with promtool, and the HTTP answer with the page.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::promtool::Promtool;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{LISTEN, Page};
use crate::scene::{Gates, OnStandIn};

const DOCUMENT: &str = include_str!("../../../docs/metrics.md");
const ALERTS: &str = include_str!("../../../deploy/monitoring/prometheus-rule.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/monitoring/dashboard.json");
const ALERTS_TEST: &str = include_str!("../../fixtures/metrics/alerts-test.yaml");

async fn page() -> Page {
    let scene = OnStandIn::with(&[], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    agent.wait_for_message("watching the Node").await.unwrap();
    Page::of(&agent).await
}

/// The code blocks in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let blocks = DOCUMENT.split("```").skip(1).step_by(2);
    let wanted = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    wanted.collect()
}

/// The alerts as a file for Prometheus.
fn alerts() -> Value {
    let mut rule: Value = serde_yaml::from_str(ALERTS).unwrap();
    rule["spec"].take()
}

/// The expressions of the dashboard's panels, and of its variables, with values for the variables.
fn of_dashboard() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    let filled = expressions.map(|text| {
        text.replace("$rule", ".*")
            .replace("$__rate_interval", "5m")
    });
    filled.collect()
}

/// The labels of a series on the page: name and value.
fn labels(series: &str) -> impl Iterator<Item = (&str, &str)> {
    let labels = series.split_once('{').map_or("", |(_, labels)| labels);
    let labels = labels.trim_end_matches('}').split(',');
    let labels = labels.filter_map(|label| label.split_once('='));
    labels.map(|(name, value)| (name, value.trim_matches('"')))
}

#[tokio::test]
async fn every_metric_is_in_its_document_with_its_type_and_labels() {
    let page = page().await;
    let types = page.text.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some((name.to_owned(), kind.to_owned()))
    });
    let types: BTreeMap<_, _> = types.collect();
    let mut metrics = BTreeSet::new();
    for series in page.series.keys() {
        let name = series.split('{').next().unwrap();
        let parts = ["_bucket", "_sum", "_count"];
        let family = parts.iter().find_map(|part| {
            let family = name.strip_suffix(part)?;
            types.contains_key(family).then_some(family)
        });
        let name = family.unwrap_or(name);
        let names = labels(series).map(|(name, _)| name);
        let names: Vec<_> = names.filter(|name| *name != "le").collect();
        metrics.insert((name.to_owned(), types[name].clone(), names.join(", ")));
    }
    let is_metric = |line: &&str| line.starts_with("| `") && !line.starts_with("| `Untaint");
    let rows = DOCUMENT.lines().filter(is_metric);
    let documented = rows.map(|row| {
        let row = row.replace('`', "");
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        (cells[1].into(), cells[2].into(), cells[3].into())
    });
    assert_eq!(documented.collect::<BTreeSet<_>>(), metrics);
}

#[tokio::test]
async fn every_word_that_a_label_can_have_is_in_the_document() {
    let spans: BTreeSet<_> = DOCUMENT.split('`').skip(1).step_by(2).collect();
    for series in page().await.series.keys() {
        for (label, value) in labels(series) {
            let is_word = ["state", "verb", "resource", "reason", "result"].contains(&label);
            assert!(!is_word || spans.contains(value), "{series}");
        }
    }
}

#[tokio::test]
async fn the_number_of_series_is_what_the_document_says() {
    let page = page().await;
    let count = |wanted: fn(&str) -> bool| {
        let series = page.series.keys().filter(|series| wanted(series));
        series.count()
    };
    let of_gates = count(|series| series.contains("gate=\""));
    assert_eq!(of_gates, 2 * 3);
    let of_rule = count(|series| series.contains("rule=\"") && !series.contains("gate=\""));
    let rest = page.series.len() - of_gates - of_rule;
    let said = format!(
        "Each rule has {of_rule} series, and 3 more for each of its gates. All other series are about {rest} together."
    );
    assert!(DOCUMENT.replace('\n', " ").contains(&said), "{said}");
}

#[tokio::test]
async fn every_alert_is_in_the_document() {
    let rows = DOCUMENT
        .lines()
        .filter_map(|line| line.strip_prefix("| `Untaint"));
    let documented = rows.map(|row| format!("Untaint{}", row.split('`').next().unwrap()));
    let alerts = alerts();
    let alerts = alerts["groups"][0]["rules"].as_array().unwrap();
    let names = alerts
        .iter()
        .map(|alert| alert["alert"].as_str().unwrap().to_owned());
    assert_eq!(documented.collect::<Vec<_>>(), names.collect::<Vec<_>>());
}

#[tokio::test]
async fn the_alerts_the_dashboard_and_the_queries_are_about_metrics_that_exist_and_do_what_they_say()
 {
    let page = page().await;
    let alerts = serde_yaml::to_string(&alerts()).unwrap();
    let queries = blocks("promql").concat();
    let queries = queries.lines().filter(|line| !line.starts_with('#'));
    let queries = queries.map(str::to_owned).chain(of_dashboard());
    let queries: Vec<_> = queries.collect();
    assert!(queries.len() > 20, "{queries:?}");
    let names = format!("{alerts} {queries:?}");
    let is_part = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    for name in names
        .split(is_part)
        .filter(|word| word.starts_with("untaint_"))
    {
        let exists = |series: &String| series.split('{').next() == Some(name);
        assert!(page.series.keys().any(exists), "{name}");
    }
    let Some(promtool) = Promtool::get().await else {
        return;
    };
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("alerts.yaml"), alerts).unwrap();
    let test = directory.path().join("alerts-test.yaml");
    std::fs::write(&test, ALERTS_TEST).unwrap();
    let test = ["test", "rules", test.to_str().unwrap()];
    promtool.run(&test, "").await.unwrap();

    let rules = queries
        .iter()
        .enumerate()
        .map(|(index, query)| json!({"record": format!("query:{index}"), "expr": query}));
    let rules = json!({"groups": [{"name": "queries", "rules": rules.collect::<Vec<_>>()}]});
    promtool
        .run(&["check", "rules"], &rules.to_string())
        .await
        .unwrap();
}

#[tokio::test]
async fn the_page_is_of_the_type_that_prometheus_knows_and_is_named_where_nothing_is_found() {
    let scene = OnStandIn::with(&[], Gates::closed().await).await;
    let agent = scene.agent(&LISTEN);
    let listening = agent.wait_for_message("listening").await.unwrap();
    let address = listening["address"].as_str().unwrap();
    for method in ["GET", "HEAD"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{method} /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
        assert!(head.lines().any(|line| line == kind), "{head}");
        assert_eq!(body.is_empty(), method == "HEAD", "{body}");
    }
    let (code, body) = agent.get("/metric").await.unwrap();
    assert!(code == 404 && body.contains("/metrics"), "{code} {body}");
}
