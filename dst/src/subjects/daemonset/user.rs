//! What users do to a DaemonSet and to nodes.

use super::edit::Edit;
use super::manifest::{rolling_update, selector, set, strategy};
use super::start::{DAEMONSETS, Start};
use crate::rules::prelude::*;
use crate::subjects::nodes::{self, TAINT, pool};

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/daemonsets";
/// The same DaemonSets in the version that is converted.
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/daemonsets";

/// Users of one DaemonSet, those who run the nodes, and the systems that answer its hooks.
pub struct DaemonSetUser {
    /// Seed of the scenario.
    pub seed: u64,
    /// The DaemonSet when it is created.
    pub start: Start,
}

impl Users for DaemonSetUser {
    type Edit = Edit;

    fn gates(&self) -> Vec<&'static str> {
        self.start.gates()
    }

    fn attend(&self, cluster: &Arc<Cluster>) {
        self.start.hooks().attend(cluster, self.seed);
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        nodes::prepare(cluster, self.start.nodes).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        // Until a manager answers for it.
        user::create(cluster, PATH, &set(&self.start)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        match edit {
            Edit::Node(number, edit) => nodes::edit(cluster, *number, edit).await,
            edit => edit_set(cluster, &self.start, edit).await,
        }
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
