//! The engine of explanations: a plan as text, with what pods report, what it waits for, and which limit holds it.
//!
//! A kind reads its objects with [`workload::Cluster`], plans as its controller does, and renders the plan.

pub mod events;
pub mod nodes;
pub mod outlook;
pub mod pods;
pub mod workload;

use std::{fmt::Write as _, sync::Arc};

use anyhow::Context;
use futures::future::BoxFuture;
use kruise_api::definition::Kind;
use kruise_plan_kit::{Memory, Need, Part, Phase, Plan, Step};
use kruise_runtime::{Client, Served};
use kruise_views::PodView;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    gates::Gates,
    leader::{self, LeaderSettings},
    registration::Registration,
};
use pods::Facts;

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
    pub async fn resolve(&self, client: &Client) -> anyhow::Result<(LeaderSettings, Option<String>)> {
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

/// True if kubectl accepts this name for the kind.
pub fn has_name(kind: &Kind, name: &str) -> bool {
    kind.plural == name || kind.kind.to_lowercase() == name || kind.short_names.contains(&name)
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

/// Reads what a plan needs.
pub async fn read_needs(
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

/// The objects of a collection.
pub async fn list<T: DeserializeOwned>(client: &Client, path: &str) -> anyhow::Result<Vec<Arc<T>>> {
    let list: List<T> = client
        .get(path)
        .await
        .with_context(|| format!("cannot list {path}"))?;
    Ok(list.items.into_iter().map(Arc::new).collect())
}

/// The pods of a collection: as plans read them, and in full.
pub async fn list_pods(client: &Client, path: &str) -> anyhow::Result<(Vec<Arc<PodView>>, Vec<Arc<Value>>)> {
    let full: Vec<Arc<Value>> = list(client, path).await?;
    let views = full.iter().map(|pod| PodView::deserialize(&**pod).map(Arc::new));
    let views: Result<_, _> = views.collect();
    Ok((views.with_context(|| format!("cannot read {path}"))?, full))
}

/// A member of an object's metadata.
pub fn metadata<'a>(object: &'a Value, name: &str) -> &'a str {
    let member = object
        .get("metadata")
        .and_then(|metadata| metadata.get(name)?.as_str());
    member.unwrap_or_default()
}

/// The text of a plan, after what the pods themselves report. With `pod`, only the lines about this pod.
/// `lines` are added to the outlook.
pub fn render(subject: &str, plan: &Plan, facts: &Facts, lines: &[String], pod: Option<&str>) -> String {
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
        text.push_str(&outlook::section(outlook, lines));
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
}
