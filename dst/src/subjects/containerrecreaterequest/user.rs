//! What users do to requests and pods.

use super::start::{Edit, REQUESTS, Start, pod_name};
use crate::engine::{agents, boot};
use crate::rules::prelude::*;
use crate::subjects::node_agents;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";

/// Users of requests, and those who run pods and nodes.
pub struct ContainerRecreateRequestUser {
    /// The pods when they are created.
    pub start: Start,
}

impl Users for ContainerRecreateRequestUser {
    type Edit = Edit;

    fn attend(&self, cluster: &Arc<Cluster>) {
        let setup = agents::Setup {
            dying: self.start.dying,
        };
        agents::attend(cluster, boot::NODES.map(str::to_owned), setup);
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        for place in 0..self.start.pods {
            self.create_pod(cluster, place).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        match edit.clone() {
            Edit::Request(place, recreate) => {
                let number = cluster.look(|state| state.mirror.of(REQUESTS).objects.len());
                let request = recreate.request(&format!("restart-{number}"), place);
                // A pod that does not run yet is none to restart containers of.
                user::create(cluster, PATH, &request).await
            }
            Edit::Delete(place) => {
                let request = cluster.look(|state| state.object_at(REQUESTS, place));
                let Some(request) = request else { return false };
                let path = format!("{PATH}/{}", request.name);
                user::delete(cluster, &path).await
            }
            Edit::Pod(place) => {
                let path = format!("{PODS_PATH}/{}", pod_name(place));
                user::delete(cluster, &path).await;
                self.create_pod(cluster, place).await
            }
            Edit::Agent(number, edit) => node_agents::perform(cluster, number, edit),
        }
    }
}

impl ContainerRecreateRequestUser {
    async fn create_pod(&self, cluster: &Arc<Cluster>, place: u8) -> bool {
        let pod = self.start.pod(place);
        user::create_once_free(cluster, PODS_PATH, &pod).await
    }
}
