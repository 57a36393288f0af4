//! The ways in which manifests come into a cluster: as they were written, renamed on the way, or by the Helm chart. In each
//! of them the account can do nothing but its work.

use std::cell::Cell;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

use clap::ValueEnum as _;
use serde_json::Value;
use tempfile::NamedTempFile;
use testkit::cluster::{self, Cluster};
use testkit::helm::Helm;
use testkit::skip::skip_for_version;
use tokio::runtime::Builder;
use tokio::sync::OnceCell;
use untaint::config;
use untaint::manifests::{Account, Manifests, Part};

use crate::installation::with_account;
use crate::{large, nodes, owners, shared, tokens, work};

/// What becomes of the manifests between the program and the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    AsWritten,
    /// Kustomize's `namespace`, which Flux calls `targetNamespace`.
    Namespace,
    /// Kustomize's `namePrefix`.
    NamePrefix,
    /// Kustomize's `nameSuffix`.
    NameSuffix,
    /// By the Helm chart, which makes them itself.
    Chart,
    /// With a prefix, beside the manifests of another configuration for an account of the same name, with another prefix.
    SideBySide,
}

/// The end of the name of a namespace that is another in the end.
const WRITTEN: &str = "-written";

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/chart");

thread_local! {
    /// Of the test that runs in this thread.
    static WAY: Cell<Way> = const { Cell::new(Way::AsWritten) };
}

impl Way {
    /// That of this test.
    pub(crate) fn of_this_test() -> Self {
        WAY.get()
    }

    /// A cluster for the tests of this way, whose Nodes have the same names as those of the others.
    pub(crate) async fn cluster(self) -> Option<&'static Cluster> {
        static CLUSTERS: [OnceCell<Option<Cluster>>; 6] = [const { OnceCell::const_new() }; 6];
        if self == Self::AsWritten {
            return cluster::shared().await;
        }
        if self == Self::Chart && Helm::get().await.is_none() {
            return None;
        }
        let cluster = &CLUSTERS[self as usize];
        cluster.get_or_init(|| cluster::fresh(&[])).await.as_ref()
    }

    /// For which account the manifests are written so that it is in this namespace in the end.
    pub(crate) fn written(self, namespace: &str) -> Account {
        let namespace = match self {
            Self::Namespace => format!("{namespace}{WRITTEN}"),
            _ => namespace.into(),
        };
        Account {
            namespace,
            name: "agent".into(),
        }
    }

    /// What that account is called in the end.
    pub(crate) fn account(self, namespace: &str) -> Account {
        let name = match self {
            Self::AsWritten | Self::Namespace | Self::Chart => "agent",
            Self::NamePrefix => "pre-agent",
            Self::NameSuffix => "agent-post",
            Self::SideBySide => "a-agent",
        };
        Account {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// These parts of the manifests, and the account, as they are in the end.
    pub(crate) async fn made(
        self,
        cluster: &Cluster,
        manifests: &Manifests,
        parts: &[Part],
    ) -> String {
        let yaml = with_account(manifests, parts);
        let fields = match self {
            Self::AsWritten => return yaml,
            Self::Chart => return with_account(manifests, &[]) + &chart(manifests, parts).await,
            Self::Namespace => {
                let written = &manifests.account.namespace;
                namespace(written.strip_suffix(WRITTEN).unwrap())
            }
            Self::NamePrefix => "namePrefix: pre-\n".into(),
            Self::NameSuffix => "nameSuffix: -post\n".into(),
            Self::SideBySide => "namePrefix: a-\n".into(),
        };
        kustomize(cluster, &yaml, &fields).await
    }
}

/// What the chart makes instead of these parts.
async fn chart(manifests: &Manifests, parts: &[Part]) -> String {
    let Manifests {
        form,
        account,
        check_node_uid,
        strict_policy,
        ..
    } = manifests;
    let form = form.to_possible_value().unwrap();
    let (form, Account { namespace, name }) = (form.get_name(), account);
    let mut values = NamedTempFile::new().unwrap();
    write!(
        values,
        "{}\nform: {form}\nserviceAccount: {{name: {name}}}\ncheckNodeUid: {check_node_uid}\nstrictPolicy: {strict_policy}\n",
        config::show(&manifests.configuration)
    )
    .unwrap();
    let values = format!("--values={}", values.path().display());
    let namespace = format!("--namespace={namespace}");
    let render = ["template", "a-release", CHART, &namespace, &values];
    // `cluster` has seen that it can be built.
    let helm = Helm::get().await.unwrap();
    let objects = helm.run(&render).await.unwrap();
    let objects: Vec<Value> = serde_yaml::from_multiple(&objects).unwrap();
    let is_of = |object: &&Value| {
        let kind = object["kind"].as_str().unwrap();
        parts.iter().any(|part| match part {
            Part::Rbac => kind.contains("Role"),
            Part::Policy => kind.contains("AdmissionPolicy"),
            Part::Config | Part::Workload => false,
        })
    };
    let objects = objects.iter().filter(is_of);
    objects.fold(String::new(), |yaml, object| {
        yaml + "---\n" + &object.to_string() + "\n"
    })
}

/// `namespace` moves the Role for Events as well, which are in the namespace default: see docs/manifests.md.
fn namespace(namespace: &str) -> String {
    format!(
        "namespace: {namespace}
transformers:
- |-
  apiVersion: builtin
  kind: PatchTransformer
  metadata: {{name: role-of-events}}
  target: {{kind: Role, name: untaint-events.*}}
  patch: |-
    - {{op: replace, path: /metadata/namespace, value: default}}
- |-
  apiVersion: builtin
  kind: PatchTransformer
  metadata: {{name: binding-of-events}}
  target: {{kind: RoleBinding, name: untaint-events.*}}
  patch: |-
    - {{op: replace, path: /metadata/namespace, value: default}}
    - {{op: replace, path: /subjects/0/namespace, value: {namespace}}}
"
    )
}

/// With these fields of a kustomization.
pub(crate) async fn kustomize(cluster: &Cluster, yaml: &str, fields: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("untaint.yaml"), yaml).unwrap();
    let kustomization = format!("resources: [untaint.yaml]\n{fields}");
    fs::write(directory.path().join("kustomization.yaml"), kustomization).unwrap();
    let directory = directory.path().to_str().unwrap();
    cluster.kubectl(&["kustomize", directory]).await.unwrap()
}

/// Whether the API server survives policies that come while others are evaluated, as they do here all the time.
/// kubernetes#135757: up to 1.35, all policies share a map without a lock, and one that is compiled can end the server
/// (`CompositionEnv.MapType` in k8s.io/apiserver/pkg/admission/plugin/cel/composition.go).
async fn survives_new_policies() -> bool {
    let Some(cluster) = cluster::shared().await else {
        // The tests say so.
        return true;
    };
    let version = cluster.version().await.unwrap();
    let minor = version.split('.').nth(1).unwrap();
    minor.parse::<u32>().unwrap() > 35
}

/// Every test of an account, in another way.
fn every_test_of_an_account(way: Way) {
    /// More would only wait for the API server.
    const AT_A_TIME: usize = 3;
    let runtime = Builder::new_current_thread().enable_all().build();
    if !runtime.unwrap().block_on(survives_new_policies()) {
        skip_for_version("this API server may crash when policies come: kubernetes#135757");
        return;
    }
    let tests: Mutex<Vec<fn()>> = Mutex::new(vec![
        large::a_node_with_a_thousand_taints_is_no_trouble,
        large::a_configuration_of_five_hundred_rules_is_no_trouble,
        nodes::a_token_of_one_node_is_good_for_nothing_else_and_where_roles_are_too_generous_the_policy_says_so,
        nodes::nothing_is_put_back_and_nothing_published_where_no_rule_asks_for_it,
        nodes::nothing_is_let_through_where_every_rule_only_watches,
        owners::a_taint_that_somebody_applied_can_go,
        shared::an_account_of_others_keeps_its_rights_but_those_to_taints,
        shared::an_account_of_others_without_work_of_its_own_can_be_held_to_that_of_untaint,
        tokens::a_token_for_another_node_or_of_another_account_is_refused,
        tokens::a_token_of_a_node_that_was_made_anew_is_good_unless_the_uid_is_asked_for,
        tokens::a_token_that_says_nothing_of_a_node_is_refused_with_the_reason_whatever_kind_it_is,
        work::an_agent_whose_token_says_nothing_of_a_node_says_so_once_and_tries_ever_more_rarely,
        work::in_every_form_the_agent_removes_its_taint_and_publishes_its_condition,
        work::what_the_rules_ask_for_is_let_through_and_only_where_they_ask_for_it,
    ]);
    let next = || tests.lock().unwrap_or_else(PoisonError::into_inner).pop();
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                WAY.set(way);
                while let Some(test) = next() {
                    test();
                }
            });
        }
    });
}

#[test]
fn all_is_refused_and_the_work_let_through_where_kustomize_has_set_another_namespace() {
    every_test_of_an_account(Way::Namespace);
}

#[test]
fn all_is_refused_and_the_work_let_through_where_kustomize_has_set_a_prefix() {
    every_test_of_an_account(Way::NamePrefix);
}

#[test]
fn all_is_refused_and_the_work_let_through_where_kustomize_has_set_a_suffix() {
    every_test_of_an_account(Way::NameSuffix);
}

#[test]
fn all_is_refused_and_the_work_let_through_where_the_helm_chart_is_installed() {
    every_test_of_an_account(Way::Chart);
}

#[test]
fn all_is_refused_and_the_work_let_through_beside_an_installation_of_another_configuration() {
    every_test_of_an_account(Way::SideBySide);
}
