//! `kruise inject`: prints a pod with the changes of the webhook, and the reasons.
//!
//! It runs the steps of the webhook. Lookups are from the cluster, or from files only.

#![allow(clippy::disallowed_methods, reason = "the pod is made now")]

mod files;

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use kruise_admission::{
    Lookups, Options as Gates, Request, Response,
    pod::{review, sidecars},
};
use kruise_frame::{
    command,
    lookup::{Cache, LookupSource, NoCache, Server},
};
use kruise_runtime::{Client, client::Source};
use serde_json::{Value, json};

use self::files::Files;

/// What to inject into, and what is known.
#[derive(Args, Debug)]
pub struct Options {
    /// File with the pod, YAML or JSON; - reads standard input.
    #[arg(short, long, value_name = "FILE")]
    filename: PathBuf,
    /// File with SidecarSets, and Namespaces and ControllerRevisions they need; may be given again. No cluster is asked.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Namespace of a pod that names none; without it that of the kubeconfig's context.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Namespace of the manager, where revisions of SidecarSets are.
    #[arg(long, default_value = "kruise-system")]
    manager_namespace: String,
    /// As the gate EnableSortSidecarContainerByName: injected containers in the order of their names.
    #[arg(long)]
    sort_sidecars: bool,
    /// As the gate KruisePodReadinessGate: every pod gets the readiness gate.
    #[arg(long)]
    readiness_gate_for_all: bool,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long, conflicts_with = "with")]
    kubeconfig: Option<PathBuf>,
}

/// The pod as YAML, after a comment for each SidecarSet that says what becomes of it.
pub fn run(options: &Options) -> anyhow::Result<String> {
    let pod = files::pod(&options.filename)?;
    let files = (!options.with.is_empty()).then(|| Files::read(&options.with));
    let files = files.transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match files {
            Some(cache) => {
                let source = LookupSource { cache, server: None };
                inject(&pod, "default", options, &source, Timestamp::now()).await
            }
            None => of_cluster(&pod, options, connect(options).await?).await,
        }
    })
}

/// As [`run`], with the cluster and the clock of this client.
pub async fn of_cluster(pod: &Value, options: &Options, client: Client) -> anyhow::Result<String> {
    let now = client.now();
    let namespace = client.default_namespace().to_owned();
    let source = LookupSource {
        cache: NoCache,
        server: Some(Server::new(client, &options.manager_namespace)),
    };
    inject(pod, &namespace, options, &source, now).await
}

impl Options {
    /// The defaults, for a pod of this namespace.
    pub fn in_namespace(namespace: &str) -> Self {
        Self {
            filename: PathBuf::new(),
            with: Vec::new(),
            namespace: Some(namespace.into()),
            manager_namespace: "kruise-system".into(),
            sort_sidecars: false,
            readiness_gate_for_all: false,
            kubeconfig: None,
        }
    }
}

async fn connect(options: &Options) -> anyhow::Result<Client> {
    let source = options.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    command::connect("inject", &source, Duration::from_secs(30)).await
}

/// `namespace` is for a pod that names none, where the options do not either.
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
    let request = json!({
        "uid": now.to_string(), "operation": "CREATE", "namespace": options.namespace.as_deref().unwrap_or(namespace),
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
    let decisions = sidecars::decisions(request, lookups).map_err(|outcome| anyhow!("{outcome:?}"))?;
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
            filename: pod,
            with: vec![with],
            namespace: Some("shop".into()),
            manager_namespace: "kruise-system".into(),
            sort_sidecars: false,
            readiness_gate_for_all: false,
            kubeconfig: None,
        };
        let text = run(&options);
        std::fs::remove_dir_all(&folder)?;
        text
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
