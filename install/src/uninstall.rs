//! `kruise uninstall`, which is `/helm_hook` in the image: what must be so before the manager is removed.
//!
//! It refuses while there are objects that need a manager: without one nothing would act on them. Objects that are
//! being deleted and only wait for a finalizer of ours are released. Then conversion is turned off in the
//! definitions, so that they can be deleted after the webhook is gone.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use kruise_api::{
    definition::{Kind, Scope},
    names::{KRUISE_POD_READY, containerrecreaterequest, imagepulljob, podprobemarker},
    path::{DEFINITIONS, segment},
};
use kruise_frame::{command, json::text, output};
use kruise_runtime::{ApiError, Client, client::Source};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// Where the cluster is.
#[derive(Args, Debug, Default)]
pub struct Options {
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

/// Kinds that the manager makes objects of by itself. They do not keep it from being removed.
pub const INTERNAL: [&str; 2] = ["nodeimages", "nodepodprobes"];

/// The kinds that upstream's program names differently.
const CALLED: [(&str, &str); 2] = [
    ("statefulsets", "advanced statefulsets"),
    ("daemonsets", "advanced daemonsets"),
];

/// Finalizers of ours by the plural of their kind.
pub const FINALIZERS: [(&str, &str); 3] = [
    ("imagepulljobs", imagepulljob::PULL_JOB_PROTECTION),
    ("podprobemarkers", podprobemarker::CLEANUP),
    (REQUESTS, containerrecreaterequest::UNREADY_FINALIZER),
];
const REQUESTS: &str = "containerrecreaterequests";

/// Objects of one list request.
const PAGE: u32 = 500;
const MERGE: &str = "application/merge-patch+json";

/// Checks the cluster and releases what is being deleted. Returns a line for standard output.
pub fn run(options: &Options) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let source = options.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    runtime.block_on(prepare(&source))
}

async fn prepare(source: &Source) -> anyhow::Result<String> {
    let client = command::connect("uninstall", source, Duration::from_secs(30)).await?;
    let mut in_use = Vec::new();
    for kind in kruise_kinds::kinds()
        .iter()
        .copied()
        .filter(|kind| !INTERNAL.contains(&kind.plural))
    {
        let objects = objects(&client, kind).await?;
        if let Some(first) = objects.iter().find(|object| !object.is_deleted) {
            in_use.push((kind, first.key()));
        }
    }
    refuse(&in_use)?;
    for (plural, finalizer) in FINALIZERS {
        for kind in kruise_kinds::kinds()
            .iter()
            .copied()
            .filter(|kind| kind.plural == plural)
        {
            release(&client, kind, finalizer).await?;
        }
    }
    for kind in kruise_kinds::kinds() {
        stop_conversion(&client, &kind.name()).await?;
    }
    Ok("cluster is clean, ready to delete kruise\n".to_owned())
}

/// Fails if there are objects of a kind. Its first lines are those of upstream's program.
fn refuse(in_use: &[(&Kind, String)]) -> anyhow::Result<()> {
    if in_use.is_empty() {
        return Ok(());
    }
    let lines = in_use.iter().map(|(kind, example)| {
        let called = CALLED.iter().find(|(plural, _)| *plural == kind.plural);
        let called = called.map_or(kind.plural, |(_, called)| *called);
        format!("there still exists some {called} in the cluster\n  such as {example}")
    });
    let lines: Vec<String> = lines.collect();
    bail!("{}", lines.join("\n"))
}

/// What is looked at of an object.
struct Object {
    namespace: String,
    name: String,
    version: String,
    is_deleted: bool,
    finalizers: Vec<String>,
    /// Path of its list, in the version that was found.
    group_version: String,
}

impl Object {
    fn key(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        }
    }

    fn path(&self, kind: &Kind) -> String {
        let (plural, name) = (kind.plural, segment(&self.name));
        match kind.scope {
            Scope::Cluster => format!("{}/{plural}/{name}", self.group_version),
            Scope::Namespaced => {
                let namespace = segment(&self.namespace);
                format!("{}/namespaces/{namespace}/{plural}/{name}", self.group_version)
            }
        }
    }
}

/// All objects of a kind in the newest version that is served; none if the kind is not served.
async fn objects(client: &Client, kind: &Kind) -> anyhow::Result<Vec<Object>> {
    for version in (kind.versions)().iter().rev() {
        let group_version = format!("/apis/{}/{}", kind.group, version.name);
        match listed(client, &group_version, kind.plural).await {
            Ok(objects) => return Ok(objects),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error).with_context(|| format!("cannot list {}", kind.plural)),
        }
    }
    Ok(Vec::new())
}

async fn listed(client: &Client, group_version: &str, plural: &str) -> Result<Vec<Object>, ApiError> {
    let mut objects = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!(
            "{group_version}/{plural}?limit={PAGE}&continue={}",
            segment(&next)
        );
        let page: Value = client.get_metadata(&path).await?;
        let items = page.get("items").and_then(Value::as_array);
        objects.extend(items.into_iter().flatten().map(|item| read(item, group_version)));
        text(&page, "/metadata/continue").clone_into(&mut next);
        if next.is_empty() {
            return Ok(objects);
        }
    }
}

fn read(item: &Value, group_version: &str) -> Object {
    let finalizers = item.pointer("/metadata/finalizers").and_then(Value::as_array);
    let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    Object {
        namespace: text(item, "/metadata/namespace").to_owned(),
        name: text(item, "/metadata/name").to_owned(),
        version: text(item, "/metadata/resourceVersion").to_owned(),
        is_deleted: item.pointer("/metadata/deletionTimestamp").is_some(),
        finalizers: finalizers.map(str::to_owned).collect(),
        group_version: group_version.to_owned(),
    }
}

/// Removes a finalizer from the objects of a kind that are being deleted.
async fn release(client: &Client, kind: &Kind, finalizer: &str) -> anyhow::Result<()> {
    for object in objects(client, kind).await? {
        let is_held = object.finalizers.iter().any(|held| held == finalizer);
        if !object.is_deleted || !is_held {
            continue;
        }
        let key = object.key();
        if kind.plural == REQUESTS && keeps_a_pod_from_service(client, &object, kind).await? {
            bail!(
                "{} {key} keeps its pod out of service, and nothing would bring it back after its finalizer {finalizer} is \
                 removed; delete the pod, then uninstall again",
                kind.plural
            );
        }
        let kept = object.finalizers.iter().filter(|held| *held != finalizer);
        let kept: Vec<&String> = kept.collect();
        let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": object.version}});
        let written: Result<IgnoredAny, ApiError> = client.patch(&object.path(kind), MERGE, &patch).await;
        match written {
            Err(error) if !error.is_not_found() => {
                return Err(error).with_context(|| format!("cannot release {} {key}", kind.plural));
            }
            _ => output::report(format_args!("{} {key}: released from {finalizer}", kind.plural)),
        }
    }
    Ok(())
}

/// Whether the pod of a ContainerRecreateRequest exists and is not ready because of a program.
async fn keeps_a_pod_from_service(client: &Client, object: &Object, kind: &Kind) -> anyhow::Result<bool> {
    let request: Value = match client.get(&object.path(kind)).await {
        Err(error) if error.is_not_found() => return Ok(false),
        request => request.with_context(|| format!("cannot read {} {}", kind.plural, object.key()))?,
    };
    let (namespace, pod) = (&object.namespace, text(&request, "/spec/podName"));
    let path = format!("/api/v1/namespaces/{}/pods/{}", segment(namespace), segment(pod));
    let pod: Value = match client.get(&path).await {
        Err(error) if error.is_not_found() => return Ok(false),
        read => read.with_context(|| format!("cannot read the pod {namespace}/{pod}"))?,
    };
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    Ok(conditions.any(|one| one["type"] == KRUISE_POD_READY && one["status"] == "False"))
}

/// Lets a definition be deleted without the webhook that converts its objects.
async fn stop_conversion(client: &Client, name: &str) -> anyhow::Result<()> {
    let path = format!("{DEFINITIONS}/{name}");
    let definition: Value = match client.get(&path).await {
        Err(error) if error.is_not_found() => return Ok(()),
        definition => definition.with_context(|| format!("cannot read the definition {name}"))?,
    };
    if text(&definition, "/spec/conversion/strategy") != "Webhook" {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": text(&definition, "/metadata/resourceVersion")},
        "spec": {"conversion": {"strategy": "None", "webhook": null}},
    });
    let written: Result<IgnoredAny, ApiError> = client.patch(&path, MERGE, &patch).await;
    written.with_context(|| format!("cannot turn off the conversion of {name}"))?;
    output::report(format_args!("{name}: conversion is off"));
    Ok(())
}
