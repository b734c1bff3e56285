//! Explains the plan of an ImagePullJob: which nodes pull, which wait and for what, and which could not.

use std::sync::Arc;

use anyhow::bail;
use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    cloneset::{self, CloneSet},
    definition::Kind,
    imagepulljob::{ImagePullJob, KIND},
    names::AGENT_NAMESPACE,
    nodeimage::NodeImage,
    path::segment,
    statefulset::{self, StatefulSet},
};
use kruise_frame::explain::{Request, workload::Cluster};
use kruise_plan_kit::{Explain, Memory, Plan, ResourceId, Why};
use kruise_plan_nodes::imagepulljob::{Nodes, Options, Workload};
use kruise_views::SecretView;

use kruise_api::parse::Parse;

use crate::{imagepulljob::Inputs, images::CachedNodeImage};
use kruise_runtime::parsed::Parsed;

/// Explains an ImagePullJob, or one node of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    // The second name is that of a node.
    let whole = Request {
        pod: None,
        ..*request
    };
    let (cluster, job) = Cluster::read::<Arc<ImagePullJob>>(&whole, &KIND).await?;
    let pods = cluster.pods().await?;
    let nodes: Vec<Arc<CachedNodeImage>> = cluster.list_all(kruise_api::nodeimage::RESOURCE).await?;
    let cloneset = controller::<CloneSet>(&cluster, &whole, &job, &cloneset::KIND).await;
    let statefulset = controller::<StatefulSet>(&cluster, &whole, &job, &statefulset::KIND).await;
    let workload = cloneset.as_ref().map(Workload::CloneSet);
    let workload = workload.or(statefulset.as_ref().map(Workload::StatefulSet));
    let (secrets, hidden) = secrets(&cluster, &whole, &job).await;
    let api_version = cluster.served.api_version(kruise_api::imagepulljob::RESOURCE)?;
    let (memory, now) = (Memory::default(), request.client.now());
    let mut plan = {
        let inputs = Inputs::new(
            &job,
            &Listed(&nodes),
            pods.views.clone(),
            workload,
            Box::new(secrets),
            now,
        );
        let options = (&*api_version, Options::DEFAULT);
        inputs.plan(&job, options, false, &memory, Explain::Yes, now)
    };
    plan.why.extend(hidden.map(Why::of_set));
    if let Some(node) = request.pod {
        narrow(&mut plan, node)?;
    }
    cluster.explain(&KIND, (pods, &[]), None, plan).await
}

/// Leaves in the plan what is about the whole job and about this node.
fn narrow(plan: &mut Plan, node: &str) -> anyhow::Result<()> {
    plan.writes
        .retain(|object| object.steps.iter().any(|step| step.write.target().name == node));
    plan.why
        .retain(|why| why.about.is_empty() || why.node() == Some(node));
    if plan.writes.is_empty() && !plan.why.iter().any(|why| why.node() == Some(node)) {
        bail!("the job does not pull on a node {node}");
    }
    Ok(())
}

/// The workload of this kind that the job was created for, if there is one and it can be read.
async fn controller<T: Parse>(
    cluster: &Cluster<'_>,
    request: &Request<'_>,
    job: &ImagePullJob,
    kind: &Kind,
) -> Option<T> {
    let owner = job.metadata.controller()?;
    if owner.kind != kind.kind || owner.group() != kind.group {
        return None;
    }
    let collection = cluster
        .served
        .collection(ResourceId::of(kind), Some(request.namespace))
        .ok()?;
    let path = format!("{collection}/{}", segment(&owner.name));
    request.client.get::<Parsed<T>>(&path).await.ok()?.object.ok()
}

/// The secrets that the job names and the copies of them; a line about it if they may not be read.
async fn secrets(
    cluster: &Cluster<'_>,
    request: &Request<'_>,
    job: &ImagePullJob,
) -> (Vec<Arc<SecretView>>, Option<&'static str>) {
    if job.spec.pull_secrets.is_empty() {
        return (Vec::new(), None);
    }
    let mut all: Vec<Arc<SecretView>> = Vec::new();
    for namespace in [request.namespace, AGENT_NAMESPACE] {
        let listed = async {
            let path = cluster.served.collection(ResourceId::SECRETS, Some(namespace))?;
            kruise_frame::explain::list(request.client, &path).await
        };
        let Ok(listed) = listed.await else {
            let hidden = "you may not list the secrets that it names: it is explained as if there were none";
            return (Vec::new(), Some(hidden));
        };
        all.extend(listed);
    }
    (all, None)
}

/// NodeImages of a list.
struct Listed<'a>(&'a [Arc<CachedNodeImage>]);

impl Nodes for Listed<'_> {
    fn get(&self, name: &str) -> Option<Arc<NodeImage>> {
        let found = self.0.iter().find(|node| node.metadata.name == name);
        found?.object.as_ref().ok().cloned()
    }

    fn all(&self) -> Vec<Arc<NodeImage>> {
        let read = self.0.iter().filter_map(|node| node.object.as_ref().ok());
        read.cloned().collect()
    }
}
