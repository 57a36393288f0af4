//! The objects of the chart for Prometheus and Grafana, against `deploy/monitoring` and `deploy/components/scraped`.

use serde_json::{Value, json};
use testkit::cluster::shared;
use testkit::helm::Helm;

use super::CHART;
use crate::render::{Objects, ROOT};

const SET: &str = "--set=monitoring.podMonitor=true,monitoring.prometheusRule=true,monitoring.dashboard=true,\
     monitoring.labels.release=prometheus";

async fn rendered(helm: &Helm, more: &[&str]) -> Result<Objects, String> {
    let example = format!("--values={ROOT}/examples/cilium.yaml");
    let place = [
        "template",
        "untaint",
        CHART,
        "--namespace=untaint",
        &example,
        SET,
    ];
    let chart = helm.run(&[&place[..], more].concat()).await;
    let chart = chart.map_err(|error| error.to_string())?;
    Ok(Objects(serde_yaml::from_multiple(&chart).unwrap()))
}

#[tokio::test]
async fn the_chart_has_the_objects_for_monitoring_with_labels_by_which_they_are_selected() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let Some(cluster) = shared().await else {
        return;
    };
    let chart = rendered(&helm, &[]).await.unwrap();
    let directory = format!("{ROOT}/deploy/monitoring");
    let expected = Objects::of(cluster, directory.as_ref()).await;
    let own = &chart.one("DaemonSet")["metadata"]["labels"];
    let metadata = |object: &Value| {
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"]["release"], "prometheus");
        for (key, value) in own.as_object().unwrap() {
            assert_eq!(&metadata["labels"][key], value, "{key}");
        }
        [metadata["name"].clone(), metadata["namespace"].clone()]
    };
    let of = |objects: &Objects, kind: &str| match kind {
        "ConfigMap" => {
            let maps = objects.all("ConfigMap");
            let is_dashboard = |map: &&Value| map["data"].get("untaint.json").is_some();
            maps.into_iter().find(is_dashboard).unwrap().clone()
        }
        kind => objects.one(kind).clone(),
    };
    for kind in ["PodMonitor", "PrometheusRule", "ConfigMap"] {
        let (found, mut expected) = (of(&chart, kind), of(&expected, kind));
        let place = &expected["metadata"];
        let place = [place["name"].clone(), place["namespace"].clone()];
        assert_eq!(metadata(&found), place);
        if kind == "PodMonitor" {
            let instance = own["app.kubernetes.io/instance"].clone();
            expected["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] = instance;
        }
        for field in ["apiVersion", "spec", "data"] {
            assert_eq!(found.get(field), expected.get(field), "{kind}");
        }
    }
    let dashboard = &of(&chart, "ConfigMap")["metadata"]["labels"];
    assert_eq!(dashboard["grafana_dashboard"], "1");

    let expected = Objects::with_component(cluster, "scraped").await;
    let container = |objects: &Objects| objects.pod()["containers"][0].clone();
    let (found, expected) = (container(&chart), container(&expected));
    for field in ["env", "ports", "readinessProbe"] {
        assert_eq!(found[field], expected[field], "{field}");
    }
}

#[tokio::test]
async fn a_second_release_on_the_same_nodes_has_another_port() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let port = ["--set=port=9469", "--set=monitoring.podMonitor=false"];
    let chart = rendered(&helm, &port).await.unwrap();
    let container = &chart.pod()["containers"][0];
    let probe = &container["readinessProbe"]["httpGet"];
    assert_eq!(
        (&probe["host"], &probe["port"]),
        (&json!("127.0.0.1"), &json!(9469))
    );
    let listen = json!({"name": "UNTAINT_LISTEN", "value": "127.0.0.1:9469"});
    assert!(
        container["env"].as_array().unwrap().contains(&listen),
        "{container}"
    );
    let chart = rendered(&helm, &["--set=port=9469"]).await.unwrap();
    let container = &chart.pod()["containers"][0];
    assert_eq!(container["ports"][0]["containerPort"], 9469);
    let listen = json!({"name": "UNTAINT_LISTEN", "value": "$(HOST_IP):9469"});
    assert!(
        container["env"].as_array().unwrap().contains(&listen),
        "{container}"
    );
}

#[tokio::test]
async fn an_address_to_listen_on_in_env_is_the_only_one() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let address = "--set=env[0].name=UNTAINT_LISTEN,env[0].value=[$(HOST_IP)]:9468";
    let chart = rendered(&helm, &[address]).await.unwrap();
    let variables = &chart.pod()["containers"][0]["env"];
    let variables = variables.as_array().unwrap().iter();
    let found: Vec<_> = variables
        .filter(|one| one["name"] == "UNTAINT_LISTEN")
        .collect();
    assert_eq!(
        found,
        [&json!({"name": "UNTAINT_LISTEN", "value": "[$(HOST_IP)]:9468"})]
    );
}

#[tokio::test]
async fn a_pod_monitor_for_the_pods_of_another_program_is_refused() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let form = "--set=form=sidecar,serviceAccount.name=cni";
    let Err(said) = rendered(&helm, &[form]).await else {
        panic!("it is accepted");
    };
    assert!(said.contains("monitoring.podMonitor"), "{said}");
}
