//! `kubectl-kruise inject`: prints pods with the changes of the webhook, and the reasons.
//!
//! It runs the steps of the webhook. Lookups are from the cluster, or from files only.

#![allow(clippy::disallowed_methods, reason = "the pod is made now")]

mod files;
mod pods;

use std::{fmt::Write as _, path::PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use jiff::Timestamp;
use kruise_admission::{
    Lookups, Options as Gates, Request, Response,
    pod::{review, sidecars},
};
use kruise_frame::{
    json::text,
    lookup::{Cache, LookupSource, NoCache, Server},
};
use kruise_runtime::Client;
use serde_json::{Value, json};

use self::{files::Files, pods::pod_of};
use crate::{
    cluster::{Cluster, is_absent},
    connection::Connection,
    report::Report,
    run,
    target::{Selection, Wanted},
};

/// Examples of its command line.
pub const EXAMPLES: &[(&str, &str)] = &[
    (
        "A pod that is not created yet",
        "kubectl kruise inject -f pod.yaml",
    ),
    (
        "The pods of a Deployment that exists",
        "kubectl kruise inject deployment/web",
    ),
    (
        "Without a cluster",
        "kubectl kruise inject -f clone.yaml --with sidecarsets.yaml",
    ),
];

/// What to inject into, and what is known.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// File with pods or workloads, YAML or JSON; - reads standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "targets")]
    filename: Option<PathBuf>,
    /// File with SidecarSets, and Namespaces and ControllerRevisions they need; may be given again. No
    /// cluster is asked.
    #[arg(long, value_name = "FILE", requires = "filename")]
    with: Vec<PathBuf>,
    /// Namespace of the manager, where revisions of SidecarSets are.
    #[arg(long, default_value = "kruise-system", value_name = "NAMESPACE")]
    manager_namespace: String,
    /// As the gate EnableSortSidecarContainerByName: injected containers in the order of their names.
    #[arg(long)]
    sort_sidecars: bool,
    /// As the gate KruisePodReadinessGate: every pod gets the readiness gate.
    #[arg(long)]
    readiness_gate_for_all: bool,
}

/// The pods as YAML, each after a comment for each SidecarSet that says what becomes of it.
///
/// # Errors
/// If nothing has a pod, a pod would be refused, or the cluster cannot be asked.
pub fn run(connection: &Connection, options: &Options) -> anyhow::Result<Report> {
    if let (Some(file), false) = (&options.filename, options.with.is_empty()) {
        let source = LookupSource {
            cache: Files::read(&options.with)?,
            server: None,
        };
        let namespace = connection.given_namespace().unwrap_or("default");
        let pods = in_file(file)?;
        return run::to_end(async {
            let mut report = Report::default();
            for pod in pods {
                add(
                    &mut report,
                    inject(&pod?, namespace, options, &source, Timestamp::now()).await,
                );
            }
            Ok(report)
        });
    }
    let wanted = match &options.filename {
        Some(_) => Vec::new(),
        None => options.selection.wanted("injected into", |_| true)?.0,
    };
    run::to_end(async {
        let client = connection.connect("inject").await?;
        let namespace = connection.namespace(&client);
        let pods = match &options.filename {
            Some(file) => in_file(file)?,
            None => in_cluster(&client, namespace, &options.selection, &wanted).await?,
        };
        let mut report = Report::default();
        for pod in pods {
            let injected = match pod {
                Ok(pod) => of_cluster(&pod, namespace, options, client.clone()).await,
                Err(error) => Err(error),
            };
            add(&mut report, injected);
        }
        Ok(report)
    })
}

/// Adds a document.
fn add(report: &mut Report, injected: anyhow::Result<String>) {
    let is_first = report.text.is_empty();
    report.add(injected.map(|text| if is_first { text } else { format!("---\n{text}") }));
}

/// A pod, or why there is none.
type Pods = Vec<anyhow::Result<Value>>;

/// The pods of a file. Objects without a pod are passed over beside others that have one.
fn in_file(file: &std::path::Path) -> anyhow::Result<Pods> {
    let objects = files::objects(file)?;
    let pods: Pods = objects.iter().map(pod_of).collect();
    let place = || format!("in {}", file.display());
    if pods.iter().any(Result::is_ok) {
        let pods = pods.into_iter().filter_map(Result::ok);
        let checked = pods.map(|pod| {
            files::well_typed_pod(&pod).with_context(place)?;
            Ok(pod)
        });
        return Ok(checked.collect());
    }
    let first = pods.into_iter().next();
    first
        .unwrap_or_else(|| Err(anyhow!("there is no object")))
        .with_context(place)?;
    Ok(Vec::new())
}

/// The pods of objects of the cluster.
async fn in_cluster(
    client: &Client,
    namespace: &str,
    selection: &Selection,
    wanted: &[Wanted],
) -> anyhow::Result<Pods> {
    let cluster = Cluster::discover(client).await?;
    let mut pods = Pods::new();
    for wanted in wanted {
        match wanted {
            Wanted::One(resources, name) => {
                let mut found = Err(anyhow!("there is no {name}"));
                for resource in resources {
                    found = cluster.get(resource, namespace, name).await;
                    if !found.as_ref().is_err_and(is_absent) {
                        break;
                    }
                }
                pods.push(found.and_then(|object| pod_of(&object)));
            }
            Wanted::All(resource) => {
                for (namespace, name) in cluster.names(resource, namespace, selection).await? {
                    let object = cluster.get(resource, &namespace, &name).await;
                    pods.push(object.and_then(|object| pod_of(&object)));
                }
            }
        }
    }
    ensure!(
        !pods.is_empty(),
        "there is no such object in namespace {namespace}"
    );
    Ok(pods)
}

/// A pod with the sidecars that it gets in this cluster, by its clock. `namespace` is for a pod that names
/// none.
pub async fn of_cluster(
    pod: &Value,
    namespace: &str,
    options: &Options,
    client: Client,
) -> anyhow::Result<String> {
    let now = client.now();
    let source = LookupSource {
        cache: NoCache,
        server: Some(Server::new(client, &options.manager_namespace)),
    };
    inject(pod, namespace, options, &source, now).await
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            filename: None,
            with: Vec::new(),
            manager_namespace: "kruise-system".into(),
            sort_sidecars: false,
            readiness_gate_for_all: false,
        }
    }
}

/// The pod as the webhook would answer its creation in this namespace.
async fn inject<C: Cache>(
    pod: &Value,
    namespace: &str,
    options: &Options,
    source: &LookupSource<C>,
    now: Timestamp,
) -> anyhow::Result<String> {
    let gates = Gates {
        sort_sidecars: options.sort_sidecars,
        readiness_gate_for_all: options.readiness_gate_for_all,
        ..Gates::default()
    };
    let own = text(pod, "/metadata/namespace");
    let place = if own.is_empty() { namespace } else { own };
    let request = json!({
        "uid": now.to_string(), "operation": "CREATE", "namespace": place,
        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": pod,
    });
    let mut request = Request::from_review(request)?;
    request.now = now;
    // Nothing is stored, so no pod takes a slot of a WorkloadSpread.
    request.dry_run = true;
    let mut lookups = Lookups::default();
    let review = |lookups: &Lookups| review(&request, gates, lookups);
    let progress = source.advance(&review, &mut lookups);
    let verdict = source.finish(progress, &review, &mut lookups).await?;
    render(pod, &request, &lookups, verdict.response)
}

fn render(pod: &Value, request: &Request, lookups: &Lookups, response: Response) -> anyhow::Result<String> {
    let patch = match response {
        Response::Allow { patch, .. } => patch,
        Response::Deny { message, .. } => bail!("the pod would be refused: {message}"),
    };
    let mut after = pod.clone();
    if let Some(patch) = patch {
        kube_schema::patch::json(&mut after, &serde_json::from_str(&patch)?)
            .map_err(|error| anyhow!("the patch does not apply: {error}"))?;
    }
    let mut text = String::new();
    let decisions = sidecars::decisions(request, lookups)
        .map_err(|_| anyhow!("the SidecarSets that are for the pod cannot be read"))?;
    if decisions.is_empty() {
        let _ = writeln!(text, "# there are no SidecarSets");
    }
    for decision in decisions {
        let _ = writeln!(text, "# sidecarsets/{}: {}", decision.set, decision.why);
    }
    text.push_str(&serde_saphyr::to_string(&after).context("cannot print the pod as YAML")?);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const POD: &str =
        "metadata: {name: web, labels: {app: web}}\nspec: {containers: [{name: main, image: 'm:1'}]}\n";
    const SETS: &str = "
kind: SidecarSet
metadata: {name: logs}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: agent, image: 'agent:1'}]
---
kind: SidecarSet
metadata: {name: prod}
spec:
  selector: {matchLabels: {app: web}}
  namespaceSelector: {matchLabels: {env: prod}}
  containers: [{name: other, image: 'other:1'}]
";

    fn injected(extra: &str) -> anyhow::Result<String> {
        let folder =
            std::env::temp_dir().join(format!("kruise-inject-{}-{}", std::process::id(), extra.len()));
        std::fs::create_dir_all(&folder)?;
        let (pod, with) = (folder.join("pod.yaml"), folder.join("with.yaml"));
        std::fs::write(&pod, POD)?;
        std::fs::write(&with, format!("{SETS}{extra}"))?;
        let options = Options {
            filename: Some(pod),
            with: vec![with],
            ..Options::default()
        };
        let text = run(&Connection::in_namespace("shop"), &options);
        std::fs::remove_dir_all(&folder)?;
        let mut report = text?;
        match report.failures.pop() {
            Some(error) => Err(error),
            None => Ok(report.text),
        }
    }

    fn names(text: &str) -> Vec<String> {
        let pod: Value = serde_saphyr::from_str(text).unwrap();
        let containers = pod["spec"]["containers"].as_array().unwrap().clone();
        containers
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn from_files_alone_it_prints_the_pod_and_a_reason_for_each_set() {
        let text = injected("").unwrap();
        assert!(text.starts_with(
            "# sidecarsets/logs: injected\n# sidecarsets/prod: not injected: its namespaceSelector"
        ));
        assert_eq!(names(&text), ["agent", "main"]);
        let pod: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(
            pod["spec"]["containers"][0]["imagePullPolicy"],
            json!("IfNotPresent")
        );
    }

    #[test]
    fn a_namespace_in_the_files_counts() {
        let text = injected("---\nkind: Namespace\nmetadata: {name: shop, labels: {env: prod}}\n").unwrap();
        assert_eq!(names(&text), ["agent", "other", "main"]);
    }

    #[test]
    fn a_wrong_type_in_a_file_is_an_error_with_its_path_and_both_types() {
        let set = "---\nkind: SidecarSet\nmetadata: {name: bad}\nspec: {selector: {matchLabels: {app: web}}, \
                   containers: [{name: c, image: 1, podInjectPolicy: true}]}\n";
        let error = format!("{:#}", injected(set).unwrap_err());
        assert!(
            error.ends_with(
                "SidecarSet bad: spec.containers[0].podInjectPolicy: must be a string, not a boolean; \
                 spec.containers[0].image: must be a string, not an integer"
            ),
            "{error}"
        );
        let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "env": [{"name": "P", "value": 80}]}]}});
        let error = files::well_typed(&pod, files::wrong_in_pod(&pod))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "Pod web: spec.containers[0].env[0].value: must be a string, not an integer"
        );
    }

    #[test]
    fn a_pod_that_would_be_refused_is_an_error_with_the_reason() {
        let set = "---\nkind: SidecarSet\nmetadata: {name: old}\nspec: {selector: {matchLabels: {app: web}}, \
                   injectionStrategy: {revision: {revisionName: gone}}}\n";
        let error = injected(set).unwrap_err().to_string();
        assert!(
            error.contains("would be refused") && error.contains("gone"),
            "{error}"
        );
    }
}
