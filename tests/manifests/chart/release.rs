//! The chart as a package and as a release.

use std::fs;

use tempfile::tempdir;
use testkit::cluster::fresh;
use testkit::helm::Helm;

use super::CHART;
use crate::render::ROOT;

#[tokio::test]
async fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let Some(cluster) = fresh(&[]).await else {
        return;
    };
    let kubeconfig = format!("--kubeconfig={}", cluster.admin_kubeconfig().display());
    let run = async |arguments: &[&str]| {
        let place = [kubeconfig.as_str(), "--namespace=chart"];
        helm.run(&[arguments, &place].concat()).await.unwrap()
    };
    let installed = async || {
        let kinds = "configmap,serviceaccount,daemonset,clusterrole,clusterrolebinding,role,rolebinding,\
             validatingadmissionpolicy,validatingadmissionpolicybinding";
        let selector = "--selector=app.kubernetes.io/name=untaint,app.kubernetes.io/instance=untaint.chart.chart-untaint";
        let arguments = ["get", kinds, "--all-namespaces", selector, "--output=name"];
        cluster.kubectl(&arguments).await.unwrap()
    };
    // Helm validates before it sends anything.
    let wrong = "--set=rules[0].gates[0].file.path=relative";
    let example = format!("--values={ROOT}/examples/cilium.yaml");
    let arguments = ["install", "chart", CHART, &example, wrong, &kubeconfig];
    let said = helm.run(&arguments).await.unwrap_err().to_string();
    assert!(said.contains("/rules/0/gates/0/file/path"), "{said}");
    assert_eq!(installed().await, "");
    let [cilium, calico] =
        ["cilium", "calico"].map(|name| format!("--values={ROOT}/examples/{name}.yaml"));
    let notes = run(&["install", "chart", CHART, "--create-namespace", &cilium]).await;
    assert!(notes.contains("operator.removeNodeTaints=false"), "{notes}");
    let first = installed().await;
    assert_eq!(first.lines().count(), 7, "{first}");
    run(&["upgrade", "chart", CHART, &calico]).await;
    let second = installed().await;
    assert_eq!(second.lines().count(), 8, "{second}");
    run(&["rollback", "chart", "1"]).await;
    assert_eq!(installed().await, second);
    run(&["uninstall", "chart"]).await;
    // The pods of nodes that the roll-outs had not reached may need them.
    let left = installed().await;
    assert!(
        left.lines().all(|name| name.starts_with("configmap/")),
        "{left}"
    );
    assert_eq!(left.lines().count(), 2, "{left}");
    run(&["install", "chart", CHART, &cilium]).await;
    assert_eq!(installed().await, second);
}

#[tokio::test]
async fn the_chart_passes_the_strict_lint_and_its_package_is_small() {
    let Some(helm) = Helm::get().await else {
        return;
    };
    let example = format!("--values={ROOT}/examples/cilium.yaml");
    let lint = ["lint", "--strict", CHART, &example];
    helm.run(&lint).await.unwrap();
    let directory = tempdir().unwrap();
    let destination = directory.path().to_str().unwrap();
    let package = ["package", CHART, "--destination", destination];
    helm.run(&package).await.unwrap();
    let mut packages = fs::read_dir(directory.path()).unwrap();
    let size = packages.next().unwrap().unwrap().metadata().unwrap().len();
    assert!(size <= 25 * 1024, "{size} bytes");
}
