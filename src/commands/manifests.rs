//! `untaint manifests`.

use tracing::warn;

use super::{Failure, load, print};
use crate::cli::{DEFAULT_IMAGE, Exit, ManifestsArgs};
use crate::config;
use crate::manifests::{Account, Manifests, Part};

pub(super) async fn manifests(args: ManifestsArgs) -> Result<Exit, Failure> {
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
    let text = load(&path, None, config::read).await?;
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
    let rendered = manifests.render(&only).map_err(|error| usage(&error))?;
    if only.contains(&Part::Workload) && manifests.image == DEFAULT_IMAGE {
        warn!(
            image = DEFAULT_IMAGE,
            "the image is a placeholder: give yours with --image"
        );
    }
    print(rendered).await
}
