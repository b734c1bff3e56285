//! The objects of all kinds: whether this build acts on them, and who writes them and holds them.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::{
    definition::Kind,
    names::{MANAGER, ephemeraljob},
};
use kruise_frame::{config::Config, json::text};
use kruise_install::uninstall;
use kruise_plan_kit::ResourceId;
use kruise_runtime::{ApiError, Served, discovery};
use kube_cache::wire::TooDeep;
use serde_json::{Value, json};

use super::{
    Check, Finding,
    cluster::{Cluster, named},
    rest::is_moving,
    reviewer::Reviewer,
};

/// Finalizers of Kubernetes itself.
const OF_KUBERNETES: [&str; 2] = ["foregroundDeletion", "orphan"];

/// Writers of fields that are OpenKruise itself.
const OF_OPENKRUISE: [&str; 3] = [MANAGER, "manager", "kruise-daemon"];

/// The version that a later release of OpenKruise removes from some kinds.
const OLDER: &str = "v1alpha1";

/// What was found.
pub(super) struct Objects {
    pub(super) checks: Vec<Check>,
    /// Objects whose controller has something left to do, as [`named`] writes them.
    pub(super) moving: BTreeSet<String>,
}

/// How many objects, and one of them.
#[derive(Default)]
pub(super) struct Counted {
    number: usize,
    example: String,
}

impl Counted {
    pub(super) fn add(&mut self, example: &str) {
        self.number += 1;
        if self.example.is_empty() {
            example.clone_into(&mut self.example);
        }
    }

    pub(super) fn is_none(&self) -> bool {
        self.number == 0
    }

    pub(super) fn such_as(&self) -> String {
        match self.number {
            1 => format!("1 object, {}", self.example),
            number => format!("{number} objects, such as {}", self.example),
        }
    }
}

/// What is counted while the objects are read.
#[derive(Default)]
struct Tally {
    findings: Vec<Finding>,
    objects: usize,
    kinds: usize,
    moving: BTreeSet<String>,
    finalizers: BTreeMap<String, Counted>,
    /// By writer.
    writers: BTreeMap<String, Counted>,
}

/// Reads all objects.
///
/// # Errors
/// Fails if the cluster does not say what it serves.
pub(super) async fn check(cluster: &Cluster, config: &Config, namespace: &str) -> anyhow::Result<Objects> {
    let served = discovery::discover(&cluster.client, kruise_kinds::kinds(), &[]).await?;
    let reviewer = Reviewer::new(cluster, config, namespace);
    let mut tally = Tally::default();
    for kind in kruise_kinds::kinds().iter().copied() {
        if let Err(error) = of_kind(cluster, kind, &served, &reviewer, &mut tally).await {
            let text = format!("cannot be read: {error}");
            tally.findings.push(Finding::unknown(kind.plural, text));
        }
    }
    Ok(tally.result())
}

async fn of_kind(
    cluster: &Cluster,
    kind: &'static Kind,
    served: &Served,
    reviewer: &Reviewer<'_>,
    tally: &mut Tally,
) -> Result<(), ApiError> {
    let Ok(path) = served.collection(ResourceId::of(kind), None) else {
        return Ok(());
    };
    let mut pages = cluster.pages(path);
    let before = tally.objects;
    while let Some(page) = pages.next().await? {
        for mut object in page {
            // Items of a list have neither.
            if let Some(object) = object.as_object_mut() {
                let version = served.api_version(ResourceId::of(kind)).unwrap_or_default();
                object.insert("apiVersion".to_owned(), version.into());
                object.insert("kind".to_owned(), kind.kind.into());
            }
            tally.note(kind, &object);
            if text(&object, "/metadata/deletionTimestamp").is_empty() {
                tally.findings.extend(reviewer.findings(kind, &object).await);
            }
        }
    }
    for TooDeep { namespace, name, .. } in pages.too_deep {
        tally.objects += 1;
        let object = json!({"metadata": {"namespace": namespace, "name": name}});
        let text = "is nested deeper than 128 levels, which this build does not read: nothing acts on it, and its pods stay as they are";
        tally
            .findings
            .push(Finding::problem(named(kind.kind, &object), text));
    }
    tally.kinds += usize::from(tally.objects > before);
    Ok(())
}

impl Tally {
    /// Counts an object.
    fn note(&mut self, kind: &'static Kind, object: &Value) {
        self.objects += 1;
        let about = named(kind.kind, object);
        if is_moving(kind.kind, object) {
            self.moving.insert(about.clone());
        }
        let list = |pointer| {
            object
                .pointer(pointer)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let finalizers = list("/metadata/finalizers").filter_map(Value::as_str);
        for finalizer in finalizers.filter(|finalizer| !is_known(finalizer)) {
            self.finalizers
                .entry(finalizer.to_owned())
                .or_default()
                .add(&about);
        }
        let writers: BTreeSet<&str> = list("/metadata/managedFields")
            .filter(|entry| is_client(entry))
            .map(|entry| text(entry, "/manager"))
            .collect();
        for writer in writers {
            self.writers.entry(writer.to_owned()).or_default().add(&about);
        }
    }

    fn result(mut self) -> Objects {
        for (finalizer, counted) in &self.finalizers {
            let text = format!(
                "belongs neither to OpenKruise nor to Kubernetes; keep the program that removes it running: {}",
                counted.such_as()
            );
            self.findings
                .push(Finding::note(format!("finalizer {finalizer}"), text));
        }
        let clients = self.writers.iter().map(|(writer, counted)| {
            let text = format!("writes {OLDER}, which stays served: {}", counted.such_as());
            Finding::note(format!("client {writer}"), text)
        });
        let clients: Vec<Finding> = clients.collect();
        let summary = format!("{} objects of {} kinds", self.objects, self.kinds);
        let written = format!("{} write {OLDER}", clients.len());
        Objects {
            checks: vec![
                Check::new("objects", summary, self.findings),
                Check::new("clients", written, clients),
            ],
            moving: self.moving,
        }
    }
}

/// Is the finalizer one that Kubernetes, OpenKruise or this build removes?
fn is_known(finalizer: &str) -> bool {
    let ours = uninstall::FINALIZERS.iter().map(|(_, finalizer)| *finalizer);
    ours.chain(OF_KUBERNETES)
        .chain([ephemeraljob::CLEANUP])
        .any(|known| known == finalizer)
}

/// Does an entry of `managedFields` say that a client of the older version wrote the object?
fn is_client(entry: &Value) -> bool {
    let version = text(entry, "/apiVersion").rsplit('/').next().unwrap_or_default();
    version == OLDER
        && text(entry, "/subresource").is_empty()
        && !OF_OPENKRUISE.contains(&text(entry, "/manager"))
}
