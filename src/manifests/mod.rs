//! What a cluster needs to run untaint with a configuration, and not one permission more: RBAC, admission policies and
//! the workload, as commented YAML. Pure, and the same text for the same input.
//!
//! `rbac` is what the account may ask of the API server, `policy` what of that is let through, `workload` the pods.

mod account;
mod policy;
mod rbac;
mod workload;
mod yaml;

pub use account::{Account, OWN};
pub use policy::{Enforcement, Tenants};
pub use workload::MountError;

use thiserror::Error;

use self::policy::MOST_CHARACTERS;
use self::yaml::{Values, scalar};
use crate::config::{Condition, Configuration, Gate, Observed, Rule};

const HEAD: &str = "# As `untaint manifests` writes it from a configuration. Change that, and write this anew.\n\n";

/// The parts of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Part {
    /// The roles and their bindings.
    Rbac,
    /// The admission policies and their bindings.
    Policy,
    /// The pods, their configuration and, where they are untaint's own, their ServiceAccount and Namespace.
    Workload,
}

/// How untaint gets to the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// A DaemonSet of its own.
    Daemonset,
    /// A sidecar in the DaemonSet of a CNI.
    Sidecar,
    /// An init container in any DaemonSet, after the one that does the work.
    InitContainer,
    /// A postStart hook of a container whose image is not ours.
    PostStart,
}

impl Form {
    /// As the command line spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Daemonset => "daemonset",
            Self::Sidecar => "sidecar",
            Self::InitContainer => "init-container",
            Self::PostStart => "post-start",
        }
    }

    /// Whether the ServiceAccount is for untaint alone. If not, others in its pods have rights of their own.
    pub fn has_own_account(self) -> bool {
        self == Self::Daemonset
    }
}

/// Why manifests cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    /// A gate looks at a place that cannot be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Pods of others do not run as the DaemonSet's account, whose policy would be replaced by one of theirs.
    #[error(
        "the form {0} is for pods of others: name the account that they have, by --namespace and --service-account; \
         {OWN}:{OWN} is the DaemonSet's"
    )]
    OwnAccount(&'static str),
    /// Every configured taint has the effect `PreferNoSchedule`.
    #[error(
        "there is no toleration to refuse: taints of the effect PreferNoSchedule keep no pod away, and no rule has another"
    )]
    NoBarrier,
    /// Without its policy, the account would have its rights all the same.
    #[error(
        "the admission policy {policy} is too long: one of its expressions has {length} characters, and the API server takes \
         {MOST_CHARACTERS}; divide the rules among several configurations, each with an account of its own"
    )]
    TooLong {
        /// Its name.
        policy: String,
        /// Of the longest expression, in characters.
        length: usize,
    },
}

/// What the manifests depend on.
#[derive(Debug, Clone)]
pub struct Manifests {
    /// The text of the configuration file, as it is mounted.
    pub text: String,
    /// What it says.
    pub configuration: Configuration,
    /// How untaint gets to the nodes.
    pub form: Form,
    /// Whom it acts as.
    pub account: Account,
    /// Its image.
    pub image: String,
    /// Tolerate what new nodes are known to carry, in place of everything.
    pub exact_tolerations: bool,
    /// The SELinux type of its containers, where the default one may not use what the gates look at.
    pub selinux_type: Option<String>,
    /// Have the policy demand that tokens are for the very Node, not for an earlier one of its name.
    pub check_node_uid: bool,
    /// Hold the account to untaint's work with Nodes although it is another's.
    pub strict_policy: bool,
    /// What is asked of the pods of others.
    pub tenants: Tenants,
}

impl Manifests {
    /// These parts, as one stream of YAML documents.
    pub fn render(&self, parts: &[Part]) -> Result<String, RenderError> {
        if self.account.is_own() && !self.form.has_own_account() {
            return Err(RenderError::OwnAccount(self.form.as_str()));
        }
        let mut documents = Vec::new();
        if parts.contains(&Part::Workload) {
            documents.extend(workload::account(self));
        }
        if parts.contains(&Part::Rbac) {
            documents.extend(rbac::documents(self));
        }
        if parts.contains(&Part::Policy) {
            documents.extend(policy::documents(self)?);
        }
        if parts.contains(&Part::Workload) {
            documents.extend(workload::documents(self)?);
        }
        Ok(format!("{HEAD}{}", documents.join("---\n")))
    }

    /// The values that all templates have.
    fn values(&self) -> Values {
        Values::default()
            .with("namespace", scalar(&self.account.namespace))
            .with("accountName", scalar(&self.account.name))
    }

    /// Whether the policy lets the account do with Nodes what the configuration asks for and nothing else.
    fn holds_account(&self) -> bool {
        self.form.has_own_account() || self.strict_policy
    }

    /// The rules that may change something.
    fn writing_rules(&self) -> impl Iterator<Item = &Rule> {
        self.configuration.rules.iter().filter(|rule| !rule.dry_run)
    }

    /// All conditions of all gates.
    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let gates = self.configuration.rules.iter().flat_map(|rule| &rule.gates);
        gates.flat_map(Gate::conditions)
    }

    /// What the API server is asked for.
    fn observed(&self) -> impl Iterator<Item = &Observed> {
        self.conditions().filter_map(|condition| match condition {
            Condition::Observation(observation) => Some(&observation.object),
            Condition::Probe(_) => None,
        })
    }
}
