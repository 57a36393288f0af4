//! `untaint manifests`.

mod additions;

pub use additions::AdditionArgs;

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use crate::manifests::{Account, Enforcement, Form, NewNodes, OWN, Part, Tenants};
use crate::syntax::{DNS_LABEL, DNS_SUBDOMAIN, IMAGE, SELINUX_TYPE};

/// A placeholder that the user must replace.
pub const DEFAULT_IMAGE: &str = concat!("registry.example.com/untaint:", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Args)]
pub struct ManifestsArgs {
    /// A configuration file, a directory with such files, or - for standard input. Can be repeated, or separated by colons.
    #[arg(
        long,
        env = "UNTAINT_CONFIG",
        value_name = "FILE",
        value_delimiter = ':',
        required = true
    )]
    pub config: Vec<PathBuf>,
    /// How untaint runs on the nodes.
    #[arg(
        long,
        env = "UNTAINT_FORM",
        value_name = "FORM",
        default_value = "daemonset"
    )]
    pub form: Form,
    /// Print only these parts, separated by commas.
    #[arg(
        long,
        env = "UNTAINT_ONLY",
        value_name = "PART",
        value_delimiter = ',',
        default_values = ["rbac", "policy", "config", "workload"]
    )]
    pub only: Vec<Part>,
    /// With the form sidecar or init-container, print only a patch that adds untaint to this DaemonSet.
    #[arg(long, env = "UNTAINT_PATCH", value_name = "DAEMONSET", conflicts_with = "only", value_parser = |name: &str| DNS_SUBDOMAIN.parse(name))]
    pub patch: Option<String>,
    /// With --patch and the form init-container, the init containers of the DaemonSet up to the one that does the work, in
    /// their order, separated by commas.
    #[arg(long, env = "UNTAINT_AFTER", value_name = "CONTAINER", value_delimiter = ',', requires = "patch", value_parser = |name: &str| DNS_LABEL.parse(name))]
    pub after: Vec<String>,
    /// The Namespace of the pods. The manifests create it only if it is the default one.
    #[arg(long, env = "UNTAINT_NAMESPACE", value_name = "NAME", default_value = OWN, value_parser = |name: &str| DNS_LABEL.parse(name))]
    pub namespace: String,
    /// The ServiceAccount of the pods. With the form daemonset, it is untaint's own. With another form, it is the one that
    /// the pods already have.
    #[arg(long, env = "UNTAINT_SERVICE_ACCOUNT", value_name = "NAME", default_value = OWN, value_parser = |name: &str| DNS_SUBDOMAIN.parse(name))]
    pub service_account: String,
    /// The image of untaint that you have pushed to your registry.
    #[arg(long, env = "UNTAINT_IMAGE", value_name = "IMAGE", default_value = DEFAULT_IMAGE, value_parser = |image: &str| IMAGE.parse(image))]
    pub image: String,
    /// Tolerate only the known taints of new nodes instead of all taints.
    #[arg(long, env = "UNTAINT_EXACT_TOLERATIONS")]
    pub exact_tolerations: bool,
    /// The SELinux type of untaint's containers, for hosts where SELinux restricts the use of files and sockets.
    #[arg(long, env = "UNTAINT_SELINUX_TYPE", value_name = "TYPE", value_parser = |name: &str| SELINUX_TYPE.parse(name))]
    pub selinux_type: Option<String>,
    /// The policy also refuses tokens that do not contain the uid of the current Node. After a Node is recreated under the
    /// same name, it refuses untaint until the kubelet has renewed the token, usually for a minute or two.
    #[arg(long, env = "UNTAINT_CHECK_NODE_UID")]
    pub check_node_uid: bool,
    /// With a form other than daemonset, let the account change Nodes and Events only as untaint needs it. Use this if no
    /// other program with this account changes Nodes or Events, which is usual.
    #[arg(long, env = "UNTAINT_STRICT_POLICY")]
    pub strict_policy: bool,
    /// Add a policy that gives each new Node the taints of the rules that select it, in the request with which its kubelet
    /// creates it. Needs Kubernetes 1.36 or newer, and an effect in each taint [default without a value: ExceptKarpenter].
    #[arg(
        long,
        env = "UNTAINT_TAINT_NEW_NODES",
        value_name = "NODES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "ExceptKarpenter"
    )]
    pub taint_new_nodes: Option<NewNodes>,
    #[command(flatten)]
    pub additions: AdditionArgs,
    #[command(flatten)]
    pub tenants: TenantArgs,
}

/// Policies for the pods of others, and exemptions from them.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("tenant-policy").multiple(true))]
pub struct TenantArgs {
    /// Add a policy against pods that tolerate a configured start-up taint [default without a value: Deny].
    #[arg(
        long,
        env = "UNTAINT_TOLERATION_POLICY",
        value_name = "ACTION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "Deny",
        group = "tenant-policy"
    )]
    pub toleration_policy: Option<Enforcement>,
    /// Add a policy against pods that are created with spec.nodeName. No scheduler keeps these off a tainted node [default
    /// without a value: Deny].
    #[arg(
        long,
        env = "UNTAINT_NODE_NAME_POLICY",
        value_name = "ACTION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "Deny",
        group = "tenant-policy"
    )]
    pub node_name_policy: Option<Enforcement>,
    /// Namespaces that are exempt from these policies, separated by commas. kube-system and untaint's own are always exempt.
    /// Can be repeated.
    #[arg(long, env = "UNTAINT_EXEMPT_NAMESPACE", value_name = "NAME", value_delimiter = ',', value_parser = |name: &str| DNS_LABEL.parse(name), requires = "tenant-policy")]
    pub exempt_namespace: Vec<String>,
    /// ServiceAccounts whose pods are exempt from these policies, separated by commas. Can be repeated.
    #[arg(
        long,
        env = "UNTAINT_EXEMPT_SERVICE_ACCOUNT",
        value_name = "NAMESPACE:NAME",
        value_delimiter = ',',
        requires = "tenant-policy"
    )]
    pub exempt_service_account: Vec<Account>,
}

impl From<TenantArgs> for Tenants {
    fn from(args: TenantArgs) -> Self {
        Self {
            tolerations: args.toleration_policy,
            node_names: args.node_name_policy,
            exempt_namespaces: args.exempt_namespace.into_iter().collect(),
            exempt_accounts: args.exempt_service_account.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::ManifestsArgs;
    use crate::cli::{Cli, Command};
    use crate::manifests::{Account, Enforcement, NewNodes, Tenants};

    fn parse_all(arguments: &[&str]) -> Result<ManifestsArgs, String> {
        let words = ["untaint", "manifests", "--config", "config.yaml"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments));
        match cli.map_err(|error| error.to_string())?.command {
            Command::Manifests(args) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    fn parse(arguments: &[&str]) -> Result<Tenants, String> {
        Ok(parse_all(arguments)?.tenants.into())
    }

    #[test]
    fn new_nodes_get_taints_only_with_the_flag_and_those_of_karpenter_only_if_all_are_named() {
        for (arguments, expected) in [
            (&[][..], None),
            (&["--taint-new-nodes"], Some(NewNodes::ExceptKarpenter)),
            (&["--taint-new-nodes=All"], Some(NewNodes::All)),
        ] {
            assert_eq!(parse_all(arguments).unwrap().taint_new_nodes, expected);
        }
        let error = parse_all(&["--taint-new-nodes=Some"]).unwrap_err();
        assert!(
            error.contains("[possible values: ExceptKarpenter, All]"),
            "{error}"
        );
    }

    #[test]
    fn a_policy_denies_by_default_and_exists_only_with_its_flag() {
        let actions = |arguments: &[&str]| {
            let tenants = parse(arguments).unwrap();
            (tenants.tolerations, tenants.node_names)
        };
        assert_eq!(actions(&[]), (None, None));
        assert_eq!(
            actions(&["--toleration-policy"]),
            (Some(Enforcement::Deny), None)
        );
        assert_eq!(
            actions(&["--node-name-policy=Deny", "--toleration-policy=Warn"]),
            (Some(Enforcement::Warn), Some(Enforcement::Deny))
        );
        let error = parse(&["--node-name-policy=Audit"]).unwrap_err();
        assert!(error.contains("[possible values: Deny, Warn]"), "{error}");
    }

    #[test]
    fn exemptions_may_be_repeated_or_separated_by_commas_and_need_a_policy() {
        let exemptions = [
            "--exempt-namespace=b,a",
            "--exempt-namespace=c",
            "--exempt-service-account=shop:agent,shop:x.y",
        ];
        let tenants = parse(&[&exemptions[..], &["--node-name-policy"]].concat()).unwrap();
        let namespaces: Vec<_> = tenants.exempt_namespaces.into_iter().collect();
        assert_eq!(namespaces, ["a", "b", "c"]);
        let accounts = tenants.exempt_accounts.iter();
        let users: Vec<_> = accounts.map(Account::user).collect();
        assert_eq!(
            users,
            [
                "system:serviceaccount:shop:agent",
                "system:serviceaccount:shop:x.y"
            ]
        );
        for exemption in exemptions {
            let error = parse(&[exemption]).unwrap_err();
            assert!(error.contains("--toleration-policy"), "{error}");
        }
    }

    #[test]
    fn an_invalid_exempt_account_is_an_error_that_names_the_wrong_part() {
        for (account, expected) in [
            (
                "agent",
                "must be NAMESPACE:NAME, such as monitoring:node-exporter",
            ),
            (
                "Shop:agent",
                "the NAMESPACE must be at most 63 lower-case letters",
            ),
            (
                "shop:a'b",
                "the NAME must be at most 253 lower-case letters",
            ),
            ("shop:", "the NAME must be at most 253 lower-case letters"),
        ] {
            let account = format!("--exempt-service-account={account}");
            let error = parse(&["--toleration-policy", &account]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
