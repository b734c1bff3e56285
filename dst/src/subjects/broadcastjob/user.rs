//! What users do to a BroadcastJob and to nodes.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::start::{Edit, Start};
use crate::engine::{
    cluster::Cluster,
    subject::User,
    user::{self, insist, int_or_string},
};
use crate::subjects::nodes;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/broadcastjobs";
/// The same BroadcastJobs in the older version.
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/broadcastjobs";

/// Users of one BroadcastJob, and those who run the nodes.
pub struct BroadcastJobUser {
    /// The job when it is created.
    pub start: Start,
}

impl User for BroadcastJobUser {
    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            nodes::prepare(cluster, self.start.nodes).await;
        }
        .boxed()
    }

    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        // Until a manager answers for it.
        let request = Request::new(Method::Post, PATH, Some(&self.start.job()));
        insist(cluster, request).map(|_| ()).boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            let patch = match Edit::deserialize(change)? {
                Edit::Node(number, edit) => return Ok(nodes::edit(cluster, number, &edit).await),
                Edit::Again => return Ok(self.again(cluster).await),
                Edit::Skew(seconds) => {
                    cluster.look(|state| state.skew = seconds);
                    return Ok(true);
                }
                Edit::Parallelism(text) => json!({"spec": {"parallelism": int_or_string(&text)}}),
                Edit::Policy(policy) => json!({"spec": {"failurePolicy": {"type": policy}}}),
                Edit::Paused(paused) => json!({"spec": {"paused": paused}}),
                Edit::Succeeds(succeeds) => {
                    let end = if succeeds { "succeeds" } else { "fails" };
                    let metadata = json!({"annotations": {"dst/end": end}});
                    let patch = json!({"spec": {"template": {"metadata": metadata}}});
                    // Written in the older version.
                    return Ok(user::patch(cluster, &format!("{OLDER}/web"), &patch).await);
                }
            };
            Ok(user::patch(cluster, &format!("{PATH}/web"), &patch).await)
        }
        .boxed()
    }
}

impl BroadcastJobUser {
    async fn again(&self, cluster: &Arc<Cluster>) -> bool {
        // It may be gone already.
        insist(
            cluster,
            Request::new(Method::Delete, &format!("{PATH}/web"), None),
        )
        .await;
        insist(cluster, Request::new(Method::Post, PATH, Some(&self.start.job()))).await
    }
}
