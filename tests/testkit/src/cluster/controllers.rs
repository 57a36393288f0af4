//! The controller manager and the scheduler.

use std::path::Path;

use anyhow::Result;

use super::Cluster;
use super::process::Process;

/// kube-controller-manager and kube-scheduler. They end when this is dropped.
pub struct Controllers {
    _processes: [Process; 2],
}

impl Cluster {
    /// Starts kube-controller-manager and kube-scheduler as the administrator. `programs` is their directory. Each node
    /// gets a part of `10.244.0.0/16` for its pods.
    pub fn start_controllers(&self, programs: &Path) -> Result<Controllers> {
        let directory = self.directory();
        let file = |flag: &str, name: &str| format!("--{flag}={}", directory.join(name).display());
        let common = [
            file("kubeconfig", "kubeconfig"),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
        ];
        let manager = [
            file("service-account-private-key-file", "tokens.key"),
            file("root-ca-file", "ca.crt"),
            "--allocate-node-cidrs=true".to_owned(),
            "--cluster-cidr=10.244.0.0/16".to_owned(),
            // The default is outside of this directory, and the program creates it.
            file("flex-volume-plugin-dir", "flex-volume"),
        ];
        let start = |program: &str, arguments: &[String]| {
            let log = directory.join(format!("{program}.log"));
            Process::start(&programs.join(program), arguments, &log, None)
        };
        Ok(Controllers {
            _processes: [
                start("kube-controller-manager", &[&common[..], &manager].concat())?,
                start("kube-scheduler", &common)?,
            ],
        })
    }
}
