//! What users do to ImagePullJobs, their secret and nodes.

use kruise_sim::runtime::{Fault, Registries, Trouble};

use super::start::{
    AGENTS, Edit, FOREIGN, JOBS, MOST_NODES, NODE_IMAGES, SECRET, SECRETS, Start, credentials, fill, name,
    secret,
};
use crate::engine::agents;
use crate::rules::prelude::*;
use crate::subjects::nodes;

/// How often it is looked whether the node is there.
const TRIES: u32 = 600;
const PAUSE: Duration = Duration::from_secs(1);
/// Label of a node whose agent is away.
const SILENT: &str = "dst/silent";
/// The registry of all images.
const REGISTRY: &str = "docker.io";

/// Users of two ImagePullJobs, and those who run the nodes.
impl Users for Start {
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
        let fill = |registries: &mut Registries| fill(registries, self.seconds);
        cluster.with(|state| state.world.change_registries(fill));
        let namespace = json!({"metadata": {"name": AGENTS}});
        user::create(cluster, "/api/v1/namespaces", &namespace).await;
        user::create(cluster, &SECRETS.in_default(), &secret(0)).await;
        nodes::prepare(cluster, self.nodes).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        for place in [0, 1] {
            user::create_once_free(cluster, &JOBS.in_default(), &self.job(place)).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let path = |place: u8| JOBS.one(name(place));
        match edit.clone() {
            Edit::Node(number, edit) => nodes::edit(cluster, number, &edit).await,
            Edit::Delete(place) => user::delete(cluster, &path(place)).await,
            Edit::Again(place) => user::again(cluster, JOBS, &self.job(place)).await,
            Edit::Parallelism(place, parallelism) => {
                let patch = json!({"spec": {"parallelism": parallelism}});
                user::patch(cluster, &path(place), &patch).await
            }
            Edit::Silent(number, silent) => {
                let name = nodes::node_name(number);
                agents::set_away(cluster, &name, silent);
                let value = if silent { json!("yes") } else { Value::Null };
                let patch = json!({"metadata": {"labels": {(SILENT): value}}});
                user::patch(cluster, &format!("{}/{name}", NODES.path()), &patch).await
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
                user::patch(cluster, &SECRETS.one(SECRET), &patch).await
            }
        }
    }
}

/// Something is wrong with the registry of all images, or nothing.
fn trouble(cluster: &Arc<Cluster>, trouble: Option<Trouble>) -> bool {
    let set = |registries: &mut Registries| registries.registry(REGISTRY).trouble = trouble;
    cluster.with(|state| state.world.change_registries(set));
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
