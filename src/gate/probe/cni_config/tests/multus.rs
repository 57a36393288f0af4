//! A gate that asks for the network that Multus calls.

use super::*;
use crate::config::{Delegate, load};

const MULTUS: &str = include_str!("../../../../../tests/fixtures/cni/multus-thin/00-multus.conf");

fn node() -> Node {
    let mut node = Node::new();
    node.expected.delegate = Some(Delegate {
        network: Some("cilium".into()),
        plugins: Vec::new(),
    });
    node.expected.first = true;
    node.write("05-cilium.conflist", CILIUM);
    node
}

#[test]
fn the_programs_of_multus_and_of_all_that_it_calls_must_be_there() {
    let mut node = node();
    let second = r#"}, {"name": "second", "type": "macvlan"}]"#;
    let both = MULTUS.replacen("}\n  ]", second, 1);
    assert_ne!(both, MULTUS);
    node.write("00-multus.conf", both);
    node.opens();
    let programs = node.root.path().join("bin");
    fs::create_dir(&programs).unwrap();
    node.expected.bin_dirs = vec![programs.clone()];
    for program in ["multus", "cilium-cni", "macvlan"] {
        node.closed(&format!("plugin {program}: no program in "));
        fs::write(programs.join(program), "").unwrap();
        fs::set_permissions(programs.join(program), Permissions::from_mode(0o755)).unwrap();
    }
    node.opens();
    // A gate that asks for no delegate does not ask for their programs either.
    fs::remove_file(programs.join("cilium-cni")).unwrap();
    node.closed("plugin cilium-cni: no program in ");
    node.expected.delegate = None;
    node.opens();
}

/// Where libcni appends the plugins of the directory, the runtime calls the first Multus of the whole chain.
#[test]
fn a_multus_in_the_directory_of_its_network_counts_after_those_in_the_file() {
    let node = node();
    let multus = |network: &str| {
        format!(
            r#"{{"type":"multus","delegates":[{{"name":"{network}","type":"{network}-cni"}}]}}"#
        )
    };
    let list =
        |plugin: &str| format!(r#"{{"cniVersion":"0.3.1","name":"m","plugins":[{plugin}]}}"#);
    node.write("00-m.conflist", list(r#"{"type":"tuning"}"#));
    fs::create_dir(node.path("m")).unwrap();
    node.write("m/20.conf", multus("cilium"));
    let opened = node.opens();
    let expected =
        "network m, plugins tuning, multus; delegate: network cilium, plugins cilium-cni";
    assert!(opened.contains(expected), "{opened}");
    node.write("m/10.conf", multus("ovn"));
    node.closed("delegates[0] of Multus: network ovn, not cilium");
    node.write("00-m.conflist", list(&multus("cilium")));
    node.opens();
    node.write("00-m.conflist", list(&multus("ovn")));
    node.write("m/10.conf", multus("cilium"));
    node.closed("delegates[0] of Multus: network ovn, not cilium");
    node.write("m/10.conf", r#"{"type":"multus","delegates":1}"#);
    node.write("00-m.conflist", list(r#"{"type":"tuning"}"#));
    node.closed("Multus: `delegates` must be a list");
}

#[test]
fn it_is_the_file_of_multus_that_must_be_from_this_boot() {
    let mut node = node();
    node.expected.newer_than_boot = true;
    let path = node.write("00-multus.conf", MULTUS);
    node.opens();
    node.forget();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    node.closed("00-multus.conf: its last write is ");
}

#[test]
fn the_example_opens_for_multus_before_cilium_and_for_nothing_else() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/multus.yaml");
    let configuration = load(&[example]).unwrap();
    let gates = configuration.rules[0].gates.iter();
    let mut checks = gates.flat_map(crate::config::Gate::checks);
    let spec = checks.find_map(|check| match check {
        crate::config::Check::Probe(probe) => match &probe.handler {
            crate::config::ProbeHandler::CniConfig(spec) => Some(spec.clone()),
            _ => None,
        },
        crate::config::Check::Observation(_) => None,
    });
    let mut node = node();
    node.expected = CniConfig {
        dir: node.expected.dir.clone(),
        ..spec.unwrap()
    };
    node.closed("05-cilium.conflist: no Multus in the chain cilium-cni");
    node.write("00-multus.conf", MULTUS);
    node.opens();
    node.write(
        "00-multus.conf",
        MULTUS.replace("\"cilium\"", "\"kube-ovn\""),
    );
    node.closed("00-multus.conf: delegates[0] of Multus: network kube-ovn, not cilium");
    let thick = include_str!("../../../../../tests/fixtures/cni/multus/00-multus.conf");
    node.write("00-multus.conf", thick);
    node.closed("Multus takes its network from `clusterNetwork`");
}
