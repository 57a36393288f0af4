//! `untaint manifests`.

use tracing::warn;

use super::{Failure, print, read_configuration};
use crate::cli::{DEFAULT_IMAGE, Exit, ManifestsArgs};
use crate::config;
use crate::manifests::{Account, Manifests, Part};

pub(super) async fn manifests(args: ManifestsArgs) -> Result<Exit, Failure> {
    let usage = |error: &dyn ToString| Failure::Usage(error.to_string());
    let files = read_configuration(&args.config, None, config::read).await?;
    let configuration = config::parse_files(&files).map_err(|error| usage(&error))?;
    let manifests = Manifests {
        files,
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
        strict_policy: args.strict_policy,
        tenants: args.tenants.into(),
    };
    let rendered = manifests
        .render(&args.only)
        .map_err(|error| usage(&error))?;
    if args.only.contains(&Part::Workload) && manifests.image == DEFAULT_IMAGE {
        warn!(
            image = DEFAULT_IMAGE,
            "the manifests contain a placeholder for the image: name your image with --image"
        );
    }
    print(rendered).await
}
