//! `untaint manifests`.

use super::{Failure, print, print_warnings, read_configuration};
use crate::cli::{DEFAULT_IMAGE, Exit, ManifestsArgs};
use crate::config;
use crate::manifests::{Account, Manifests, Part, Patch, RenderError};

pub(super) async fn manifests(args: ManifestsArgs) -> Result<Exit, Failure> {
    let usage = |error: RenderError| Failure::Usage(error.to_string());
    let files = read_configuration(&args.config, None, config::read_files).await?;
    let (configuration, of_configuration) = config::parse_files(&files)?;
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
        taint_new_nodes: args.taint_new_nodes,
        additions: args.additions.try_into().map_err(Failure::Usage)?,
    };
    let target = args.patch.map(|daemon_set| Patch {
        daemon_set,
        after: args.after,
    });
    let rendered = match &target {
        Some(target) => manifests.render_patch(target),
        None => manifests.render(&args.only),
    };
    let rendered = rendered.map_err(usage)?;
    print_warnings(&of_configuration.to_string()).await;
    let mut warnings = Vec::new();
    let without_policy = match &target {
        Some(_) => Some(
            "--patch writes no policy: run the command again with --only=policy instead of --patch",
        ),
        None if args.only.contains(&Part::Policy) => None,
        None => Some("--only without policy writes none: add policy to --only"),
    };
    match without_policy {
        None => warnings.extend(manifests.policy_warnings()),
        Some(why) if manifests.taint_new_nodes.is_some() => {
            warnings.push(format!("--taint-new-nodes does nothing, because {why}"));
        }
        Some(_) => {}
    }
    if manifests.additions.flow_schema && !args.only.contains(&Part::Rbac) {
        warnings.push("--flow-schema does nothing, because --only without rbac writes no FlowSchema: add rbac to --only".into());
    }
    if target.is_some() || args.only.contains(&Part::Workload) {
        warnings.extend(manifests.warnings().map_err(usage)?);
        if manifests.image == DEFAULT_IMAGE {
            warnings.push(format!(
                "the manifests contain {DEFAULT_IMAGE}, a placeholder for the image: name your image with --image"
            ));
        }
    }
    print_warnings(&warnings.join("\n")).await;
    print(rendered).await
}
