//! What users do to an EphemeralJob and to pods.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::start::{Edit, JOBS, Start, command, pod};
use crate::engine::{
    cluster::Cluster,
    resource::PODS,
    subject::User,
    user::{self, insist},
};

const PATH: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/ephemeraljobs";
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";

/// Users of one EphemeralJob, and those who run the pods.
pub struct EphemeralJobUser {
    /// The job when it is created.
    pub start: Start,
}

impl User for EphemeralJobUser {
    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            for _ in 0..self.start.pods {
                more(cluster).await;
            }
            // Until a manager answers for it.
            self.create_job(cluster).await;
        }
        .boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            let spec = match Edit::deserialize(change)? {
                Edit::Pod => return Ok(more(cluster).await),
                Edit::Again => {
                    // It may be gone already.
                    let path = format!("{PATH}/dump");
                    insist(cluster, Request::new(Method::Delete, &path, None)).await;
                    return Ok(self.create_job(cluster).await);
                }
                Edit::Parallelism(parallelism) => json!({"parallelism": parallelism}),
                Edit::Replicas(replicas) => json!({"replicas": replicas}),
                Edit::Paused(paused) => json!({"paused": paused}),
                Edit::Fails(fails) => {
                    let job = cluster.look(|state| state.mirror.of(JOBS).named("dump").cloned());
                    let Some(job) = job else { return Ok(false) };
                    let mut template = job.value()["spec"]["template"].clone();
                    template["ephemeralContainers"][0]["command"] = command(self.start.seconds, fails);
                    json!({"template": template})
                }
            };
            Ok(user::patch(cluster, &format!("{PATH}/dump"), &json!({"spec": spec})).await)
        }
        .boxed()
    }
}

impl EphemeralJobUser {
    async fn create_job(&self, cluster: &Arc<Cluster>) -> bool {
        let number = cluster.look(|state| state.mirror.of(JOBS).objects.len());
        let job = self.start.job(number);
        user::create_once_free(cluster, PATH, &job).await
    }
}

/// Creates a pod.
async fn more(cluster: &Arc<Cluster>) -> bool {
    let number = cluster.look(|state| state.mirror.of(PODS).objects.len());
    insist(cluster, Request::new(Method::Post, PODS_PATH, Some(&pod(number)))).await
}
