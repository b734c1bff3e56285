//! Whether one manager acts on everything after the swap, and no two at a time.
//!
//! Two managers cannot share a cluster, whatever each of them watches. Each has its lease in its own namespace, so
//! both lead. The webhook configurations, the roles and the conversion of definitions are in no namespace and have
//! the same names; each manager writes its own over those of the other. Objects in no namespace, such as
//! SidecarSets and NodeImages, belong to both. And OpenKruise has no flag that leaves out a kind or a namespace:
//! `--namespace` names the only one that it watches.
//!
//! So an installation for some kinds or one namespace leaves all other objects to nobody.

use kruise_api::definition::{Kind, Scope};
use kruise_frame::{json::text, pages::Page};
use kruise_install::{manifests::DEPLOYMENT, uninstall};
use kruise_plan_kit::ResourceId;
use kruise_runtime::{ApiError, Served, discovery};
use serde_json::Value;

use super::{
    Check, Finding, Options,
    cluster::{Cluster, named},
    objects::Counted,
};

/// Deployments of a name, in all namespaces.
const NAMED: &str = "/apis/apps/v1/deployments?fieldSelector=metadata.name%3D";

/// Looks for managers, and for objects that nothing would act on.
///
/// # Errors
/// Fails if the cluster does not say what it serves.
pub(super) async fn check(cluster: &Cluster, options: &Options) -> anyhow::Result<Check> {
    let mut findings = Vec::new();
    let summary = match running(cluster).await {
        Ok(running) => {
            findings.extend(beside(&running, &options.namespace));
            match running.as_slice() {
                [] => "none runs in the cluster".to_owned(),
                all => format!("run in {}", all.join(", ")),
            }
        }
        Err(error) => {
            findings.push(Finding::unknown(
                "managers",
                format!("their Deployments cannot be read: {error}"),
            ));
            "not known".to_owned()
        }
    };
    if options.is_partial() {
        let served = discovery::discover(&cluster.client, kruise_kinds::kinds(), &[]).await?;
        for kind in kruise_kinds::kinds().iter().copied() {
            match left(cluster, kind, &served, options).await {
                Ok(finding) => findings.extend(finding),
                Err(error) => {
                    findings.push(Finding::unknown(kind.plural, format!("cannot be read: {error}")));
                }
            }
        }
    }
    Ok(Check::new("managers", summary, findings))
}

/// The namespaces in which a manager runs.
async fn running(cluster: &Cluster) -> Result<Vec<String>, ApiError> {
    let list: Option<Page<Value>> = cluster.object(&format!("{NAMED}{DEPLOYMENT}")).await?;
    let deployments = list.map(|list| list.items).unwrap_or_default();
    let alive = deployments.iter().filter(|deployment| runs(deployment));
    let mut running: Vec<String> = alive
        .map(|deployment| text(deployment, "/metadata/namespace").to_owned())
        .collect();
    running.sort();
    Ok(running)
}

/// Is it a manager's, with pods? Zero replicas are what stops it for the swap.
fn runs(deployment: &Value) -> bool {
    text(deployment, "/metadata/name") == DEPLOYMENT
        && deployment.pointer("/spec/replicas").and_then(Value::as_u64) != Some(0)
}

/// The managers that run beside the one in this namespace.
fn beside(running: &[String], namespace: &str) -> Vec<Finding> {
    let others = running.iter().filter(|other| *other != namespace);
    let finding = |other: &String| {
        let text = format!(
            "is a manager beside that of {namespace}: both act on the same objects, and write the same webhook configurations \
             and definitions"
        );
        let finding = Finding::problem(format!("Deployment {other}/{DEPLOYMENT}"), text);
        finding.advising("scale one of them to 0, or name its namespace with --namespace")
    };
    others.map(finding).collect()
}

/// The objects of a kind that the new installation would leave to nobody.
async fn left(
    cluster: &Cluster,
    kind: &'static Kind,
    served: &Served,
    options: &Options,
) -> Result<Option<Finding>, ApiError> {
    let Ok(path) = served.collection(ResourceId::of(kind), None) else {
        return Ok(None);
    };
    // What managers make by themselves nobody misses.
    if uninstall::INTERNAL.contains(&kind.plural) {
        return Ok(None);
    }
    let (mut left, mut pages) = (Counted::default(), cluster.pages(path));
    while let Some(page) = pages.next().await? {
        for object in page {
            if !options.acts_on(kind, text(&object, "/metadata/namespace")) {
                left.add(&named(kind.kind, &object));
            }
        }
    }
    if left.is_none() {
        return Ok(None);
    }
    let text = format!(
        "nothing acts on them after the swap, because OpenKruise cannot run beside this program: {}",
        left.such_as()
    );
    let action = "take all over, or none";
    Ok(Some(Finding::problem(kind.plural, text).advising(action)))
}

impl Options {
    /// Is the new installation for some kinds or one namespace only?
    fn is_partial(&self) -> bool {
        self.only.is_partial() || self.watch_namespace.is_some()
    }

    /// Would the new installation act on objects of this kind in this namespace, which is empty for those in none?
    fn acts_on(&self, kind: &Kind, namespace: &str) -> bool {
        let watched = self.watch_namespace.as_deref();
        let is_watched = kind.scope == Scope::Cluster || watched.is_none_or(|watched| watched == namespace);
        self.only.includes(kind) && is_watched
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manager_runs_unless_it_has_no_replicas() {
        let deployment = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
        assert!(runs(&deployment(DEPLOYMENT, json!({"replicas": 2}))));
        assert!(runs(&deployment(DEPLOYMENT, json!({}))));
        assert!(!runs(&deployment(DEPLOYMENT, json!({"replicas": 0}))));
        assert!(!runs(&deployment("other", json!({"replicas": 2}))));
    }

    #[test]
    fn a_second_manager_is_a_problem_wherever_it_runs() {
        let running = |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        assert_eq!(beside(&running(&["kruise-system"]), "kruise-system"), []);
        let found = beside(&running(&["kruise", "kruise-system"]), "kruise-system");
        let about: Vec<&str> = found.iter().map(|finding| &*finding.about).collect();
        assert_eq!(about, ["Deployment kruise/kruise-controller-manager"]);
    }

    #[test]
    fn objects_of_other_kinds_and_namespaces_are_left() {
        let kind = |plural: &str| {
            kruise_kinds::kinds()
                .iter()
                .copied()
                .find(|kind| kind.plural == plural)
                .unwrap()
        };
        let (clonesets, sidecarsets) = (kind("clonesets"), kind("sidecarsets"));
        let mut options = Options::of("kruise-system");
        assert!(!options.is_partial() && options.acts_on(clonesets, "a"));
        options.watch_namespace = Some("a".into());
        assert!(options.is_partial());
        assert!(options.acts_on(clonesets, "a") && !options.acts_on(clonesets, "b"));
        assert!(options.acts_on(sidecarsets, ""));
        options.only = kruise_kinds::profile("clonesets").unwrap();
        assert!(options.acts_on(clonesets, "a") && !options.acts_on(sidecarsets, ""));
    }
}
