//! Reads and changes the objects of the stand-in, as another client would.

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;
use tokio::time::timeout;

use super::ApiServer;
use super::object::{Id, NODES, Resource};
use super::store::Revision;
use crate::DEADLINE;

impl ApiServer {
    /// Adds an object and returns it as stored.
    pub fn create(&self, resource: Resource, object: Value) -> Value {
        self.write(|store| store.create(resource, object).expect("a new object"))
    }

    /// Changes an object as another client would, and returns it as stored.
    pub fn update(&self, resource: Resource, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let change = |object: &mut Value| {
            change(object);
            Ok(())
        };
        let id = Id::new(resource, name);
        self.write(|store| store.update(&id, change).expect("an existing object"))
    }

    /// Adds a Node (see [`node`](crate::node)) and returns it as stored.
    pub fn create_node(&self, node: Value) -> Value {
        self.create(NODES, node)
    }

    /// Changes a Node as another client would, and returns it as stored.
    pub fn update_node(&self, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        self.update(NODES, name, change)
    }

    /// Deletes a Node.
    pub fn delete_node(&self, name: &str) {
        let id = Id::node(name);
        self.write(|store| store.delete(&id).expect("an existing Node"));
    }

    #[must_use]
    pub fn node(&self, name: &str) -> Option<Value> {
        self.shared
            .store
            .borrow()
            .get(&Id::node(name))
            .ok()
            .cloned()
    }

    /// Every version of the Node since it was first created, in order.
    #[must_use]
    pub fn revisions(&self, name: &str) -> Vec<Revision> {
        self.shared
            .store
            .borrow()
            .revisions(&Id::node(name))
            .collect()
    }

    /// Waits until `wanted` is true for the Node, and returns it; fails after [`DEADLINE`]. May miss a short-lived
    /// state.
    pub async fn wait_for_node(
        &self,
        name: &str,
        mut wanted: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        let id = Id::node(name);
        let mut store = self.shared.store.subscribe();
        let found = store.wait_for(|store| store.get(&id).is_ok_and(&mut wanted));
        let found = timeout(DEADLINE, found).await.map(|store| store.is_ok());
        match found {
            Ok(_) => self.node(name).context("the Node was deleted"),
            Err(_) => Err(anyhow!("{name} is still {:?}", self.node(name))),
        }
    }
}
