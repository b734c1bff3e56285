//! What users do to a DaemonSet and to nodes.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    edit::{Edit, NodeEdit},
    manifest::{first_pool, node, node_name, pool, rolling_update, selector, set, strategy, taint},
    start::{DAEMONSETS, POOL, Start, TAINT},
};
use crate::engine::{
    boot,
    cluster::Cluster,
    resource::NODES,
    subject::User,
    user::{self, insist, int_or_string},
};

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/daemonsets";
/// The same DaemonSets in the version that is converted.
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/daemonsets";
const NODES_PATH: &str = "/api/v1/nodes";

/// Users of one DaemonSet, those who run the nodes, and the systems that answer its hooks.
pub struct DaemonSetUser {
    /// Seed of the scenario.
    pub seed: u64,
    /// The DaemonSet when it is created.
    pub start: Start,
}

impl User for DaemonSetUser {
    fn gates(&self) -> Vec<&'static str> {
        self.start.gates()
    }

    fn attend(&self, cluster: &Arc<Cluster>) {
        self.start.hooks().attend(cluster, self.seed);
    }

    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            for number in 1..=self.start.nodes {
                if boot::NODES.contains(&node_name(number).as_str()) {
                    edit_node(cluster, number, &NodeEdit::Pool(first_pool(number).into())).await;
                } else {
                    edit_node(cluster, number, &NodeEdit::Join).await;
                }
            }
        }
        .boxed()
    }

    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        // Until a manager answers for it.
        let request = Request::new(Method::Post, PATH, Some(&set(&self.start)));
        insist(cluster, request).map(|_| ()).boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            let edit = Edit::deserialize(change)?;
            Ok(match &edit {
                Edit::Node(number, edit) => edit_node(cluster, *number, edit).await,
                edit => edit_set(cluster, &self.start, edit).await,
            })
        }
        .boxed()
    }
}

/// Changes the DaemonSet. False if that is refused, or means nothing now.
async fn edit_set(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> bool {
    let Some(patch) = patch(cluster, start, edit) else {
        return false;
    };
    // Some is written in the older version: all it does not name must survive.
    let sets = match edit {
        Edit::Annotation(_) | Edit::Partition(_) | Edit::MinReady(_) => OLDER,
        _ => PATH,
    };
    user::patch(cluster, &format!("{sets}/web"), &patch).await
}

/// What an edit changes of the DaemonSet; nothing if there is none.
fn patch(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> Option<Value> {
    let rolling =
        |member: &str, value: Value| json!({"spec": {"updateStrategy": {"rollingUpdate": {member: value}}}});
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let mut containers = cluster.look(|state| {
        let set = state.mirror.of(DAEMONSETS).now().next()?;
        Some(set.value()["spec"]["template"]["spec"]["containers"].clone())
    })?;
    let mut container = |change: &dyn Fn(&mut Value)| {
        change(&mut containers[0]);
        template(json!({"containers": containers.take()}))
    };
    Some(match edit {
        Edit::Image(number) => container(&|one| one["image"] = format!("web:{number}").into()),
        Edit::Env(number) => container(&|one| one["env"][0]["value"] = number.to_string().into()),
        Edit::Annotation(number) => {
            json!({"spec": {"template": {"metadata": {"annotations": {"team": number.to_string()}}}}})
        }
        Edit::Strategy(to) => json!({"spec": {"updateStrategy": {"rollingUpdate": strategy(to)}}}),
        Edit::Partition(text) if text.is_empty() => rolling("partition", Value::Null),
        Edit::Partition(text) => rolling("partition", int_or_string(text)),
        Edit::Selector(pool) => rolling("selector", selector(pool)),
        Edit::Paused(paused) => rolling("paused", (*paused).into()),
        Edit::OnDelete(true) => {
            json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}})
        }
        Edit::OnDelete(false) => {
            json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(start)}}})
        }
        Edit::MinReady(seconds) => json!({"spec": {"minReadySeconds": seconds}}),
        Edit::Burst(text) => json!({"spec": {"burstReplicas": int_or_string(text)}}),
        Edit::Pool(name) => template(json!({"nodeSelector": pool(name)})),
        Edit::Tolerate(true) => template(json!({"tolerations": [{"key": TAINT, "operator": "Exists"}]})),
        Edit::Tolerate(false) => template(json!({"tolerations": null})),
        Edit::Node(..) => return None,
    })
}

/// Changes a node. False if that is refused, or means nothing now.
async fn edit_node(cluster: &Arc<Cluster>, number: u8, edit: &NodeEdit) -> bool {
    let path = format!("{NODES_PATH}/{}", node_name(number));
    match edit {
        NodeEdit::Join => {
            let request = Request::new(Method::Post, NODES_PATH, Some(&node(number)));
            insist(cluster, request).await
        }
        NodeEdit::Leave => insist(cluster, Request::new(Method::Delete, &path, None)).await,
        NodeEdit::Pool(pool) => {
            user::patch(cluster, &path, &json!({"metadata": {"labels": {POOL: pool}}})).await
        }
        NodeEdit::Taint(effect) => match tainted(cluster, number, effect) {
            Some(taints) => user::patch(cluster, &path, &json!({"spec": {"taints": taints}})).await,
            None => false,
        },
        NodeEdit::Cordon(cordoned) => {
            user::patch(cluster, &path, &json!({"spec": {"unschedulable": cordoned}})).await
        }
        NodeEdit::Ready(status) => {
            let condition = json!({"type": "Ready", "status": status});
            let body = json!({"status": {"conditions": [condition]}});
            let request = Request::new(Method::Patch, &format!("{path}/status"), Some(&body));
            insist(
                cluster,
                request.content_type("application/strategic-merge-patch+json"),
            )
            .await
        }
    }
}

/// The taints of a node, with another one of users; nothing if there is no such node.
fn tainted(cluster: &Arc<Cluster>, number: u8, effect: &str) -> Option<Vec<Value>> {
    cluster.look(|state| {
        let node = state.mirror.of(NODES).named(&node_name(number))?;
        let taints = node.value()["spec"]["taints"].as_array();
        let others = taints.into_iter().flatten().filter(|one| one["key"] != TAINT);
        let added = (!effect.is_empty()).then(|| taint(effect));
        Some(others.cloned().chain(added).collect())
    })
}
