//! The configuration that the flags of `run`, `wait` and `check` describe.

use tokio::time::Instant;

use super::{Failure, read_configuration};
use crate::cli::{ConfigOrGates, GateArgs};
use crate::config::{
    self, CniConfig, Configuration, FileCheck, Gate, Probe, ProbeHandler, Rule, Schedule,
};
use crate::taint::TaintMatcher;

impl ConfigOrGates {
    /// The files' configuration or, without a file, one rule with these gates and an empty taint.
    pub(super) async fn configuration(
        self,
        deadline: Option<Instant>,
    ) -> Result<Configuration, Failure> {
        if !self.config.is_empty() {
            return read_configuration(&self.config, deadline, config::load).await;
        }
        let taint = TaintMatcher {
            key: String::new(),
            value: None,
            effect: None,
        };
        Ok(one_rule(taint, self.gates))
    }
}

pub(super) fn one_rule(taint: TaintMatcher, gates: GateArgs) -> Configuration {
    let cni = gates.cni.map(|network| {
        ProbeHandler::CniConfig(CniConfig {
            network,
            ..CniConfig::default()
        })
    });
    let http_get = gates.http_get.into_iter().map(ProbeHandler::HttpGet);
    let file = gates.file.into_iter().map(FileCheck::new);
    let file = file.map(ProbeHandler::File);
    let handlers = cni.into_iter().chain(http_get).chain(file);
    let gates = handlers.enumerate().map(|(index, handler)| {
        let name = match &handler {
            ProbeHandler::CniConfig(_) => "cni".into(),
            ProbeHandler::HttpGet(_) => format!("http-get-{index}"),
            _ => format!("file-{index}"),
        };
        Gate::from(Probe {
            name,
            handler,
            schedule: Schedule::default(),
        })
    });
    Configuration {
        events: false,
        rules: vec![Rule::new("command-line", taint, gates.collect())],
    }
}
