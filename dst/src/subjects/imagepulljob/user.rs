//! What users do to ImagePullJobs, their secret and nodes.

use kruise_sim::runtime::{Fault, Trouble};

use super::start::{
    AGENTS, Edit, FOREIGN, MOST_NODES, NODE_IMAGES, SECRET, SECRETS, Start, credentials, fill, name, secret,
};
use crate::engine::agents;
use crate::rules::prelude::*;
use crate::subjects::nodes;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs";
const SECRETS_PATH: &str = "/api/v1/namespaces/default/secrets";
/// How often it is looked whether the node is there.
const TRIES: u32 = 600;
const PAUSE: Duration = Duration::from_secs(1);
/// Label of a node whose agent is away.
const SILENT: &str = "dst/silent";
/// The registry of all images.
const REGISTRY: &str = "docker.io";

/// Users of two ImagePullJobs, and those who run the nodes.
pub struct ImagePullJobUser {
    /// The jobs when they are created.
    pub start: Start,
}

impl Users for ImagePullJobUser {
    type Edit = Edit;

    fn gates(&self) -> Vec<&'static str> {
        vec!["ImagePullJobGate"]
    }

    fn attend(&self, cluster: &Arc<Cluster>) {
        let nodes = (1..=MOST_NODES).map(nodes::node_name);
        agents::attend(cluster, nodes, agents::Setup::default());
        tokio::spawn(add_foreign(cluster.clone()));
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        let seconds = self.start.seconds;
        cluster.with(|state| {
            state
                .world
                .change_registries(|registries| fill(registries, seconds));
        });
        let namespace = json!({"metadata": {"name": AGENTS}});
        user::create(cluster, "/api/v1/namespaces", &namespace).await;
        user::create(cluster, SECRETS_PATH, &secret(0)).await;
        nodes::prepare(cluster, self.start.nodes).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        for place in [0, 1] {
            // Until a manager answers for it.
            self.create_job(cluster, place).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let path = |place: u8| format!("{PATH}/{}", name(place));
        match edit.clone() {
            Edit::Node(number, edit) => nodes::edit(cluster, number, &edit).await,
            Edit::Delete(place) => user::delete(cluster, &path(place)).await,
            Edit::Again(place) => {
                // It may be gone already.
                user::delete(cluster, &path(place)).await;
                self.create_job(cluster, place).await
            }
            Edit::Parallelism(place, parallelism) => {
                let patch = json!({"spec": {"parallelism": parallelism}});
                user::patch(cluster, &path(place), &patch).await
            }
            Edit::Silent(number, silent) => {
                let name = nodes::node_name(number);
                if silent {
                    agents::leave(cluster, &name);
                } else {
                    agents::come_back(cluster, &name);
                }
                let value = if silent { json!("yes") } else { Value::Null };
                let patch = json!({"metadata": {"labels": {(SILENT): value}}});
                let node = format!("/api/v1/nodes/{name}");
                user::patch(cluster, &node, &patch).await
            }
            Edit::Dies(number) => agents::die(cluster, &nodes::node_name(number)),
            Edit::Disk(number, is_full) => {
                let bytes = if is_full { u64::MAX } else { 0 };
                agents::break_runtime(cluster, &nodes::node_name(number), Fault::DiskTaken(bytes))
            }
            Edit::RegistryDown => trouble(cluster, Some(Trouble::Down)),
            Edit::RegistryHangs => trouble(cluster, Some(Trouble::Hangs)),
            Edit::RegistryBack => trouble(cluster, None),
            Edit::Secret => {
                let number = cluster.look(|state| state.mirror.of(SECRETS).changes.len());
                let patch = json!({"data": {".dockerconfigjson": credentials(number)}});
                user::patch(cluster, &format!("{SECRETS_PATH}/{SECRET}"), &patch).await
            }
        }
    }
}

impl ImagePullJobUser {
    async fn create_job(&self, cluster: &Arc<Cluster>, place: u8) -> bool {
        let job = self.start.job(place);
        user::create_once_free(cluster, PATH, &job).await
    }
}

/// Something is wrong with the registry of all images, or nothing.
fn trouble(cluster: &Arc<Cluster>, trouble: Option<Trouble>) -> bool {
    cluster.with(|state| {
        state
            .world
            .change_registries(|registries| registries.registry(REGISTRY).trouble = trouble);
    });
    true
}

/// Somebody has the first node pull an image, and never takes that back.
async fn add_foreign(cluster: Arc<Cluster>) {
    let node = nodes::node_name(1);
    let tag = json!({"tag": "1", "imagePullPolicy": "IfNotPresent", "pullPolicy": {"ttlSecondsAfterFinished": 2_000_000}});
    let patch = json!({"spec": {"images": {(FOREIGN): {"tags": [tag]}}}});
    let path = format!("{}/{node}", NODE_IMAGES.path());
    for _ in 0..TRIES {
        let is_there = cluster.look(|state| state.mirror.of(NODE_IMAGES).named(&node).is_some());
        if is_there && user::patch(&cluster, &path, &patch).await {
            return;
        }
        sleep(PAUSE).await;
    }
}
