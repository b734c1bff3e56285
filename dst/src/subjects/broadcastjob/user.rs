//! What users do to a BroadcastJob and to nodes.

use super::start::{Edit, JOBS, Start};
use crate::rules::prelude::*;
use crate::subjects::nodes;

/// Users of one BroadcastJob, and those who run the nodes.
impl Users for Start {
    type Edit = Edit;

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        nodes::prepare(cluster, self.nodes).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        user::create(cluster, &JOBS.in_default(), &self.job()).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let path = JOBS.one("web");
        let spec = match edit.clone() {
            Edit::Node(number, edit) => return nodes::edit(cluster, number, &edit).await,
            Edit::Again => {
                // It may be gone already.
                user::delete(cluster, &path).await;
                return user::create(cluster, &JOBS.in_default(), &self.job()).await;
            }
            Edit::Skew(seconds) => {
                cluster.look(|state| state.skew = seconds);
                return true;
            }
            Edit::Parallelism(text) => json!({"parallelism": int_or_string(&text)}),
            Edit::Policy(policy) => json!({"failurePolicy": {"type": policy}}),
            Edit::Paused(paused) => json!({"paused": paused}),
            Edit::Succeeds(succeeds) => {
                let end = if succeeds { "succeeds" } else { "fails" };
                let patch = json!({"spec": {"template": {"metadata": {"annotations": {"dst/end": end}}}}});
                return user::patch(cluster, &JOBS.older().one("web"), &patch).await;
            }
        };
        user::patch(cluster, &path, &json!({"spec": spec})).await
    }
}
