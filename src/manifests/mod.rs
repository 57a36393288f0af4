//! What a cluster needs to run untaint with a configuration, with the least permissions: roles, admission policies and
//! the workload, as commented YAML. Pure, and the same text for the same input.
//!
//! `rbac` has the roles of the account. `policy` has the admission policies, which restrict the use of these roles.
//! `workload` has the pods. The text is in YAML templates beside these modules.

mod account;
mod policy;
mod rbac;
mod warnings;
mod workload;
mod yaml;

pub use account::{Account, OWN};
pub use policy::{Enforcement, NewNodes, Tenants};
pub use workload::{KeyError, MountError, NOT_OF_HOST, PROCESSES};

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use thiserror::Error;

use self::policy::MOST_CHARACTERS;
use self::yaml::{Values, fields, scalar};
use crate::config::{Check, Configuration, Gate, ObservedObject, Rule, SourceFile};

const HEAD: &str =
    "# Written by `untaint manifests`. Do not edit: change the configuration and run it again.\n\n";

/// The parts of an installation. The comments are in `--help`, as are those of [`Form`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The roles and their bindings, and with --flow-schema the FlowSchema.
    Rbac,
    /// The admission policies and their bindings.
    Policy,
    /// The ConfigMap with the configuration.
    Config,
    /// The pods. With the form daemonset, also their ServiceAccount and Namespace.
    Workload,
}

/// The DaemonSet of another program that a patch is for.
#[derive(Debug, Clone)]
pub struct Patch {
    /// Its name.
    pub daemon_set: String,
    /// Its init containers up to the one that does the work, in their order, with the form init-container.
    pub after: Vec<String>,
}

/// How untaint runs on the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A DaemonSet of its own.
    Daemonset,
    /// A sidecar in the DaemonSet of a CNI.
    Sidecar,
    /// An init container in any DaemonSet, after the one that does the work.
    InitContainer,
    /// A postStart hook of a container with any image.
    PostStart,
}

impl Form {
    /// Whether only untaint uses the ServiceAccount. Otherwise, it has other permissions for the other programs in its
    /// pods.
    pub fn has_own_account(self) -> bool {
        self == Self::Daemonset
    }

    /// When the written command line gives up, for the forms in which other containers wait for untaint.
    fn timeout(self) -> Option<Duration> {
        match self {
            Self::Daemonset | Self::Sidecar => None,
            Self::InitContainer => Some(Duration::from_mins(5)),
            Self::PostStart => Some(Duration::from_mins(2)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    /// A gate looks at a place that cannot be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// A ConfigMap cannot hold the configuration files under their names.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The account is that of the form daemonset. The policies of two forms for one account would replace each other.
    #[error(
        "this form is for the pods of another program: name the account of those pods with --namespace and --service-account; \
         {OWN}:{OWN} is the account of the form daemonset"
    )]
    OwnAccount,
    /// A patch for a form without one.
    #[error(
        "--patch is for the forms sidecar and init-container: the form daemonset needs no other DaemonSet, and the hook of the \
         form post-start must be copied into the container that it waits for"
    )]
    NoPatch,
    /// Kustomize puts the init containers of a patch first, so untaint would not wait for the work.
    #[error(
        "--patch with the form init-container needs --after: name the init containers of the DaemonSet up to the one that does \
         the work, in their order, because untaint must start after them"
    )]
    NoAfter,
    /// A sidecar waits for no container.
    #[error("--after is for the form init-container: a sidecar waits for no other container")]
    NeedlessAfter,
    /// Every configured taint has the effect `PreferNoSchedule`.
    #[error(
        "--toleration-policy has no taint to protect: all rules have the effect PreferNoSchedule, which keeps no pod away"
    )]
    NoBarrier,
    /// A taint on a Node has an effect.
    #[error(
        "--taint-new-nodes cannot add a taint without an effect: set taint.effect in each rule that does not have it: {rules}"
    )]
    NoEffect {
        /// The names of the rules, separated by commas.
        rules: String,
    },
    /// There is no rule without `dryRun`.
    #[error(
        "--taint-new-nodes has no taint to add: untaint would not remove the taint of a rule with dryRun; delete dryRun from a \
         rule, or leave the option out"
    )]
    NoNewTaint,
    /// Other programs use the account too.
    #[error(
        "--flow-schema is for the form daemonset: with another form, it would also give the requests of other programs with \
         this account the priority of kubelets"
    )]
    SharedFlow,
    /// The pods would run only where no rule applies.
    #[error(
        "--node-selector {key}={value}: every rule has {key}: {of_rules} in nodeSelector, so the pods would run only on nodes \
         that no rule selects; leave {key} out, or correct the rules"
    )]
    OtherNodes {
        /// A label of the Nodes.
        key: String,
        /// Its value in the option.
        value: String,
        /// Its value in the rules.
        of_rules: String,
    },
    /// The API server would refuse the policy, and the account would have its permissions without it.
    #[error(
        "the admission policy {policy} is too long: one of its expressions has {length} characters, and the API server \
         accepts at most {MOST_CHARACTERS}; divide the rules among several configurations, each with its own account"
    )]
    TooLong {
        /// Its name.
        policy: String,
        /// Of the longest expression, in characters.
        length: usize,
    },
}

/// What the objects have besides what follows from the configuration.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// Add a FlowSchema for the account.
    pub flow_schema: bool,
    /// Labels of every object besides its own.
    pub labels: BTreeMap<String, String>,
    /// The Secrets with credentials for the registry of the image.
    pub image_pull_secrets: Vec<String>,
    /// Labels of the Nodes on which the pods run, besides those that all rules select.
    pub node_selector: BTreeMap<String, String>,
    /// Instead of the affinity that keeps the pods off Nodes that are not machines.
    pub affinity: Option<serde_json::Value>,
}

#[derive(Debug, Clone)]
pub struct Manifests {
    /// The configuration files, as they are mounted.
    pub files: Vec<SourceFile>,
    /// What they say together.
    pub configuration: Configuration,
    /// How untaint gets to the nodes.
    pub form: Form,
    /// The ServiceAccount of the pods.
    pub account: Account,
    pub image: String,
    /// Tolerate only the taints that new nodes usually have, instead of all taints.
    pub exact_tolerations: bool,
    /// The SELinux type of untaint's containers, if the default type may not use what the gates look at.
    pub selinux_type: Option<String>,
    /// The policy refuses tokens for an earlier Node of the same name.
    pub check_node_uid: bool,
    /// Hold the account to untaint's work with Nodes, with any form.
    pub strict_policy: bool,
    /// The policies for the pods of tenants.
    pub tenants: Tenants,
    /// Which new Nodes a policy gives the taints of the rules.
    pub taint_new_nodes: Option<NewNodes>,
    /// What the user adds.
    pub additions: Additions,
}

impl Manifests {
    /// The parts as one stream of YAML documents.
    pub fn render(&self, parts: &[Part]) -> Result<String, RenderError> {
        self.check_account()?;
        let mut documents = Vec::new();
        if parts.contains(&Part::Workload) {
            documents.extend(workload::account(self));
        }
        // Before the roles, so that the account can never do more than the policy allows.
        if parts.contains(&Part::Policy) {
            documents.extend(policy::documents(self)?);
        }
        if parts.contains(&Part::Rbac) {
            documents.extend(rbac::documents(self));
        }
        if parts.contains(&Part::Config) {
            documents.push(workload::config_map(self)?);
        }
        if parts.contains(&Part::Workload) {
            documents.push(workload::daemon_set(self)?);
        }
        Ok(format!("{HEAD}{}", documents.join("---\n")))
    }

    /// A strategic merge patch that adds untaint to the DaemonSet of another program, instead of the part
    /// [`Part::Workload`].
    pub fn render_patch(&self, patch: &Patch) -> Result<String, RenderError> {
        self.check_account()?;
        match (self.form, patch.after.is_empty()) {
            (Form::Daemonset | Form::PostStart, _) => return Err(RenderError::NoPatch),
            (Form::InitContainer, true) => return Err(RenderError::NoAfter),
            (Form::Sidecar, false) => return Err(RenderError::NeedlessAfter),
            (Form::InitContainer, false) | (Form::Sidecar, true) => {}
        }
        Ok(format!("{HEAD}{}", workload::patch(self, patch)?))
    }

    /// What is valid, but probably does not work in the pods as the configuration says.
    pub fn warnings(&self) -> Result<Vec<String>, RenderError> {
        Ok(warnings::all(self)?)
    }

    /// What the API server accepts of the part [`Part::Policy`], and what probably does not do what was asked for.
    pub fn policy_warnings(&self) -> Vec<String> {
        policy::warnings(self)
    }

    fn check_account(&self) -> Result<(), RenderError> {
        if self.account.is_own() && !self.form.has_own_account() {
            return Err(RenderError::OwnAccount);
        }
        if self.additions.flow_schema && !self.form.has_own_account() {
            return Err(RenderError::SharedFlow);
        }
        Ok(())
    }

    /// The values that all templates have.
    fn values(&self) -> Values {
        Values::default()
            .with("instance", scalar(&self.account.label()))
            .with("moreLabels", fields(&self.additions.labels))
            .with_part("labels", include_str!("labels.yaml"))
            .with_part("matchDefaults", include_str!("policy/match-defaults.yaml"))
            .with("namespace", scalar(&self.account.namespace))
            .with("accountName", scalar(&self.account.name))
    }

    /// Whether the policy allows the account no other work with Nodes than that of the configuration.
    fn holds_account(&self) -> bool {
        self.form.has_own_account() || self.strict_policy
    }

    /// The rules without `dryRun`.
    fn writing_rules(&self) -> impl Iterator<Item = &Rule> {
        self.configuration.rules.iter().filter(|rule| !rule.dry_run)
    }

    fn checks(&self) -> impl Iterator<Item = &Check> {
        let gates = self.configuration.rules.iter().flat_map(|rule| &rule.gates);
        gates.flat_map(Gate::checks)
    }

    fn observed(&self) -> impl Iterator<Item = &ObservedObject> {
        self.checks().filter_map(|check| match check {
            Check::Observation(observation) => Some(&observation.object),
            Check::Probe(_) => None,
        })
    }
}

#[cfg(test)]
mod tests;
