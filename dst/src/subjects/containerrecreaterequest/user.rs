//! What users do to requests and pods.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    agents,
    start::{Edit, REQUESTS, Start, pod_name},
};
use crate::engine::{
    cluster::Cluster,
    subject::User,
    user::{self, insist},
};
use crate::subjects::nodes;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";

/// Users of requests, those who run the pods, and the agents of nodes.
pub struct ContainerRecreateRequestUser {
    /// The pods when they are created.
    pub start: Start,
}

impl User for ContainerRecreateRequestUser {
    fn attend(&self, cluster: &Arc<Cluster>) {
        let seed = cluster.look(|state| state.random.clone().draw());
        tokio::spawn(agents::attend(cluster.clone(), self.start.clone(), seed));
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
                    let name = cluster.look(|state| {
                        let requests = state.mirror.of(REQUESTS).now();
                        let mut names: Vec<Arc<str>> = requests.map(|request| request.name.clone()).collect();
                        names.sort();
                        let place = usize::from(place).checked_rem(names.len())?;
                        names.get(place).cloned()
                    });
                    let Some(name) = name else { return Ok(false) };
                    let path = format!("{PATH}/{name}");
                    insist(cluster, Request::new(Method::Delete, &path, None)).await
                }
                Edit::Pod(place) => {
                    let path = format!("{PODS_PATH}/{}", pod_name(place));
                    insist(cluster, Request::new(Method::Delete, &path, None)).await;
                    self.create_pod(cluster, place).await
                }
                Edit::Silent(number, silent) => {
                    let value = if silent { json!("yes") } else { Value::Null };
                    let patch = json!({"metadata": {"labels": {(agents::SILENT): value}}});
                    let node = format!("/api/v1/nodes/{}", nodes::node_name(number));
                    user::patch(cluster, &node, &patch).await
                }
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
