//! All fixtures, from the names in a directory to the decision.

use std::fs;
use std::path::PathBuf;

use super::decide::tests::candidate;
use super::*;
use crate::config::CniConfig;

/// What each product's directory amounts to: the file that the runtime picks, its network, its plugins.
const PRODUCTS: [(&str, &str, &str, &[&str]); 12] = [
    (
        "antrea",
        "10-antrea.conflist",
        "antrea",
        &["antrea", "portmap", "bandwidth"],
    ),
    (
        "aws-vpc-cni",
        "10-aws.conflist",
        "aws-cni",
        &["aws-cni", "egress-cni", "portmap"],
    ),
    (
        "azure",
        "10-azure.conflist",
        "azure",
        &["azure-vnet", "portmap"],
    ),
    (
        "calico",
        "10-calico.conflist",
        "k8s-pod-network",
        &["calico", "portmap", "bandwidth"],
    ),
    ("cilium", "05-cilium.conflist", "cilium", &["cilium-cni"]),
    (
        "flannel",
        "10-flannel.conflist",
        "cbr0",
        &["flannel", "portmap"],
    ),
    (
        "istio-chained",
        "05-cilium.conflist",
        "cilium",
        &["cilium-cni", "istio-cni"],
    ),
    (
        "kube-router",
        "10-kuberouter.conflist",
        "mynet",
        &["bridge", "portmap"],
    ),
    (
        "linkerd-chained",
        "10-ovn-kubernetes.conflist",
        "ovn-kubernetes",
        &["ovn-k8s-cni-overlay", "linkerd-cni"],
    ),
    (
        "multus",
        "00-multus.conf",
        "multus-cni-network",
        &["multus-shim"],
    ),
    (
        "multus-thin",
        "00-multus.conf",
        "multus-cni-network",
        &["multus"],
    ),
    (
        "ovn-kubernetes",
        "10-ovn-kubernetes.conf",
        "ovn-kubernetes",
        &["ovn-k8s-cni-overlay"],
    ),
];

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cni")
}

/// Every valid file of every product: its name, its contents.
pub(super) fn valid_files() -> Vec<(OsString, Vec<u8>)> {
    PRODUCTS
        .iter()
        .map(|(product, file, ..)| {
            let path = fixtures().join(product).join(file);
            (OsString::from(file), fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn every_products_directory_is_understood() {
    let mut present: Vec<_> = fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    present.sort_unstable();
    assert_eq!(present, PRODUCTS.map(|(product, ..)| product));

    for (product, file, network, plugins) in PRODUCTS {
        let dir = fixtures().join(product);
        let names = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| !entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name());
        let read = |file: OsString| {
            let contents = fs::read(dir.join(&file)).unwrap();
            candidate(file.to_str().unwrap(), &contents)
        };
        let wanted = CniConfig {
            dir: "/d".into(),
            network: Some(network.into()),
            plugins: plugins.iter().map(ToString::to_string).collect(),
            first: true,
            ..CniConfig::default()
        };
        let seen = decide(&wanted, candidates(names).into_iter().map(read));
        let message = format!(
            "/d/{file}: network {network}, plugins {}",
            plugins.join(", ")
        );
        assert_eq!(seen, Ok(message), "{product}");
    }
}

#[test]
fn only_three_extensions_count_and_the_order_is_that_of_bytes() {
    let names = [
        "b.json",
        "a.conflist",
        "Z.conf",
        "10.conf",
        "9.conf",
        ".conf",
        "é.conf",
        "conf",
        "a.conf.bak",
        "05-cilium.conflist.cilium_bak",
        "a.CONF",
        "kubeconfig",
        "a.conf~",
    ];
    assert_eq!(
        candidates(names.map(OsString::from)),
        [
            ".conf",
            "10.conf",
            "9.conf",
            "Z.conf",
            "a.conflist",
            "b.json",
            "é.conf"
        ]
    );
}
