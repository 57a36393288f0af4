//! What is valid in a configuration, but does not work in the written pods as the configuration says.
//!
//! A path that a pod can never see is an error instead: see `workload/mounts.rs`.

use std::fmt::Display;
use std::net::IpAddr;

use super::workload::{MountError, created_directories};
use super::{Form, Manifests};
use crate::config::{
    Check, DeadlineAction, Endpoint, Gate, Probe, ProbeHandler, Rule, shown_duration,
};
use crate::text::printable_path;

/// Each with its remedy.
pub(super) fn all(manifests: &Manifests) -> Result<Vec<String>, MountError> {
    let form = manifests.form;
    let mut warnings = Vec::new();
    for rule in &manifests.configuration.rules {
        warnings
            .extend(of_rule(form, rule).map(|warning| format!("rule {}: {warning}", rule.name)));
        for probe in checks(rule).filter_map(probe) {
            let place = format!("rule {}, gate {}", rule.name, probe.name);
            let found = of_probe(form, &probe.handler);
            warnings.extend(found.map(|warning| format!("{place}: {warning}")));
        }
    }
    warnings.extend(later_containers(manifests));
    if form != Form::PostStart {
        let created = created_directories(manifests)?;
        warnings.extend(listed(created.iter().map(|path| printable_path(path))).map(|paths| {
            format!(
                "on nodes where one of these directories is missing, the kubelet creates it for the pods, so check the \
                 spelling: {paths}"
            )
        }));
    }
    Ok(warnings)
}

fn checks(rule: &Rule) -> impl Iterator<Item = &Check> {
    rule.gates.iter().flat_map(Gate::checks)
}

fn probe(check: &Check) -> Option<&Probe> {
    match check {
        Check::Probe(probe) => Some(probe),
        Check::Observation(_) => None,
    }
}

/// What has no effect in a program that ends.
fn of_rule(form: Form, rule: &Rule) -> impl Iterator<Item = String> {
    let in_time = |timeout| {
        let shown = shown_duration(timeout);
        let stable_for = (rule.stable_for >= timeout).then(|| {
            format!(
                "untaint gives up after {shown}, before stableFor is over, so the taint stays: make stableFor shorter, or \
                 the time-out of the container longer"
            )
        });
        let deadline = &rule.deadline;
        let removes = deadline.action == DeadlineAction::Remove && deadline.after >= timeout;
        let deadline = removes.then(|| {
            format!(
                "the deadline never passes: untaint gives up after {shown} and counts from 0 when it restarts; make \
                 deadline.after shorter, or the time-out of the container longer"
            )
        });
        let retaint = rule.retaint.is_some().then(|| {
            "retaint has no effect after the first removal, because untaint ends then: use the form daemonset".into()
        });
        [stable_for, deadline, retaint]
    };
    form.timeout().map(in_time).into_iter().flatten().flatten()
}

fn of_probe(form: Form, handler: &ProbeHandler) -> Option<String> {
    match handler {
        ProbeHandler::HttpGet(http) => of_endpoint(form, &http.endpoint),
        ProbeHandler::Grpc(grpc) => of_endpoint(form, &grpc.endpoint),
        ProbeHandler::TcpSocket(tcp) => of_endpoint(form, &tcp.endpoint),
        ProbeHandler::Exec(exec) => {
            let is_in_image = exec.command.first().is_some_and(|program| program == PROGRAM);
            (form != Form::PostStart && !is_in_image).then(|| {
                "the image of untaint has no program except untaint: set --image to an image that is built from it and has \
                 the program, or mount a directory of the host with a static program"
                    .into()
            })
        }
        ProbeHandler::CniConfig(cni) => (form == Form::PostStart).then(|| {
            format!(
                "the hook sees only the files of the container that it runs in: the container must mount the parent \
                 directory of {} at the same path",
                printable_path(&cni.dir)
            )
        }),
        ProbeHandler::File(_) => None,
    }
}

/// The only program in the image.
const PROGRAM: &str = "/untaint";

fn of_endpoint(form: Form, endpoint: &Endpoint) -> Option<String> {
    match endpoint {
        Endpoint::Tcp { host, .. } => of_host(form, host),
        Endpoint::Unix { .. } => None,
    }
}

fn of_host(form: Form, host: &str) -> Option<String> {
    match form {
        Form::Daemonset | Form::Sidecar if is_cluster_name(host) => Some(format!(
            "{host} is a name of the cluster's DNS, which needs the CNI; the pods use the resolver of the host, which does not \
             know it: use an address, or a gate of the kind pods"
        )),
        Form::Sidecar | Form::InitContainer if is_loopback(host) => Some(format!(
            "{host} is the pod itself, unless the pods of your DaemonSet have hostNetwork: true; set it if the gate asks a \
             program outside the pod"
        )),
        _ => None,
    }
}

fn is_loopback(host: &str) -> bool {
    // A connection to the unspecified address goes to the loopback address.
    let is_own = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    match host.parse::<IpAddr>() {
        Ok(address) => is_own(address.to_canonical()),
        Err(_) => host.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
    }
}

/// Whether it is the name of a Service, with or without the usual domain of clusters.
fn is_cluster_name(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let labels: Vec<_> = host.trim_end_matches('.').split('.').collect();
    labels.iter().skip(1).any(|label| *label == "svc") || labels.ends_with(&["cluster", "local"])
}

/// The containers of a pod start one after another, and untaint holds up those that come later.
fn later_containers(manifests: &Manifests) -> Option<String> {
    let waits = |check: &Check| match manifests.form {
        Form::Daemonset | Form::Sidecar => false,
        Form::InitContainer => true,
        // The container of the hook runs already.
        Form::PostStart => probe(check).is_none(),
    };
    let rules = manifests.configuration.rules.iter();
    let gates = rules.flat_map(|rule| {
        let waiting = checks(rule).filter(|check| waits(check));
        waiting.map(|check| format!("{} of rule {}", check.name(), rule.name))
    });
    let gates = listed(gates)?;
    Some(format!(
        "later containers of the pod start only when untaint has ended, so a gate that waits for one of them never \
         opens; use the form daemonset for such a gate: {gates}"
    ))
}

fn listed(items: impl Iterator<Item = impl Display>) -> Option<String> {
    let items: Vec<_> = items.map(|item| item.to_string()).collect();
    (!items.is_empty()).then(|| items.join(", "))
}
