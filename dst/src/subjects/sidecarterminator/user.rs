//! What users do to jobs, and what happens to agents.

use super::start::{Edit, Start, VIRTUAL, virtual_node};
use crate::engine::{agents, boot};
use crate::rules::prelude::*;
use crate::subjects::node_agents;

/// Users of jobs.
impl Users for Start {
    type Edit = Edit;

    fn gates(&self) -> Vec<&'static str> {
        vec!["SidecarTerminator"]
    }

    /// The virtual node has none.
    fn attend(&self, cluster: &Arc<Cluster>) {
        let setup = agents::Setup { dying: self.dying };
        agents::attend(cluster, boot::NODES.map(str::to_owned), setup);
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        let node = virtual_node(boot::node(VIRTUAL));
        user::create(cluster, &NODES.path(), &node).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        match edit.clone() {
            Edit::Job(job) => {
                let number = cluster.look(|state| state.mirror.of(JOBS).objects.len());
                let job = job.job(&format!("report-{number}"));
                user::create(cluster, &JOBS.in_default(), &job).await
            }
            Edit::Delete(place) => {
                let job = cluster.look(|state| state.object_at(JOBS, place));
                let Some(job) = job else { return false };
                let with_pods = json!({"propagationPolicy": "Background"});
                user::delete_as(cluster, &JOBS.one(&job.name), &with_pods).await
            }
            Edit::Agent(number, edit) => node_agents::perform(cluster, number, edit),
        }
    }
}
