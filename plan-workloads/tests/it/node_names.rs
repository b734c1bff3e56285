//! Names of pods for nodes, as files say them: `new@NODE` is the pod that a controller created, or is about to create,
//! for a node. Where it is not the only one, it is the oldest, and `new@NODE.1` the next.

use std::collections::BTreeMap;

use kruise_plan_kit::instance;
use kruise_plan_test_kit::{Cluster, node_of};
use serde_json::Value;

/// Names of the pods of one owner, by its name and uid.
#[derive(Clone, Copy)]
pub(crate) struct NodeNames(pub(crate) &'static str, pub(crate) &'static str);

impl NodeNames {
    /// The name of a pod for a node, after the pod of this uid.
    pub(crate) fn of(self, node: &str, predecessor: Option<&str>) -> String {
        let Self(name, uid) = self;
        format!("{name}-{}", instance::id_for_node(uid, (node, predecessor), 0))
    }

    /// The pods of a node that were created, the oldest first: uids are numbers in that order.
    fn created(self, cluster: &Cluster, node: &str) -> Vec<String> {
        let is_created = |(name, pod): &(&String, &Value)| {
            let ending = name.strip_prefix(self.0).and_then(|name| name.strip_prefix('-'));
            ending.is_some_and(|ending| ending.len() == 5) && node_of(pod) == Some(node)
        };
        let pods = cluster.pods.iter().filter(is_created);
        let number = |pod: &Value| {
            pod["metadata"]["uid"]
                .as_str()?
                .rsplit('-')
                .next()?
                .parse::<u32>()
                .ok()
        };
        let mut pods: Vec<(Option<u32>, &String)> = pods.map(|(name, pod)| (number(pod), name)).collect();
        pods.sort();
        pods.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// The name of a pod that a file may call after its node.
    pub(crate) fn real(self, cluster: &Cluster, name: &str) -> String {
        let Some(node) = name.strip_prefix("new@") else {
            return name.to_owned();
        };
        let (node, index) = node.split_once('.').unwrap_or((node, "0"));
        let created = self.created(cluster, node);
        let found = created.get(index.parse::<usize>().unwrap());
        found.unwrap_or_else(|| panic!("there is a pod {name}")).clone()
    }

    /// Nodes read better than hashes.
    pub(crate) fn spoken(
        self,
        cluster: &Cluster,
        nodes: &BTreeMap<String, Value>,
        mut text: String,
    ) -> String {
        let uid = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let of_pods = cluster.pods.values().filter_map(node_of);
        for node in nodes.keys().map(String::as_str).chain(of_pods) {
            let created = self.created(cluster, node);
            let label = |index: usize| match index {
                0 => format!("new@{node}"),
                index => format!("new@{node}.{index}"),
            };
            for (index, name) in created.iter().enumerate() {
                text = text.replace(name, &label(index));
            }
            let known = cluster
                .memory
                .newest
                .get(node)
                .map(|newest| newest.uid.to_string());
            let known = known.into_iter().chain(cluster.pods.values().map(uid));
            for predecessor in known.map(Some).chain([None]) {
                let next = self.of(node, predecessor.as_deref());
                text = text.replace(&next, &label(created.len()));
            }
        }
        text
    }
}
