//! What users do to jobs, and what happens to agents.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::start::{Edit, Start, VIRTUAL, virtual_node};
use crate::engine::{agents, boot, cluster::Cluster, resource::JOBS, subject::User, user::insist};
use crate::subjects::node_agents;

const PATH: &str = "/apis/batch/v1/namespaces/default/jobs";
const NODES_PATH: &str = "/api/v1/nodes";

/// Users of jobs.
pub struct SidecarTerminatorUser {
    /// What the scenario starts with.
    pub start: Start,
}

impl User for SidecarTerminatorUser {
    fn gates(&self) -> Vec<&'static str> {
        vec!["SidecarTerminator"]
    }

    /// The virtual node has none.
    fn attend(&self, cluster: &Arc<Cluster>) {
        let setup = agents::Setup {
            dying: self.start.dying,
        };
        agents::attend(cluster, boot::NODES.map(str::to_owned), setup);
    }

    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        let node = virtual_node(boot::node(VIRTUAL));
        let request = Request::new(Method::Post, NODES_PATH, Some(&node));
        insist(cluster, request).map(|_| ()).boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            Ok(match Edit::deserialize(change)? {
                Edit::Job(job) => {
                    let number = cluster.look(|state| state.mirror.of(JOBS).objects.len());
                    let job = job.job(&format!("report-{number}"));
                    insist(cluster, Request::new(Method::Post, PATH, Some(&job))).await
                }
                Edit::Delete(place) => {
                    let job = cluster.look(|state| state.object_at(JOBS, place));
                    let Some(job) = job else { return Ok(false) };
                    let with_pods = json!({"propagationPolicy": "Background"});
                    let path = format!("{PATH}/{}", job.name);
                    insist(cluster, Request::new(Method::Delete, &path, Some(&with_pods))).await
                }
                Edit::Agent(number, edit) => node_agents::perform(cluster, number, edit),
            })
        }
        .boxed()
    }
}
