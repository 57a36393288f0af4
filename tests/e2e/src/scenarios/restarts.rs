use anyhow::Result;

use crate::agent;
use crate::by_hand::{Network, configuration};
use crate::faults::{Fault, at_each_stage, expect_no_restart, rules};
use crate::habitat::Habitat;

/// untaint itself is the last one: it must not restart before.
const FAULTS: [Fault; 3] = [Fault::Kubelet, Fault::Containerd, Fault::Untaint];

pub(super) async fn run(habitat: &mut Habitat) -> Result<()> {
    let network = Network::new().await?;
    let configuration = configuration(&rules(&FAULTS, &network));
    habitat.install(&configuration, &[]).await?;
    let mut node = habitat.node(&[])?;
    node.up().await?;
    agent::ready().await?;
    for fault in FAULTS {
        if fault == Fault::Untaint {
            expect_no_restart(habitat);
        }
        at_each_stage(fault, habitat, &node, &network).await?;
    }
    Ok(())
}
