//! Explains the plan of a CloneSet: which pods would be created, updated and deleted, and what holds the others.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use futures::future::{BoxFuture, FutureExt};
use kruise_api::{cloneset::CloneSet, names::conditions, path::segment};
use kruise_plan_kit::{Memory, ResourceId, Why};
use kruise_plan_workloads::cloneset;
use kruise_runtime::discovery;
use kruise_views::{ClaimView, ImageJobView, NodeView, RevisionView};

use super::{
    Request,
    events::Warnings,
    list, list_pods, metadata,
    pods::{self, Facts},
    render,
};
use crate::{
    controllers::cloneset::{self as controller, CachedCloneSet, Inputs},
    manager,
};

/// Explains a CloneSet, or one pod of it.
pub(crate) fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let Request {
        client,
        namespace,
        name,
        pod,
        ..
    } = *request;
    let served = discovery::discover(client, &[]).await?;
    let collection = served.collection(ResourceId::CLONESETS, Some(namespace))?;
    let path = format!("{collection}/{}", segment(name));
    let cached: CachedCloneSet = client
        .get(&path)
        .await
        .with_context(|| format!("cannot read CloneSet {namespace}/{name}"))?;
    let set = cached
        .set
        .map_err(|error| anyhow!("the specification cannot be read: {error}"))?;
    let namespace_path = format!("/api/v1/namespaces/{}", segment(namespace));
    let (mut pods, mut full) = list_pods(client, &format!("{namespace_path}/pods")).await?;
    let path = format!("{namespace_path}/persistentvolumeclaims");
    let mut claims: Vec<Arc<ClaimView>> = list(client, &path).await?;
    claims.retain(|claim| {
        let owner = claim.controller.as_ref();
        owner.is_some_and(|owner| *owner.uid == *set.metadata.uid)
    });
    let claims = cloneset::Claims::new(&set, claims, |name| pods.iter().any(|pod| *pod.name == *name));
    pods.retain(|pod| {
        pod.controller
            .as_ref()
            .is_some_and(|owner| *owner.uid == *set.metadata.uid)
    });
    full.retain(|pod| pods.iter().any(|view| *view.uid == *metadata(pod, "uid")));
    if let Some(pod) = pod
        && !pods.iter().any(|have| *have.name == *pod)
    {
        bail!("CloneSet {namespace}/{name} has no pod {pod}");
    }
    let revisions: Vec<Arc<RevisionView>> = list(
        client,
        &format!(
            "/apis/apps/v1/namespaces/{}/controllerrevisions",
            segment(namespace)
        ),
    )
    .await?;
    let nodes: Vec<Arc<NodeView>> = list(client, "/api/v1/nodes").await?;
    let api_version = served.api_version(ResourceId::CLONESETS)?;
    let (settings, settings_line) = request.settings.resolve(client).await?;
    let server = manager::server_facts(&settings.gates, client, &served, Some(namespace)).await?;
    let jobs_path = served.collection(ResourceId::IMAGE_PULL_JOBS, Some(namespace));
    let jobs_path = jobs_path
        .ok()
        .filter(|_| !server.denied.contains(&ResourceId::IMAGE_PULL_JOBS));
    let options = controller::options(&settings, &server, jobs_path.is_some());
    let memory = memory_of(&set);
    let mut jobs: Vec<Arc<ImageJobView>> = Vec::new();
    if let Some(path) = jobs_path.filter(|_| options.images_ahead) {
        jobs = list(client, &path).await?;
        jobs.retain(|job| {
            let owner = job.controller.as_ref();
            owner.is_some_and(|owner| *owner.uid == *set.metadata.uid)
        });
    }
    let inputs = Inputs::new(&set, pods, claims, revisions, nodes).with_pull_jobs(jobs);
    let now = client.now();
    let mut plan = inputs.plan(&set, &api_version, options, &memory, cloneset::Explain::Yes, now);
    plan.why.extend(settings_line.map(|text| Why {
        about: String::new(),
        text,
    }));
    let warnings = if full.iter().any(|pod| pods::needs_help(pod)) {
        Warnings::read(client, Some(namespace)).await
    } else {
        Warnings::default()
    };
    let named = full.iter().map(|pod| (metadata(pod, "name").to_owned(), &**pod));
    let facts = Facts::of(named, set.spec.lifecycle.as_ref(), &warnings, now);
    Ok(render(
        &format!("CloneSet {namespace}/{name}"),
        &plan,
        &facts,
        pod,
    ))
}

/// The errors that the manager remembers, restored from the conditions that report them.
fn memory_of(set: &CloneSet) -> Memory {
    let error = |kind: &str| {
        let mut conditions = set.status.conditions.iter();
        let failed = conditions.find(|condition| condition.kind == kind && condition.status == "True");
        failed.map(|condition| condition.message.clone())
    };
    Memory {
        scale_error: error(conditions::FAILED_SCALE),
        update_error: error(conditions::FAILED_UPDATE),
        ..Memory::default()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kruise_api::condition::Condition;

    use super::*;

    #[test]
    fn errors_are_restored_from_conditions_that_are_true() {
        let condition = |kind: &str, status: &str, message: &str| Condition {
            kind: kind.into(),
            status: status.into(),
            last_update_time: Some(Timestamp::UNIX_EPOCH),
            last_transition_time: Some(Timestamp::UNIX_EPOCH),
            reason: "LastAttemptFailed".into(),
            message: message.into(),
        };
        let mut set = CloneSet::default();
        assert_eq!(memory_of(&set), Memory::default());
        set.status.conditions = vec![
            condition("FailedUpdate", "False", ""),
            condition("FailedScale", "True", "exceeded quota"),
        ];
        let expected = Memory {
            scale_error: Some("exceeded quota".into()),
            ..Memory::default()
        };
        assert_eq!(memory_of(&set), expected);
    }
}
