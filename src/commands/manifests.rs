//! `untaint manifests`.

use super::{Failure, print};
use crate::cli::{Exit, ManifestsArgs};
use crate::config;
use crate::manifests::{Account, Manifests};

pub(super) fn manifests(args: ManifestsArgs) -> Result<Exit, Failure> {
    let ManifestsArgs {
        config: path,
        form,
        only,
        namespace,
        service_account,
        image,
        exact_tolerations,
        selinux_type,
        check_node_uid,
        strict_policy,
        tenants,
    } = args;
    let usage = |error: &dyn ToString| Failure::Usage(error.to_string());
    let text = config::read(&path).map_err(|error| usage(&error))?;
    let configuration = config::parse_file(&path, &text).map_err(|error| usage(&error))?;
    let manifests = Manifests {
        text,
        configuration,
        form,
        account: Account {
            namespace,
            name: service_account,
        },
        image,
        exact_tolerations,
        selinux_type,
        check_node_uid,
        strict_policy,
        tenants: tenants.into(),
    };
    let rendered = manifests.render(&only);
    print(&rendered.map_err(|error| usage(&error))?)
}
