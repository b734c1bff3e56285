//! `kruise explain`: prints what pods report, a plan, what it waits for, and which limit holds it.

pub(crate) mod advancedcronjob;
pub(crate) mod broadcastjob;
pub(crate) mod cloneset;
pub(crate) mod containerrecreaterequest;
pub(crate) mod daemonset;
pub(crate) mod ephemeraljob;
mod events;
pub(crate) mod imagelistpulljob;
pub(crate) mod imagepulljob;
mod nodes;
mod outlook;
pub(crate) mod persistentpodstate;
pub(crate) mod podprobemarker;
mod pods;
pub(crate) mod podunavailablebudget;
mod pulls;
pub(crate) mod resourcedistribution;
pub(crate) mod sidecarset;
pub(crate) mod statefulset;
pub(crate) mod uniteddeployment;
pub(crate) mod workload;
pub(crate) mod workloadspread;

use std::{fmt::Write as _, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use futures::future::BoxFuture;
use kruise_api::definition::Kind;
use kruise_plan_kit::{Memory, Need, Part, Phase, Plan, Step};
use kruise_runtime::{Client, Served, client::Source};
use kruise_views::PodView;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

pub(crate) use self::events::last_seen;
use self::pods::Facts;
pub(crate) use self::pods::without_reports;
use crate::manager::Registration;
use crate::{
    command, controllers,
    gates::Gates,
    leader::{self, LEASE, LeaderSettings},
};

/// What to explain.
#[derive(Args, Debug)]
pub struct Options {
    /// `clone/NAME`, `sts/NAME`, `daemon/NAME`, `bcj/NAME`, `sidecarset/NAME`, `pub/NAME`, `acj/NAME`, `ejob/NAME`, `imagepulljob/NAME`, `imagelistpulljob/NAME`, `distributor/NAME`, `persistentpodstate/NAME`, `podprobemarker/NAME`, `crr/NAME`, `ud/NAME` or `ws/NAME`.
    target: String,
    /// Only this pod; of a DaemonSet or a BroadcastJob, a pod or a node; of an ImagePullJob a node; of a ResourceDistribution a namespace; of a SidecarSet, `NAMESPACE/NAME` where the name alone is not enough.
    pod: Option<String>,
    /// Namespace of the object; without it that of the kubeconfig's context.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the manager, where its lease and the revisions of SidecarSets are.
    #[arg(long, default_value = "kruise-system")]
    manager_namespace: String,
    /// Name of the manager's lease, on which it tells how it decides.
    #[arg(long, default_value = LEASE)]
    manager_lease: String,
    /// Feature gates to decide by, as the manager's own flag takes them, whatever it runs with.
    #[arg(long)]
    feature_gates: Option<String>,
}

/// Where the settings of a plan come from.
pub enum SettingsSource {
    /// These gates; all flags have their defaults.
    Gates(Gates),
    /// The annotation of the leader lease. If it cannot be read, the defaults, and the explanation has a line about it.
    Leader {
        /// Namespace of the lease.
        namespace: String,
        /// Name of the lease.
        lease: String,
    },
}

impl SettingsSource {
    /// The settings, and a line about them for the explanation.
    async fn resolve(&self, client: &Client) -> anyhow::Result<(LeaderSettings, Option<String>)> {
        let (namespace, lease) = match self {
            Self::Gates(gates) => return Ok((with_gates(gates.clone()), None)),
            Self::Leader { namespace, lease } => (namespace, lease),
        };
        match leader::read(client, namespace, lease).await {
            Ok(settings) => {
                let gates = settings.gates.changed();
                let line = (!gates.is_empty()).then(|| format!("decides by the manager's gates: {gates}"));
                Ok((settings, line))
            }
            Err(error) => {
                let line = format!(
                    "decides by the default gates; those of the manager are not known: lease {namespace}/{lease}: {error}"
                );
                Ok((with_gates(Gates::parse("", "")?), Some(line)))
            }
        }
    }
}

fn with_gates(gates: Gates) -> LeaderSettings {
    LeaderSettings {
        gates,
        exclude_preparing_delete: false,
    }
}

/// Which object to explain, or which pod of it.
pub struct Request<'r> {
    /// The cluster.
    pub client: &'r Client,
    /// Namespace of the object, if its kind is namespaced.
    pub namespace: &'r str,
    /// Name of the object.
    pub name: &'r str,
    /// Explain this pod only.
    pub pod: Option<&'r str>,
    /// Namespace of the manager.
    pub manager_namespace: &'r str,
    /// Where the settings come from.
    pub settings: &'r SettingsSource,
    /// The controllers of this build.
    pub registrations: &'r [&'static Registration],
}

/// Plans an object from the cluster, and writes nothing.
pub type Explainer = for<'r> fn(&'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>>;

/// Plans the object that the options name, and writes nothing.
pub fn run(options: &Options) -> anyhow::Result<String> {
    let (kind, name) = options
        .target
        .split_once('/')
        .ok_or_else(|| anyhow!("write the target as clone/NAME, not {:?}", options.target))?;
    let Some(explain) = explainer(kind) else {
        let targets: Vec<String> = explainers()
            .map(|(kind, _)| format!("{}/NAME", shortest_name(kind)))
            .collect();
        bail!(
            "{kind:?} cannot be explained; this build explains {}; for one pod of a workload, add its name, as in clone/NAME POD",
            enumeration(&targets)
        );
    };
    let settings = match &options.feature_gates {
        Some(gates) => SettingsSource::Gates(Gates::parse(gates, "")?),
        None => SettingsSource::Leader {
            namespace: options.manager_namespace.clone(),
            lease: options.manager_lease.clone(),
        },
    };
    let source = options.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = connect(&source).await?;
        let namespace = options.namespace.as_deref();
        explain(&Request {
            client: &client,
            namespace: namespace.unwrap_or_else(|| client.default_namespace()),
            name,
            pod: options.pod.as_deref(),
            manager_namespace: &options.manager_namespace,
            settings: &settings,
            registrations: &controllers::ALL,
        })
        .await
    })
}

/// What explains a kind that kubectl accepts under this name.
pub(crate) fn explainer(name: &str) -> Option<Explainer> {
    explainers().find_map(|(kind, explain)| has_name(kind, name).then_some(explain))
}

/// The kinds that can be explained, with the function that does it.
fn explainers() -> impl Iterator<Item = (&'static Kind, Explainer)> {
    let registrations = controllers::ALL.into_iter();
    registrations.filter_map(|registration| Some((registration.kind?, registration.explain?)))
}

/// True if kubectl accepts this name for the kind.
pub(crate) fn has_name(kind: &Kind, name: &str) -> bool {
    kind.plural == name || kind.kind.to_lowercase() == name || kind.short_names.contains(&name)
}

/// The shortest name of a kind.
fn shortest_name(kind: &Kind) -> String {
    let short = kind.short_names.first().map(|name| (*name).to_owned());
    short.unwrap_or_else(|| kind.kind.to_lowercase())
}

/// `a, b and c`.
fn enumeration(items: &[String]) -> String {
    match items {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => items.concat(),
    }
}

/// A client of the cluster.
pub(crate) async fn connect(source: &Source) -> anyhow::Result<Client> {
    command::connect("explain", source, Duration::from_secs(30)).await
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

/// Reads what a plan needs.
async fn read_needs(
    client: &Client,
    served: &Served,
    needs: &[Need],
    memory: &mut Memory,
) -> anyhow::Result<()> {
    for need in needs {
        let read = match client.get(&served.path(&need.target(), Part::Main)?).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.to_string()),
        };
        memory.note(need.clone(), read, client.now());
    }
    Ok(())
}

pub(crate) async fn list<T: DeserializeOwned>(client: &Client, path: &str) -> anyhow::Result<Vec<Arc<T>>> {
    let list: List<T> = client
        .get(path)
        .await
        .with_context(|| format!("cannot list {path}"))?;
    Ok(list.items.into_iter().map(Arc::new).collect())
}

/// The pods of a collection: as plans read them, and in full.
async fn list_pods(client: &Client, path: &str) -> anyhow::Result<(Vec<Arc<PodView>>, Vec<Arc<Value>>)> {
    let full: Vec<Arc<Value>> = list(client, path).await?;
    let views = full.iter().map(|pod| PodView::deserialize(&**pod).map(Arc::new));
    let views: Result<_, _> = views.collect();
    Ok((views.with_context(|| format!("cannot read {path}"))?, full))
}

/// A member of an object's metadata.
fn metadata<'a>(object: &'a Value, name: &str) -> &'a str {
    let member = object
        .get("metadata")
        .and_then(|metadata| metadata.get(name)?.as_str());
    member.unwrap_or_default()
}

/// The text of a plan, after what the pods themselves report. With `pod`, only the lines about this pod.
/// `pulls` are lines about images that nodes pull ahead.
fn render(subject: &str, plan: &Plan, facts: &Facts, pulls: &[String], pod: Option<&str>) -> String {
    let mut text = String::new();
    // A plan over several namespaces names pods NAMESPACE/NAME; the name alone is accepted, too.
    let about = |name: &str| -> bool {
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
    let reported = facts.section(about);
    if !reported.is_empty() {
        let _ = writeln!(text, "{reported}");
    }
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
    // It is about all pods.
    if let Some(outlook) = plan.outlook.as_ref().filter(|_| pod.is_none()) {
        text.push_str(&outlook::section(outlook, pulls));
    }
    let held: Vec<_> = plan
        .why
        .iter()
        .filter(|why| !why.about.is_empty() && about(&why.about))
        .collect();
    let (nodes, held): (Vec<_>, Vec<_>) = held.into_iter().partition(|why| why.node().is_some());
    let (namespaces, pods): (Vec<_>, Vec<_>) = held.into_iter().partition(|why| why.namespace().is_some());
    if !nodes.is_empty() {
        let _ = writeln!(text, "\nNodes:");
        for why in nodes {
            let _ = writeln!(text, "  nodes/{}: {}", why.node().unwrap_or_default(), why.text);
        }
    }
    if !namespaces.is_empty() {
        let _ = writeln!(text, "\nNamespaces:");
        for why in namespaces {
            let _ = writeln!(text, "  {}: {}", why.namespace().unwrap_or_default(), why.text);
        }
    }
    if !pods.is_empty() {
        let _ = writeln!(text, "\nPods:");
        for why in pods {
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

    use kruise_plan_kit::{Plan, Why};

    use super::{Facts, render};

    #[test]
    fn a_plan_without_writes_lists_what_holds_each_pod() {
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
        let all = render("clonesets/web", &plan, &Facts::default(), &[], None);
        assert!(all.contains("Nothing would be written now.") && all.contains("pods/web-b: held"));
        let one = render("clonesets/web", &plan, &Facts::default(), &[], Some("web-a"));
        assert!(one.contains("pods/web-a: waits") && !one.contains("web-b") && one.contains("in 2 s"));
    }

    #[test]
    fn nodes_are_told_from_pods() {
        let plan = Plan {
            why: vec![Why::of_node("n1", "gets no pod"), Why::new("web-a", "held")],
            ..Plan::default()
        };
        let text = render("daemonsets/web", &plan, &Facts::default(), &[], None);
        assert!(
            text.contains("Nodes:\n  nodes/n1: gets no pod") && text.contains("Pods:\n  pods/web-a: held")
        );
    }

    #[test]
    fn kinds_that_can_be_explained_follow_from_the_registrations() {
        let targets: Vec<String> = super::explainers()
            .map(|(kind, _)| super::shortest_name(kind))
            .collect();
        assert_eq!(
            super::enumeration(&targets),
            "clone, sts, daemon, bcj, sidecarset, pub, acj, ejob, imagepulljob, imagelistpulljob, distributor, persistentpodstate, podprobemarker, crr, ud and ws"
        );
        let has_name = |name: &str| super::explainers().any(|(kind, _)| super::has_name(kind, name));
        assert!(
            [
                "clone",
                "cloneset",
                "clonesets",
                "asts",
                "statefulset",
                "daemonset",
                "ads",
                "sidecarsets",
                "pub",
                "bcj",
                "broadcastjob",
                "ws",
                "workloadspread"
            ]
            .into_iter()
            .all(has_name)
        );
        assert!(!has_name("nodeimage"));
    }
}
