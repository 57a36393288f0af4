//! What the cluster says about nodes.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use http::Request;
use kube::Client;
use serde_json::Value;
use untaint::config::{self, Configuration, Rule};
use untaint::taint::parse_taint;

use crate::agent;

/// The label that all objects of untaint have.
const LABEL: &str = "app.kubernetes.io%2Fname%3Duntaint";
/// The volume with the configuration.
const VOLUME: &str = "untaint-config";

/// Which nodes to read.
pub(crate) enum Wanted {
    All,
    Named(Vec<String>),
}

/// The parts of a cluster that explain taints. A part that cannot be read is empty.
#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Value>,
    pub(crate) agents: Vec<Agent>,
    /// Those of untaint.
    pub(crate) daemon_sets: Vec<Value>,
    /// All that the agents and the DaemonSets have.
    pub(crate) configurations: Vec<Configuration>,
    /// Karpenter's NodeClaims.
    pub(crate) claims: Vec<Value>,
    /// The Events of untaint.
    pub(crate) events: Vec<Value>,
    /// What could not be read, and why.
    pub(crate) unread: Vec<String>,
}

/// A pod with untaint.
pub(crate) struct Agent {
    pub(crate) pod: Value,
    /// `None` if its ConfigMap cannot be read.
    pub(crate) configuration: Option<Configuration>,
    /// What `/statusz` says; `None` if nobody has asked.
    pub(crate) status: Option<Value>,
}

impl Agent {
    pub(crate) fn node(&self) -> &str {
        self.pod["spec"]["nodeName"].as_str().unwrap_or_default()
    }

    /// `NAMESPACE/NAME`.
    pub(crate) fn name(&self) -> String {
        let metadata = &self.pod["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        format!("{}/{}", text("namespace"), text("name"))
    }
}

impl Cluster {
    /// Whether there may be rules that could not be read.
    pub(crate) fn hides_rules(&self) -> bool {
        let is_unread = |agent: &Agent| agent.configuration.is_none();
        self.agents.iter().any(is_unread)
            || self.configurations.is_empty() && !self.unread.is_empty()
    }

    /// Whether there is nothing of untaint in the cluster, or it cannot be read.
    pub(crate) fn is_without_untaint(&self) -> bool {
        self.daemon_sets.is_empty() && self.agents.is_empty()
    }

    /// For [`Wanted::Named`], the agents of these nodes are asked too. Fails only if the Nodes cannot be read.
    pub(crate) async fn read(client: &Client, wanted: &Wanted) -> Result<Self> {
        let mut reader = Reader {
            client,
            configurations: BTreeMap::new(),
            unread: Vec::new(),
        };
        let of_untaint = format!("labelSelector={LABEL}");
        let (mut nodes, mut pods) = (Vec::new(), Vec::new());
        match wanted {
            Wanted::All => {
                nodes = reader.list("/api/v1/nodes", "").await?;
                pods = reader.try_list("/api/v1/pods", &of_untaint).await;
            }
            Wanted::Named(names) => {
                for name in names {
                    check_name(name)?;
                    nodes.push(reader.get(&format!("/api/v1/nodes/{name}")).await?);
                    let query = format!("fieldSelector=spec.nodeName%3D{name}");
                    pods.extend(reader.try_list("/api/v1/pods", &query).await);
                }
            }
        }
        let mut agents = Vec::new();
        for pod in pods {
            agents.extend(reader.agent(pod).await);
        }
        if let Wanted::Named(_) = wanted {
            for agent in &mut agents {
                reader.ask(agent).await;
            }
        }
        let daemon_sets = reader
            .try_list("/apis/apps/v1/daemonsets", &of_untaint)
            .await;
        for daemon_set in &daemon_sets {
            reader
                .configuration_of(daemon_set, &daemon_set["spec"]["template"]["spec"])
                .await;
        }
        let events = "/api/v1/namespaces/default/events";
        let events = reader
            .try_list(events, "fieldSelector=reportingComponent%3Duntaint")
            .await;
        let claims = reader
            .try_list("/apis/karpenter.sh/v1/nodeclaims", "")
            .await;
        let configurations = reader.configurations.into_values().flatten();
        Ok(Self {
            nodes,
            agents,
            daemon_sets,
            configurations: configurations.collect(),
            claims,
            events,
            unread: reader.unread,
        })
    }
}

struct Reader<'c> {
    client: &'c Client,
    /// By the paths of their ConfigMaps; `None` if one cannot be read.
    configurations: BTreeMap<String, Option<Configuration>>,
    unread: Vec<String>,
}

impl Reader<'_> {
    async fn get(&self, path: &str) -> Result<Value> {
        let request = Request::get(path).body(Vec::new())?;
        self.client
            .request(request)
            .await
            .with_context(|| format!("GET {path}"))
    }

    /// From the cache of the API server, where a list costs little.
    async fn list(&self, path: &str, query: &str) -> Result<Vec<Value>> {
        let mut list = self
            .get(&format!("{path}?resourceVersion=0&{query}"))
            .await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Notes what cannot be read, unless this kind of object does not exist in the cluster.
    async fn try_list(&mut self, path: &str, query: &str) -> Vec<Value> {
        self.list(path, query).await.unwrap_or_else(|error| {
            let is_unknown = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
            if !error.downcast_ref().is_some_and(is_unknown) {
                self.unread.push(format!("{error:#}"));
            }
            Vec::new()
        })
    }

    /// The pod, if it has untaint.
    async fn agent(&mut self, pod: Value) -> Option<Agent> {
        config_map(&pod["spec"])?;
        Some(Agent {
            configuration: self.configuration_of(&pod, &pod["spec"]).await,
            pod,
            status: None,
        })
    }

    /// The configuration that a pod with this `spec` mounts, in the namespace of the `object` that has it.
    async fn configuration_of(&mut self, object: &Value, spec: &Value) -> Option<Configuration> {
        let namespace = object["metadata"]["namespace"].as_str()?;
        let map = config_map(spec)?;
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{map}");
        if !self.configurations.contains_key(&path) {
            let configuration = self.configuration(&path).await;
            let configuration =
                configuration.map_err(|error| self.unread.push(format!("{error:#}")));
            self.configurations.insert(path.clone(), configuration.ok());
        }
        self.configurations.get(&path).cloned().flatten()
    }

    async fn configuration(&self, path: &str) -> Result<Configuration> {
        let map = self.get(path).await?;
        let data = map["data"]
            .as_object()
            .context("a ConfigMap without data")?;
        let files = data.iter().map(|(name, text)| config::SourceFile {
            name: name.clone(),
            text: text.as_str().unwrap_or_default().to_owned(),
        });
        let files: Vec<_> = files.collect();
        let (configuration, _) = config::parse_files(&files).with_context(|| path.to_owned())?;
        Ok(configuration)
    }

    async fn ask(&mut self, agent: &mut Agent) {
        if agent.pod["status"]["phase"] != "Running" {
            return;
        }
        let name = agent.name();
        let (namespace, pod) = name.split_once('/').unwrap_or_default();
        match agent::status(self.client, namespace, pod).await {
            Ok(status) => {
                if agent.configuration.is_none() {
                    agent.configuration = known_by(&status);
                    self.configurations
                        .insert(name, agent.configuration.clone());
                }
                agent.status = Some(status);
            }
            Err(error) => self.unread.push(format!(
                "/statusz of the pod {name}, by port-forward: {error:#}"
            )),
        }
    }
}

/// A name is part of a path, where another text could name something else.
fn check_name(name: &str) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
    ensure!(
        !name.is_empty() && name.chars().all(is_allowed),
        "{name:?} is not the name of a Node: leave out `node/`, and write lower-case letters, digits, '-' and '.'"
    );
    Ok(())
}

/// What `/statusz` says of the configuration, if its ConfigMap cannot be read: the rules that select the Node.
fn known_by(status: &Value) -> Option<Configuration> {
    let rules = status["rules"].as_array()?.iter();
    let rules = rules.filter(|rule| rule["decision"] != "not-selected");
    let rules = rules.filter_map(|rule| {
        let taint = parse_taint(rule["taint"].as_str()?).ok()?;
        Some(Rule::new(rule["name"].as_str()?, taint, Vec::new()))
    });
    Some(Configuration {
        rules: rules.collect(),
        events: false,
    })
}

/// The ConfigMap with the configuration of untaint, if a pod with this `spec` has untaint.
fn config_map(spec: &Value) -> Option<&str> {
    let mut volumes = spec["volumes"].as_array()?.iter();
    let volume = volumes.find(|volume| volume["name"] == VOLUME)?;
    volume["configMap"]["name"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn without_its_config_map_the_rules_of_an_agent_are_those_of_its_status() {
        let status = json!({"rules": [
            {"name": "a", "taint": "example.com/a=x:NoSchedule", "decision": "waiting"},
            {"name": "b", "taint": "example.com/b", "decision": "not-selected"},
        ]});
        let rules = known_by(&status).unwrap().rules;
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].name, "a");
        assert_eq!(rules[0].taint.to_string(), "example.com/a=x:NoSchedule");
    }
}
