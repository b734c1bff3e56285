//! What users do to a DaemonSet and to nodes.

use super::edit::Edit;
use super::manifest::{rolling_update, selector, set, strategy};
use super::start::{DAEMONSETS, Start};
use crate::rules::prelude::*;
use crate::subjects::nodes::{self, TAINT, pool};
use crate::subjects::templates::{annotation, image, on_delete, rolling, variable};

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
        self.start
            .prunes
            .then_some("DaemonSetPruneIneligibleNodes")
            .into_iter()
            .collect()
    }

    fn attend(&self, cluster: &Arc<Cluster>) {
        self.start.hooks().attend(cluster, self.seed);
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        nodes::prepare(cluster, self.start.nodes).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        user::create(cluster, &DAEMONSETS.in_default(), &set(&self.start)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        if let Edit::Node(number, edit) = edit {
            return nodes::edit(cluster, *number, edit).await;
        }
        if cluster.look(|state| state.mirror.only(DAEMONSETS).is_none()) {
            return false;
        }
        // Some is written in the older version: all it does not name must survive.
        let of = match edit {
            Edit::Annotation(_) | Edit::Partition(_) | Edit::MinReady(_) => DAEMONSETS.older(),
            _ => DAEMONSETS,
        };
        user::patch(cluster, &of.one("web"), &patch(cluster, &self.start, edit)).await
    }
}

/// What an edit changes of the DaemonSet; null if that is nothing.
fn patch(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> Value {
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    match edit {
        Edit::Image(number) => image(cluster, DAEMONSETS, *number),
        Edit::Env(number) => variable(cluster, DAEMONSETS, *number),
        Edit::Annotation(number) => annotation("team", Some(*number)),
        Edit::Strategy(to) => json!({"spec": {"updateStrategy": {"rollingUpdate": strategy(to)}}}),
        Edit::Partition(text) => rolling("partition", (!text.is_empty()).then(|| int_or_string(text))),
        Edit::Selector(pool) => rolling("selector", selector(pool)),
        Edit::Paused(paused) => rolling("paused", *paused),
        Edit::OnDelete(is_on) => on_delete((!is_on).then(|| rolling_update(start))),
        Edit::MinReady(seconds) => json!({"spec": {"minReadySeconds": seconds}}),
        Edit::Burst(text) => json!({"spec": {"burstReplicas": int_or_string(text)}}),
        Edit::Pool(name) => template(json!({"nodeSelector": pool(name)})),
        Edit::Tolerate(true) => template(json!({"tolerations": [{"key": TAINT, "operator": "Exists"}]})),
        Edit::Tolerate(false) => template(json!({"tolerations": null})),
        Edit::Node(..) => Value::Null,
    }
}
