//! What users do to requests and pods.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::Value;

use super::start::{Edit, REQUESTS, Start, pod_name};
use crate::engine::{
    agents, boot,
    cluster::Cluster,
    subject::User,
    user::{self, insist},
};
use crate::subjects::node_agents;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";

/// Users of requests, and those who run pods and nodes.
pub struct ContainerRecreateRequestUser {
    /// The pods when they are created.
    pub start: Start,
}

impl User for ContainerRecreateRequestUser {
    fn attend(&self, cluster: &Arc<Cluster>) {
        let setup = agents::Setup {
            dying: self.start.dying,
        };
        agents::attend(cluster, boot::NODES.map(str::to_owned), setup);
    }

    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            for place in 0..self.start.pods {
                self.create_pod(cluster, place).await;
            }
        }
        .boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            Ok(match Edit::deserialize(change)? {
                Edit::Request(place, recreate) => {
                    let number = cluster.look(|state| state.mirror.of(REQUESTS).objects.len());
                    let request = recreate.request(&format!("restart-{number}"), place);
                    // A pod that does not run yet is none to restart containers of.
                    insist(cluster, Request::new(Method::Post, PATH, Some(&request))).await
                }
                Edit::Delete(place) => {
                    let request = cluster.look(|state| state.object_at(REQUESTS, place));
                    let Some(request) = request else { return Ok(false) };
                    let path = format!("{PATH}/{}", request.name);
                    insist(cluster, Request::new(Method::Delete, &path, None)).await
                }
                Edit::Pod(place) => {
                    let path = format!("{PODS_PATH}/{}", pod_name(place));
                    insist(cluster, Request::new(Method::Delete, &path, None)).await;
                    self.create_pod(cluster, place).await
                }
                Edit::Agent(number, edit) => node_agents::perform(cluster, number, edit),
            })
        }
        .boxed()
    }
}

impl ContainerRecreateRequestUser {
    async fn create_pod(&self, cluster: &Arc<Cluster>, place: u8) -> bool {
        let pod = self.start.pod(place);
        user::create_once_free(cluster, PODS_PATH, &pod).await
    }
}
