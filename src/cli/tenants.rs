//! Policies against pods that slip past a start-up taint.

use clap::{ArgGroup, Args};

use crate::config;
use crate::manifests::{Account, Enforcement, Tenants};

/// Which policies there are against the pods of others, and who is exempt.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("tenant-policy").multiple(true))]
pub struct TenantArgs {
    /// Also a policy against pods that tolerate a configured start-up taint: refuse them, or warn, which tries it out
    /// [default if given without a value: Deny].
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
    /// Also a policy against pods that are made with spec.nodeName, which no scheduler keeps off a tainted node
    /// [default if given without a value: Deny].
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
    /// Namespaces exempt from these policies, separated by commas; kube-system and untaint's own always are. May be
    /// repeated.
    #[arg(long, env = "UNTAINT_EXEMPT_NAMESPACE", value_name = "NAME", value_delimiter = ',', value_parser = config::parse_namespace, requires = "tenant-policy")]
    pub exempt_namespace: Vec<String>,
    /// ServiceAccounts whose pods are exempt from these policies, separated by commas. May be repeated.
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
        let TenantArgs {
            toleration_policy,
            node_name_policy,
            exempt_namespace,
            exempt_service_account,
        } = args;
        Self {
            tolerations: toleration_policy,
            node_names: node_name_policy,
            exempt_namespaces: exempt_namespace.into_iter().collect(),
            exempt_accounts: exempt_service_account.into_iter().collect(),
        }
    }
}
