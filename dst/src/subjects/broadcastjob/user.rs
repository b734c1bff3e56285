//! What users do to a BroadcastJob and to nodes.

use super::start::{Edit, Start};
use crate::rules::prelude::*;
use crate::subjects::nodes;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/broadcastjobs";
/// The same BroadcastJobs in the older version.
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/broadcastjobs";

/// Users of one BroadcastJob, and those who run the nodes.
pub struct BroadcastJobUser {
    /// The job when it is created.
    pub start: Start,
}

impl Users for BroadcastJobUser {
    type Edit = Edit;

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        nodes::prepare(cluster, self.start.nodes).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        // Until a manager answers for it.
        user::create(cluster, PATH, &self.start.job()).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let patch = match edit.clone() {
            Edit::Node(number, edit) => return nodes::edit(cluster, number, &edit).await,
            Edit::Again => return self.again(cluster).await,
            Edit::Skew(seconds) => {
                cluster.look(|state| state.skew = seconds);
                return true;
            }
            Edit::Parallelism(text) => json!({"spec": {"parallelism": int_or_string(&text)}}),
            Edit::Policy(policy) => json!({"spec": {"failurePolicy": {"type": policy}}}),
            Edit::Paused(paused) => json!({"spec": {"paused": paused}}),
            Edit::Succeeds(succeeds) => {
                let end = if succeeds { "succeeds" } else { "fails" };
                let metadata = json!({"annotations": {"dst/end": end}});
                let patch = json!({"spec": {"template": {"metadata": metadata}}});
                // Written in the older version.
                return user::patch(cluster, &format!("{OLDER}/web"), &patch).await;
            }
        };
        user::patch(cluster, &format!("{PATH}/web"), &patch).await
    }
}

impl BroadcastJobUser {
    async fn again(&self, cluster: &Arc<Cluster>) -> bool {
        // It may be gone already.
        user::delete(cluster, &format!("{PATH}/web")).await;
        user::create(cluster, PATH, &self.start.job()).await
    }
}
