//! A plan in plain words: what would be done, what would not yet, and which limit decides it.

mod sidecarset;

use std::{fmt::Write as _, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use kruise_api::{cloneset::CloneSet, names::conditions};
use kruise_plan_kit::{Memory, Phase, Plan, ResourceId, Step, Why};
use kruise_plan_workloads::cloneset;
use kruise_runtime::{
    Client,
    client::{self, Source},
    discovery,
};
use kruise_views::{ClaimView, ImageJobView, NodeView, PodView, RevisionView};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    controllers::cloneset::{self as controller, CachedCloneSet, World},
    gates::Gates,
    leader::{self, Decides},
    manager,
};

/// What to explain.
#[derive(Args, Debug)]
pub struct Options {
    /// `clone/NAME` or `sidecarset/NAME`.
    target: String,
    /// Only this pod; of a SidecarSet, `NAMESPACE/NAME` where the name alone is not enough.
    pod: Option<String>,
    /// Namespace of the CloneSet.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the manager, where its lease and the revisions of SidecarSets are.
    #[arg(long, default_value = "kruise-system")]
    manager_namespace: String,
    /// Name of the manager's lease, on which it tells how it decides.
    #[arg(long, default_value = "kruise-manager")]
    manager_lease: String,
    /// Feature gates to decide by, as the manager's own flag takes them, whatever it runs with.
    #[arg(long)]
    feature_gates: Option<String>,
}

/// By what is decided.
pub(crate) enum By {
    /// These gates, and no flags.
    Gates(Gates),
    /// What the leader tells on its lease; else the defaults, which the explanation says.
    Leader {
        /// Namespace of the lease.
        namespace: String,
        /// Name of the lease.
        lease: String,
    },
}

impl By {
    /// What to decide by, and what is to be said about it.
    async fn resolve(&self, client: &Client) -> anyhow::Result<(Decides, Option<String>)> {
        let (namespace, lease) = match self {
            Self::Gates(gates) => return Ok((by_gates(gates.clone()), None)),
            Self::Leader { namespace, lease } => (namespace, lease),
        };
        match leader::ask(client, namespace, lease).await {
            Ok(told) => {
                let gates = told.gates.changed();
                let said = (!gates.is_empty()).then(|| format!("decides by the manager's gates: {gates}"));
                Ok((told, said))
            }
            Err(error) => {
                let said = format!(
                    "decides by the default gates; those of the manager are not known: lease {namespace}/{lease}: {error}"
                );
                Ok((by_gates(Gates::parse("", "")?), Some(said)))
            }
        }
    }
}

fn by_gates(gates: Gates) -> Decides {
    Decides {
        gates,
        exclude_preparing_delete: false,
    }
}

/// Asks the cluster and plans, without writing anything.
pub fn run(options: &Options) -> anyhow::Result<String> {
    let (kind, name) = options
        .target
        .split_once('/')
        .ok_or_else(|| anyhow!("write the target as clone/NAME, not {:?}", options.target))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let source = options.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let pod = options.pod.as_deref();
    match kind {
        "clone" | "cloneset" | "clonesets" => {
            let by = match &options.feature_gates {
                Some(gates) => By::Gates(Gates::parse(gates, "")?),
                None => By::Leader {
                    namespace: options.manager_namespace.clone(),
                    lease: options.manager_lease.clone(),
                },
            };
            runtime.block_on(explain(&source, &by, &options.namespace, name, pod))
        }
        "sidecarset" | "sidecarsets" => runtime.block_on(async {
            let client = connect(&source).await?;
            sidecarset::explain(&client, &options.manager_namespace, name, pod).await
        }),
        _ => bail!("{kind:?} cannot be explained; this build explains clone/NAME and sidecarset/NAME"),
    }
}

async fn connect(source: &Source) -> anyhow::Result<Client> {
    let settings = client::Settings {
        user_agent: "kruise-explain".into(),
        timeout: Duration::from_secs(30),
        rate: None,
        host: String::new(),
        clock: kruise_runtime::Clock::SYSTEM,
        observer: None,
    };
    Ok(client::connect(source, settings).await?)
}

/// Explains a CloneSet, or one pod of it.
pub(crate) async fn explain(
    source: &Source,
    by: &By,
    namespace: &str,
    name: &str,
    pod: Option<&str>,
) -> anyhow::Result<String> {
    let client = connect(source).await?;
    let served = discovery::discover(&client).await?;
    let collection = served.collection(ResourceId::CLONESETS, Some(namespace))?;
    let path = format!("{collection}/{name}");
    let cached: CachedCloneSet = client
        .get(&path)
        .await
        .with_context(|| format!("cannot read CloneSet {namespace}/{name}"))?;
    let set = cached
        .set
        .map_err(|error| anyhow!("the specification cannot be read: {error}"))?;
    let mut pods: Vec<Arc<PodView>> = list(&client, &format!("/api/v1/namespaces/{namespace}/pods")).await?;
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    let mut claims: Vec<Arc<ClaimView>> = list(&client, &path).await?;
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
    if let Some(pod) = pod
        && !pods.iter().any(|have| *have.name == *pod)
    {
        bail!("CloneSet {namespace}/{name} has no pod {pod}");
    }
    let revisions: Vec<Arc<RevisionView>> = list(
        &client,
        &format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions"),
    )
    .await?;
    let nodes: Vec<Arc<NodeView>> = list(&client, "/api/v1/nodes").await?;
    let api_version = served.api_version(ResourceId::CLONESETS)?;
    let (decides, said) = by.resolve(&client).await?;
    let server = manager::ask(&decides.gates, &client, &served, Some(namespace)).await?;
    let jobs_path = served.collection(ResourceId::IMAGE_PULL_JOBS, Some(namespace));
    let jobs_path = jobs_path
        .ok()
        .filter(|_| !server.denied.contains(&ResourceId::IMAGE_PULL_JOBS));
    let decisions = controller::options(&decides, &server, jobs_path.is_some());
    let memory = remembered(&set);
    let mut jobs: Vec<Arc<ImageJobView>> = Vec::new();
    if let Some(path) = jobs_path.filter(|_| decisions.images_ahead) {
        jobs = list(&client, &path).await?;
        jobs.retain(|job| {
            let owner = job.controller.as_ref();
            owner.is_some_and(|owner| *owner.uid == *set.metadata.uid)
        });
    }
    let world = World::new(&set, pods, claims, revisions, nodes).with_pull_jobs(jobs);
    let mut plan = world.plan(
        &set,
        &api_version,
        decisions,
        &memory,
        cloneset::Explain::Yes,
        Timestamp::now(),
    );
    plan.why.extend(said.map(|text| Why {
        about: String::new(),
        text,
    }));
    Ok(render(&format!("CloneSet {namespace}/{name}"), &plan, pod))
}

/// What the manager remembers of its last attempt, by what it says of it.
fn remembered(set: &CloneSet) -> Memory {
    let error = |kind: &str| {
        let mut told = set.status.conditions.iter();
        let told = told.find(|condition| condition.kind == kind && condition.status == "True");
        told.map(|condition| condition.message.clone())
    };
    Memory {
        scale_error: error(conditions::FAILED_SCALE),
        update_error: error(conditions::FAILED_UPDATE),
        ..Memory::default()
    }
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

async fn list<T: DeserializeOwned>(client: &Client, path: &str) -> anyhow::Result<Vec<Arc<T>>> {
    let list: List<T> = client
        .get(path)
        .await
        .with_context(|| format!("cannot list {path}"))?;
    Ok(list.items.into_iter().map(Arc::new).collect())
}

/// Prints a plan. `pod` narrows it to one pod.
pub fn render(subject: &str, plan: &Plan, pod: Option<&str>) -> String {
    let mut text = String::new();
    // Pods of many namespaces are called NAMESPACE/NAME; either is taken.
    let about = |name: &str| {
        let alone = |name: &str| name.rsplit('/').next().map(str::to_owned);
        pod.is_none_or(|pod| {
            pod == name || alone(name).as_deref() == Some(pod) || alone(pod).as_deref() == Some(name)
        })
    };
    let steps: Vec<(Phase, &Step)> = plan
        .writes
        .iter()
        .filter(|object| object.steps.iter().any(|step| about(&step.write.target().name)))
        .flat_map(|object| object.steps.iter().map(move |step| (object.phase, step)))
        .collect();
    let _ = writeln!(text, "{subject}");
    for why in plan.why.iter().filter(|why| why.about.is_empty()) {
        let _ = writeln!(text, "  {}", why.text);
    }
    if steps.is_empty() {
        let _ = writeln!(text, "\nNothing would be written now.");
    } else {
        let _ = writeln!(text, "\nWould be written now:");
        for (_, step) in steps {
            let _ = writeln!(text, "  {}: {}", step.write, step.reason);
        }
    }
    let held: Vec<_> = plan
        .why
        .iter()
        .filter(|why| !why.about.is_empty() && about(&why.about))
        .collect();
    if !held.is_empty() {
        let _ = writeln!(text, "\nPods:");
        for why in held {
            let _ = writeln!(text, "  pods/{}: {}", why.about, why.text);
        }
    }
    if let Some(after) = plan.requeue {
        let _ = writeln!(
            text,
            "\nLooks again in {} s, or as soon as something changes.",
            after.as_secs_f32().ceil()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use kruise_api::{cloneset::CloneSet, condition::Condition};
    use kruise_plan_kit::{Memory, Plan, Why};

    use super::{remembered, render};

    #[test]
    fn what_the_manager_says_of_its_last_attempt_is_known_and_what_is_over_is_not() {
        let condition = |kind: &str, status: &str, message: &str| Condition {
            kind: kind.into(),
            status: status.into(),
            last_update_time: Some(Timestamp::UNIX_EPOCH),
            last_transition_time: Some(Timestamp::UNIX_EPOCH),
            reason: "LastAttemptFailed".into(),
            message: message.into(),
        };
        let mut set = CloneSet::default();
        assert_eq!(remembered(&set), Memory::default());
        set.status.conditions = vec![
            condition("FailedUpdate", "False", ""),
            condition("FailedScale", "True", "exceeded quota"),
        ];
        let expected = Memory {
            scale_error: Some("exceeded quota".into()),
            ..Memory::default()
        };
        assert_eq!(remembered(&set), expected);
    }

    #[test]
    fn a_plan_without_writes_says_so_and_names_what_holds_each_pod() {
        let why = |about: &str, text: &str| Why {
            about: about.into(),
            text: text.into(),
        };
        let plan = Plan {
            why: vec![
                why("", "wants 3 pods"),
                why("web-a", "waits: maxUnavailable"),
                why("web-b", "held"),
            ],
            requeue: Some(Duration::from_millis(1500)),
            ..Plan::default()
        };
        let all = render("clonesets/web", &plan, None);
        assert!(all.contains("Nothing would be written now.") && all.contains("pods/web-b: held"));
        let one = render("clonesets/web", &plan, Some("web-a"));
        assert!(one.contains("pods/web-a: waits") && !one.contains("web-b") && one.contains("in 2 s"));
    }
}
