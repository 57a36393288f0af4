//! `untaint manifests`.

use super::{Failure, print};
use crate::cli::{Exit, ManifestsArgs};
use crate::config;
use crate::manifests::{Account, Manifests};

pub(super) fn manifests(args: ManifestsArgs) -> Result<Exit, Failure> {
    let usage = |error: &dyn ToString| Failure::Usage(error.to_string());
    let text = config::read(&args.config).map_err(|error| usage(&error))?;
    let configuration = config::parse_file(&args.config, &text).map_err(|error| usage(&error))?;
    let manifests = Manifests {
        text,
        configuration,
        form: args.form,
        account: Account {
            namespace: args.namespace,
            name: args.service_account,
        },
        image: args.image,
        exact_tolerations: args.exact_tolerations,
        selinux_type: args.selinux_type,
        check_node_uid: args.check_node_uid,
        tenants: args.tenants.into(),
    };
    let rendered = manifests.render(&args.only);
    print(&rendered.map_err(|error| usage(&error))?)
}
