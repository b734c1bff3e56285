//! What users do to an EphemeralJob and to pods.

use super::start::{Edit, JOBS, Start, command, pod};
use crate::rules::prelude::*;

const PATH: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/ephemeraljobs";
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";

/// Users of one EphemeralJob, and those who run the pods.
pub struct EphemeralJobUser {
    /// The job when it is created.
    pub start: Start,
}

impl Users for EphemeralJobUser {
    type Edit = Edit;

    async fn create(&self, cluster: &Arc<Cluster>) {
        for _ in 0..self.start.pods {
            more(cluster).await;
        }
        // Until a manager answers for it.
        self.create_job(cluster).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let spec = match edit.clone() {
            Edit::Pod => return more(cluster).await,
            Edit::Again => {
                // It may be gone already.
                let path = format!("{PATH}/dump");
                user::delete(cluster, &path).await;
                return self.create_job(cluster).await;
            }
            Edit::Parallelism(parallelism) => json!({"parallelism": parallelism}),
            Edit::Replicas(replicas) => json!({"replicas": replicas}),
            Edit::Paused(paused) => json!({"paused": paused}),
            Edit::Fails(fails) => {
                let job = cluster.look(|state| state.mirror.of(JOBS).named("dump").cloned());
                let Some(job) = job else { return false };
                let mut template = job.value()["spec"]["template"].clone();
                template["ephemeralContainers"][0]["command"] = command(self.start.seconds, fails);
                json!({"template": template})
            }
        };
        user::patch(cluster, &format!("{PATH}/dump"), &json!({"spec": spec})).await
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
    user::create(cluster, PODS_PATH, &pod(number)).await
}
