//! The objects of our kinds, and what belongs to them: pods, revisions, events, explanations.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use kruise_api::{
    definition::{Kind, Scope},
    names::conditions::{FAILED_SCALE, FAILED_UPDATE, STALLED},
    path::segment,
};
use kruise_frame::{
    explain::{self, SettingsSource, events::last_seen, pods::without_reports},
    json::{condition, text},
    leader::LEASE,
};
use kruise_kinds as controllers;
use kruise_plan_kit::ResourceId;
use kruise_runtime::{client::Form, discovery};
use kruise_swap::preflight::is_moving;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    archive::{Archive, file_name},
    reader::Reader,
    redact,
};

/// Most objects of each kind that are explained: some explanations read all pods of a namespace, or of the
/// cluster.
const MOST_EXPLANATIONS: usize = 3;
/// Time of an explanation.
const EXPLANATION: Duration = Duration::from_mins(1);

/// The namespace of the events about objects that are in none.
const OF_THE_CLUSTER: &str = "default";

/// Conditions of objects with which something is wrong.
const TROUBLE: [&str; 3] = [STALLED, FAILED_SCALE, FAILED_UPDATE];

/// What was found.
#[derive(Default)]
pub(super) struct Objects {
    /// By kind: how many, and how many of them are not settled.
    pub(super) counts: BTreeMap<&'static str, (usize, usize)>,
    /// Pods that they own.
    pub(super) pods: usize,
    /// Objects whose controller has something left to do.
    unsettled: Vec<(&'static Kind, String, String)>,
}

/// Adds the objects of all namespaces, or of one; those of the cluster always.
pub(super) async fn collect(
    reader: &mut Reader<'_>,
    archive: &mut Archive,
    namespace: Option<&str>,
) -> anyhow::Result<Objects> {
    let mut found = Objects::default();
    let served = match discovery::discover(reader.client, kruise_kinds::kinds(), &[]).await {
        Ok(served) => served,
        Err(error) => {
            reader.note("objects of all kinds", error);
            return Ok(found);
        }
    };
    for kind in kruise_kinds::kinds().iter().copied() {
        let resource = ResourceId::of(kind);
        let place = namespace.filter(|_| kind.scope == Scope::Namespaced);
        let (Ok(list), Ok(version)) = (served.collection(resource, place), served.api_version(resource))
        else {
            continue;
        };
        let unsettled = &mut found.unsettled;
        let before = unsettled.len();
        let objects = reader.list(&list, Form::Whole, |mut object| {
            // Items of a list have neither.
            if let Some(members) = object.as_object_mut() {
                members.insert("apiVersion".to_owned(), version.as_str().into());
                members.insert("kind".to_owned(), kind.kind.into());
            }
            if is_unsettled(kind, &object) {
                let name = |pointer| text(&object, pointer).to_owned();
                unsettled.push((kind, name("/metadata/namespace"), name("/metadata/name")));
            }
            Some(redact::object(&object))
        });
        let objects = objects.await;
        // Of what the limit leaves out nothing is counted or explained.
        let kept: BTreeSet<(&str, &str)> = objects
            .iter()
            .map(|one| (text(one, "/metadata/namespace"), text(one, "/metadata/name")))
            .collect();
        let of_kind = found.unsettled.split_off(before);
        let is_kept = |(_, namespace, name): &(_, String, String)| kept.contains(&(&**namespace, &**name));
        found.unsettled.extend(of_kind.into_iter().filter(is_kept));
        if !objects.is_empty() {
            found
                .counts
                .insert(kind.plural, (objects.len(), found.unsettled.len() - before));
            archive.json(&format!("objects/{}.json", kind.plural), &objects)?;
        }
    }
    let pods = dependents(reader, archive, namespace).await?;
    found.pods = pods.len();
    events(reader, archive, namespace, &pods).await?;
    Ok(found)
}

/// Whether its controller has something left to do, or a condition says that something is wrong.
fn is_unsettled(kind: &Kind, object: &Value) -> bool {
    is_moving(kind.kind, object) || TROUBLE.into_iter().any(|kind| condition(object, kind).is_some())
}

/// Whether a group is one of ours.
fn is_of_ours(api_version: &str) -> bool {
    let group = api_version.split('/').next().unwrap_or_default();
    kruise_kinds::kinds()
        .iter()
        .copied()
        .any(|kind| kind.group == group)
}

/// Whether an object of our kinds owns it.
fn is_owned(object: &Value) -> bool {
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let mut owners = owners.into_iter().flatten();
    owners.any(|owner| is_of_ours(text(owner, "/apiVersion")))
}

fn list_of(group_version: &str, namespace: Option<&str>, plural: &str) -> String {
    match namespace {
        Some(namespace) => format!("{group_version}/namespaces/{}/{plural}", segment(namespace)),
        None => format!("{group_version}/{plural}"),
    }
}

/// Adds pods and revisions that our kinds own. Returns namespaces and names of the pods.
async fn dependents(
    reader: &mut Reader<'_>,
    archive: &mut Archive,
    namespace: Option<&str>,
) -> anyhow::Result<BTreeSet<(String, String)>> {
    let list = list_of("/api/v1", namespace, "pods");
    let pods = reader
        .list(&list, Form::Whole, |pod| {
            is_owned(&pod).then(|| redact::pod(&pod))
        })
        .await;
    archive.json("objects/pods.json", &pods)?;
    let list = list_of("/apis/apps/v1", namespace, "controllerrevisions");
    let keep = |one: Value| is_owned(&one).then(|| redact::object(&one));
    let revisions = reader.list(&list, Form::Metadata, keep).await;
    archive.json("objects/controllerrevisions.json", &revisions)?;
    let name = |pod: &Value, pointer| text(pod, pointer).to_owned();
    Ok(pods
        .iter()
        .map(|pod| (name(pod, "/metadata/namespace"), name(pod, "/metadata/name")))
        .collect())
}

/// Adds the newest events about our kinds and their pods: of all namespaces, or of one and about objects that
/// are in none.
async fn events(
    reader: &mut Reader<'_>,
    archive: &mut Archive,
    namespace: Option<&str>,
    pods: &BTreeSet<(String, String)>,
) -> anyhow::Result<()> {
    let most = reader.most();
    let mut newest: BTreeMap<(Option<Timestamp>, [String; 2]), Value> = BTreeMap::new();
    let mut has_dropped = false;
    let of_cluster = namespace.filter(|namespace| *namespace != OF_THE_CLUSTER);
    let places = [namespace]
        .into_iter()
        .chain(of_cluster.map(|_| Some(OF_THE_CLUSTER)));
    for place in places {
        let list = list_of("/api/v1", place, "events");
        let read = reader.list(&list, Form::Whole, |event| {
            let about = |field: &str| text(&event, &format!("/involvedObject/{field}")).to_owned();
            let is_in_place = place == namespace || about("namespace").is_empty();
            let is_wanted = is_of_ours(&about("apiVersion"))
                || (about("kind") == "Pod" && pods.contains(&(about("namespace"), about("name"))));
            if is_in_place && is_wanted {
                let name = ["/metadata/namespace", "/metadata/name"];
                let seen = last_seen(&event).parse().ok();
                let key = (seen, name.map(|pointer| text(&event, pointer).to_owned()));
                newest.insert(key, redact::event(&event));
                if newest.len() > most {
                    newest.pop_first();
                    has_dropped = true;
                }
            }
            None::<Value>
        });
        read.await;
    }
    if has_dropped {
        reader.note(
            &list_of("/api/v1", namespace, "events"),
            format_args!("only the newest {most} events are here: --max-objects"),
        );
    }
    archive.json("objects/events.json", &newest.into_values().collect::<Vec<_>>())
}

/// Kinds that are not explained: to explain them, Secrets are read, or what probes, hooks and registries said
/// is quoted.
const UNEXPLAINED: [&str; 5] = [
    "containerrecreaterequests",
    "imagelistpulljobs",
    "imagepulljobs",
    "podprobemarkers",
    "resourcedistributions",
];

/// Adds what `kubectl-kruise explain` says of the objects that are not settled.
pub(super) async fn explain(
    reader: &mut Reader<'_>,
    archive: &mut Archive,
    found: &Objects,
    manager_namespace: &str,
) -> anyhow::Result<()> {
    let settings = SettingsSource::Leader {
        namespace: manager_namespace.to_owned(),
        lease: LEASE.to_owned(),
    };
    let explained = found.unsettled.iter().filter_map(|(kind, namespace, name)| {
        let explain = controllers::explainer(kind.plural).filter(|_| !UNEXPLAINED.contains(&kind.plural))?;
        Some((kind, namespace, name, explain))
    });
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, namespace, name, explain) in explained {
        let number = numbers.entry(kind.plural).or_default();
        *number += 1;
        if *number > MOST_EXPLANATIONS {
            if *number == MOST_EXPLANATIONS + 1 {
                reader.note(
                    &format!("explain {}", kind.plural),
                    format_args!("only the first {MOST_EXPLANATIONS} objects are explained"),
                );
            }
            continue;
        }
        let about = format!("{} {namespace}/{name}", kind.plural);
        let request = explain::Request {
            client: reader.client,
            namespace,
            name,
            pod: None,
            manager_namespace,
            settings: &settings,
            registrations: controllers::ALL,
        };
        match timeout(EXPLANATION, explain(&request)).await {
            Ok(Ok(text)) => {
                let file = match namespace.as_str() {
                    "" => file_name(&format!("{name}.txt")),
                    namespace => file_name(&format!("{namespace}.{name}.txt")),
                };
                archive.text(
                    &format!("explain/{}/{file}", kind.plural),
                    without_reports(&text).as_bytes(),
                )?;
            }
            Ok(Err(error)) => reader.note(&format!("explain {about}"), format_args!("{error:#}")),
            Err(_) => reader.note(&format!("explain {about}"), "no end within its time"),
        }
    }
    Ok(())
}
