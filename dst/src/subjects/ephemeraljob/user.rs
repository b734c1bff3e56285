//! What users do to an EphemeralJob and to pods.

use super::start::{Edit, JOBS, Start, command};
use crate::rules::prelude::*;

/// Users of one EphemeralJob, and those who run the pods.
impl Users for Start {
    type Edit = Edit;

    async fn create(&self, cluster: &Arc<Cluster>) {
        for _ in 0..self.pods {
            user::one_more_pod(cluster, "cart").await;
        }
        user::create_once_free(cluster, &JOBS.in_default(), &self.next_job(cluster)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let spec = match edit.clone() {
            Edit::Pod => return user::one_more_pod(cluster, "cart").await,
            Edit::Again => return user::again(cluster, JOBS, &self.next_job(cluster)).await,
            Edit::Parallelism(parallelism) => json!({"parallelism": parallelism}),
            Edit::Replicas(replicas) => json!({"replicas": replicas}),
            Edit::Paused(paused) => json!({"paused": paused}),
            Edit::Fails(fails) => {
                let job = cluster.look(|state| state.mirror.of(JOBS).named("dump").cloned());
                let Some(job) = job else { return false };
                let mut template = job.spec()["template"].clone();
                template["ephemeralContainers"][0]["command"] = command(self.seconds, fails);
                json!({"template": template})
            }
        };
        user::patch(cluster, &JOBS.one("dump"), &json!({"spec": spec})).await
    }
}

impl Start {
    fn next_job(&self, cluster: &Arc<Cluster>) -> Value {
        self.job(cluster.look(|state| state.mirror.of(JOBS).objects.len()))
    }
}
