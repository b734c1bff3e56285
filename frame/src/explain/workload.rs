//! What the explanations of all workloads share: reading the cluster, and the text.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use kruise_api::{
    condition::Condition,
    definition::Kind,
    lifecycle::Lifecycle,
    names::conditions::{PODS_REFUSED, STALLED},
    parse::Parse,
    path::segment,
};
use kruise_plan_kit::{Memory, Plan, ResourceId, Why, trial::Trials};
use kruise_runtime::{Served, discovery, parsed::Parsed};
use kruise_views::{PodView, RevisionView};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Request,
    events::Warnings,
    list, list_pods, metadata,
    pods::{self, Facts},
    render,
};
use crate::{
    caches::Owned,
    leader::LeaderSettings,
    registration::{ServerFacts, kinds, server_facts},
};

/// A cluster, and how its manager decides.
pub struct Cluster<'r> {
    request: &'r Request<'r>,
    /// The served version of each resource.
    pub served: Served,
    /// The manager's settings.
    pub settings: LeaderSettings,
    /// Where they come from, for the explanation.
    settings_line: Option<String>,
    /// Other facts about the API server.
    pub server: ServerFacts,
    /// Lines of the outlook that depend on the plan.
    outlook: Option<OutlookLines>,
}

/// Lines that depend on the plan.
type OutlookLines = Box<dyn Fn(&Plan) -> Vec<String> + Send + Sync>;

/// The pods of a namespace: as plans read them, and in full.
pub struct Pods {
    /// As plans read them.
    pub views: Vec<Arc<PodView>>,
    full: Vec<Arc<Value>>,
}

impl<'r> Cluster<'r> {
    /// The object that the request names, and the cluster that it is in.
    pub async fn read<T: Parse>(request: &'r Request<'r>, kind: &Kind) -> anyhow::Result<(Self, T)> {
        let Request {
            client,
            namespace,
            name,
            ..
        } = *request;
        let served = discovery::discover(client, &kinds(request.registrations), &[]).await?;
        let collection = served.collection(ResourceId::of(kind), Some(namespace))?;
        let path = format!("{collection}/{}", segment(name));
        let cached: Parsed<T> = client
            .get(&path)
            .await
            .with_context(|| format!("cannot read {} {namespace}/{name}", kind.kind))?;
        let object = cached
            .object
            .map_err(|error| anyhow!("the specification cannot be read: {error}"))?;
        let (settings, settings_line) = request.settings.resolve(client).await?;
        let server = server_facts(
            &settings.gates,
            request.registrations,
            client,
            &served,
            Some(namespace),
        )
        .await?;
        let cluster = Self {
            request,
            served,
            settings,
            settings_line,
            server,
            outlook: None,
        };
        Ok((cluster, object))
    }

    /// The objects of a resource in the namespace of the request.
    pub async fn list<T: DeserializeOwned>(&self, resource: ResourceId) -> anyhow::Result<Vec<Arc<T>>> {
        let path = self.served.collection(resource, Some(self.request.namespace))?;
        list(self.request.client, &path).await
    }

    /// The objects of a cluster-scoped resource.
    pub async fn list_all<T: DeserializeOwned>(&self, resource: ResourceId) -> anyhow::Result<Vec<Arc<T>>> {
        list(self.request.client, &self.served.collection(resource, None)?).await
    }

    /// The pods in the namespace of the request.
    pub async fn pods(&self) -> anyhow::Result<Pods> {
        let path = self
            .served
            .collection(ResourceId::PODS, Some(self.request.namespace))?;
        let (views, full) = list_pods(self.request.client, &path).await?;
        Ok(Pods { views, full })
    }

    /// The revisions in the namespace of the request.
    pub async fn revisions(&self) -> anyhow::Result<Vec<Arc<RevisionView>>> {
        self.list(ResourceId::REVISIONS).await
    }

    /// Lines of the outlook, for the plan that is explained.
    pub fn add_outlook(&mut self, lines: impl Fn(&Plan) -> Vec<String> + Send + Sync + 'static) {
        self.outlook = Some(Box::new(lines));
    }

    /// The text of a plan whose pods are `own`. Fails if the request is for a pod that neither they nor the plan know.
    pub async fn explain(
        self,
        kind: &Kind,
        (pods, own): (Pods, &[Arc<PodView>]),
        lifecycle: Option<&Lifecycle>,
        mut plan: Plan,
    ) -> anyhow::Result<String> {
        let Request {
            client,
            namespace,
            name,
            pod,
            ..
        } = *self.request;
        if let Some(pod) = pod
            && !own.iter().any(|have| *have.name == *pod)
            && !is_planned(&plan, pod)
        {
            bail!("{} {namespace}/{name} has no pod {pod}", kind.kind);
        }
        plan.why.extend(self.settings_line.map(|text| Why {
            about: String::new(),
            text,
        }));
        if pod.is_none() && plan.creates_pods() {
            let refusal = Warnings::refusal(client, namespace, (kind.kind, name)).await;
            plan.why
                .extend(refusal.map(|warning| Why::of_set(warning.to_string())));
        }
        let mut full = pods.full;
        full.retain(|pod| own.iter().any(|view| *view.uid == *metadata(pod, "uid")));
        let warnings = if full.iter().any(|pod| pods::needs_help(pod)) {
            Warnings::read(client, Some(namespace)).await
        } else {
            Warnings::default()
        };
        let named = full.iter().map(|pod| (metadata(pod, "name").to_owned(), &**pod));
        let facts = Facts::of(named, lifecycle, &warnings, client.now());
        let outlook = self.outlook.map(|lines| lines(&plan)).unwrap_or_default();
        Ok(render(
            &format!("{} {namespace}/{name}", kind.kind),
            &plan,
            &facts,
            &outlook,
            pod,
        ))
    }
}

/// Whether the plan is about a pod of this name, which may not exist yet.
fn is_planned(plan: &Plan, pod: &str) -> bool {
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let mut targets = steps.map(|step| step.write.target());
    plan.why.iter().any(|why| *why.about == *pod)
        || targets.any(|target| target.resource == ResourceId::PODS && *target.name == *pod)
}

/// Whether the object is controlled by the owner with this uid.
pub fn is_controlled_by(object: &impl Owned, uid: &str) -> bool {
    object.controller().is_some_and(|owner| *owner.uid == *uid)
}

/// Memory with the errors that the manager remembers, restored from the conditions that report them. Each condition
/// is given as its type and what precedes the error in its message.
pub fn memory_of(
    conditions: &[Condition],
    (scale, before_scale): (&str, &str),
    (update, before_update): (&str, &str),
) -> Memory {
    let error = |kind: &str, before: &str| {
        let mut conditions = conditions.iter();
        let failed = conditions.find(|condition| condition.kind == kind && condition.status == "True")?;
        let message = failed.message.as_str();
        Some(message.strip_prefix(before).unwrap_or(message).to_owned())
    };
    let scale_error = error(scale, before_scale);
    let mut conditions = conditions.iter();
    let held = conditions.find(|condition| condition.kind == STALLED && condition.reason == PODS_REFUSED);
    Memory {
        // The message has the revision: it counts for that one only.
        trials: held
            .and_then(|held| Trials::reported(&held.message))
            .unwrap_or_default(),
        create_error: scale_error.clone(),
        scale_error,
        update_error: error(update, before_update),
        ..Memory::default()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use kruise_plan_kit::{Batching, Intent, ObjectWrites, Phase, Step, Target, Write};

    use super::*;

    #[test]
    fn a_pod_that_does_not_exist_yet_is_explained_if_the_plan_is_about_it() {
        let create = |resource: ResourceId, name: &str| Step {
            write: Write::Create {
                intent: Intent::CREATE_POD,
                target: Target {
                    resource,
                    namespace: "shop".into(),
                    name: name.into(),
                },
                body: serde_json::json!({}).into(),
                owner_uid: None,
            },
            reason: String::new(),
            done: None,
            failed: None,
            found_by: None,
        };
        let plan = Plan {
            writes: vec![ObjectWrites {
                phase: Phase::Pods,
                batching: Batching::Bounded,
                after: None,
                steps: vec![
                    create(ResourceId::CLAIMS, "data-web-0"),
                    create(ResourceId::PODS, "web-0"),
                ],
            }],
            why: vec![Why {
                about: "web-1".into(),
                text: "waits for web-0".into(),
            }],
            ..Plan::default()
        };
        let known = ["web-0", "web-1", "web-2", "data-web-0", ""].map(|pod| is_planned(&plan, pod));
        assert_eq!(known, [true, true, false, false, false]);
    }

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
        let of = |conditions: &[Condition]| {
            memory_of(conditions, ("FailedScale", "cannot: "), ("FailedUpdate", ""))
        };
        assert_eq!(of(&[]), Memory::default());
        let conditions = [
            condition("FailedUpdate", "False", ""),
            condition("FailedScale", "True", "cannot: exceeded quota"),
        ];
        let expected = Memory {
            scale_error: Some("exceeded quota".into()),
            create_error: Some("exceeded quota".into()),
            ..Memory::default()
        };
        assert_eq!(of(&conditions), expected);
    }
}
