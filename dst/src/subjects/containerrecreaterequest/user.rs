//! What users do to requests and pods.

use super::start::{Edit, REQUESTS, Start, pod_name};
use crate::engine::{agents, boot};
use crate::rules::prelude::*;
use crate::subjects::node_agents;

/// Users of requests, and those who run pods and nodes.
impl Users for Start {
    type Edit = Edit;

    fn attend(&self, cluster: &Arc<Cluster>) {
        let setup = agents::Setup { dying: self.dying };
        agents::attend(cluster, boot::NODES.map(str::to_owned), setup);
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        for place in 0..self.pods {
            user::create_once_free(cluster, &PODS.in_default(), &self.pod(place)).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        match edit.clone() {
            Edit::Request(place, recreate) => {
                let number = cluster.look(|state| state.mirror.of(REQUESTS).objects.len());
                let request = recreate.request(&format!("restart-{number}"), &pod_name(place));
                // A pod that does not run yet is none to restart containers of.
                user::create(cluster, &REQUESTS.in_default(), &request).await
            }
            Edit::Delete(place) => {
                let request = cluster.look(|state| state.object_at(REQUESTS, place));
                let Some(request) = request else { return false };
                user::delete(cluster, &REQUESTS.one(&request.name)).await
            }
            Edit::Pod(place) => user::again(cluster, PODS, &self.pod(place)).await,
            Edit::Agent(number, edit) => node_agents::perform(cluster, number, edit),
        }
    }
}
