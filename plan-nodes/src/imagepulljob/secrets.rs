//! Copies of pull secrets, in the one namespace whose secrets node agents may read.
//!
//! One copy of a secret serves all jobs that name it. An annotation of the copy lists them, and the last one deletes
//! it: jobs that have ended keep it until they are deleted. Writes of the list are for the version that was read: the
//! server refuses one that would lose another job. The manager keeps no credentials: what a copy is to hold is read
//! when it is written.
//!
//! Only secrets with credentials of images are copied. Agents pull with no others, and every agent may read every
//! copy: a copy of another secret would only show it to all nodes. What OpenKruise copied of such a secret is
//! released.

use std::{collections::BTreeSet, sync::Arc};

use go_compat::sha256;
use kruise_api::{
    names::{
        LAST_APPLIED,
        imagepulljob::{CREDENTIAL_TYPES, SECRET_MODE, SECRET_REFERENCES, SECRET_SOURCE},
    },
    nodeimage::SecretReference,
};
use kruise_plan_kit::{
    FailureNote, Intent, Need, ObjectWrites, Part, Patch, Phase, Plan, Precondition, ResourceId, Step,
    Target, Why, Write, injected::is_injected, put,
};
use kruise_views::SecretView;
use serde_json::{Value, json};

use super::reasons;
use super::{events, snapshot::Snapshot};

/// A pull secret is copied to where node agents can read it.
const COPY_SECRET: Intent = Intent::untold("copy-secret");
/// The copy of a pull secret gets the data of the original, or another job that needs it.
const UPDATE_SECRET: Intent = Intent::untold("update-secret");
/// One job less needs the copy of a pull secret.
const RELEASE_SECRET: Intent = Intent::untold("release-secret");
/// The copy of a pull secret is deleted: no job needs it.
const DELETE_SECRET: Intent = Intent::untold("delete-secret");

/// The secrets of a job.
pub(super) struct Secrets {
    /// Those that nodes are to pull with.
    pub(super) references: Vec<SecretReference>,
    /// Can all of them be read by node agents as they are to be?
    pub(super) are_ready: bool,
}

/// The job, as copies list it.
fn key(snapshot: &Snapshot<'_>) -> String {
    let metadata = &snapshot.job.metadata;
    format!("{}/{}", metadata.namespace, metadata.name)
}

fn is_shared(snapshot: &Snapshot<'_>) -> bool {
    snapshot.job.metadata.namespace != snapshot.options.agent_namespace
}

/// Does the job need copies of secrets?
pub(super) fn are_copied(snapshot: &Snapshot<'_>) -> bool {
    is_shared(snapshot) && snapshot.options.sees_copies && !snapshot.job.spec.pull_secrets.is_empty()
}

/// Makes the copies as the job needs them, and reports what is missing.
pub(super) fn sync(snapshot: &Snapshot<'_>, plan: &mut Plan) -> Secrets {
    let namespace = &snapshot.job.metadata.namespace;
    let mut secrets = Secrets {
        references: Vec::new(),
        are_ready: true,
    };
    let mut kept = BTreeSet::new();
    let mut named = BTreeSet::new();
    for name in snapshot
        .job
        .spec
        .pull_secrets
        .iter()
        .filter(|name| named.insert(*name))
    {
        let source = snapshot
            .secrets
            .get(namespace, name)
            .filter(|source| !source.deleting);
        let source_key = format!("{namespace}/{name}");
        let Some(source) = source else {
            kept.insert(source_key);
            plan.events.push(events::missing_secret(name));
            plan.why.push(Why::of_set(format!(
                "pulls without the secret {name}, which does not exist in {namespace}"
            )));
            continue;
        };
        if !CREDENTIAL_TYPES.contains(&&*source.kind) {
            plan.events.push(events::refused_secret(name, &source.kind));
            plan.why.push(Why::of_set(format!(
                "pulls without the secret {name}, whose type {} holds no credentials of images",
                source.kind
            )));
            continue;
        }
        if is_shared(snapshot) && !snapshot.options.sees_copies {
            plan.events
                .push(events::hidden_copies(name, snapshot.options.agent_namespace));
            continue;
        }
        if !is_shared(snapshot) {
            secrets.references.push(reference(namespace, name, ""));
            continue;
        }
        let copy = Copy {
            snapshot,
            source: &source,
            key: &source_key,
        }
        .sync(plan);
        kept.insert(source_key);
        secrets.are_ready &= copy.is_ready;
        let namespace = snapshot.options.agent_namespace;
        secrets
            .references
            .push(reference(namespace, &copy.name, SecretReference::BATCH));
    }
    let needed = needed(snapshot).into_iter();
    let others = needed.filter(|copy| {
        copy.source
            .as_ref()
            .is_none_or(|source| !kept.contains(&**source))
    });
    plan.writes
        .extend(others.map(|copy| release_one(&copy, &key(snapshot))));
    secrets
}

/// Keeps the copies that list an ended job as their originals are. None is made for it.
pub(super) fn keep(snapshot: &Snapshot<'_>, plan: &mut Plan) {
    let (job, namespace) = (key(snapshot), &snapshot.job.metadata.namespace);
    for copy in needed(snapshot) {
        let Some(name) = original_of(&copy, namespace) else {
            continue;
        };
        let is_named = snapshot.job.spec.pull_secrets.iter().any(|one| one == name);
        let source = snapshot.secrets.get(namespace, name);
        let holds_credentials =
            |source: &Arc<SecretView>| CREDENTIAL_TYPES.contains(&&*source.kind) || source.deleting;
        if !is_named || !source.as_ref().is_none_or(holds_credentials) {
            plan.writes.push(release_one(&copy, &job));
            continue;
        }
        let source = source.filter(|source| !source.deleting && source.kind == copy.kind);
        let Some(source) = source.filter(|source| source.fingerprint != copy.fingerprint) else {
            continue;
        };
        let key = format!("{namespace}/{name}");
        let (source, key) = (&*source, &*key);
        let original = Copy {
            snapshot,
            source,
            key,
        };
        original.update(&copy, &job, plan);
    }
}

/// Does a copy list the job?
pub(super) fn has_copies(snapshot: &Snapshot<'_>) -> bool {
    !needed(snapshot).is_empty()
}

/// The name of the original of a copy, which is in this namespace.
fn original_of<'c>(copy: &'c SecretView, namespace: &str) -> Option<&'c str> {
    let source = copy.source.as_deref()?;
    source.strip_prefix(namespace)?.strip_prefix('/')
}

/// The copies that list the job. Secrets in other namespaces are none, whatever their annotations say.
fn needed(snapshot: &Snapshot<'_>) -> Vec<Arc<SecretView>> {
    let mut copies = snapshot.secrets.needed_by(&key(snapshot));
    copies.retain(|copy| *copy.namespace == *snapshot.options.agent_namespace && !copy.deleting);
    copies
}

fn reference(namespace: &str, name: &str, mode: &str) -> SecretReference {
    SecretReference {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        mode: mode.to_owned(),
    }
}

/// Releases all copies that the job needed: the last job that needs one deletes it.
pub(super) fn release(snapshot: &Snapshot<'_>) -> Vec<ObjectWrites> {
    let needed = needed(snapshot);
    needed
        .iter()
        .map(|copy| release_one(copy, &key(snapshot)))
        .collect()
}

fn release_one(copy: &SecretView, job: &str) -> ObjectWrites {
    let precondition = Precondition::UidAndVersion(copy.uid.to_string(), copy.resource_version.to_string());
    let rest: Vec<&str> = copy
        .references
        .iter()
        .map(|one| &**one)
        .filter(|one| *one != job)
        .collect();
    let target = target(&copy.namespace, &copy.name);
    let (write, reason) = if rest.is_empty() || is_injected("NeededCopyDeleted") {
        let write = Write::Delete {
            intent: DELETE_SECRET,
            target,
            precondition,
        };
        (write, "no job needs the copy")
    } else {
        let write = annotate(RELEASE_SECRET, target, &rest, precondition);
        (write, "the job does not need the copy any more")
    };
    ObjectWrites::alone(Phase::Revisions, write, reason)
}

fn target(namespace: &str, name: &str) -> Target {
    Target {
        resource: ResourceId::SECRETS,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// Lists these jobs in the annotation of a copy.
fn annotate(intent: Intent, target: Target, jobs: &[&str], precondition: Precondition) -> Write {
    let mut patch = json!({});
    put(
        &mut patch,
        &["metadata", "annotations", SECRET_REFERENCES],
        jobs.join(",").into(),
    );
    Write::Patch {
        intent,
        target,
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition,
    }
}

/// The copy of a secret.
struct Copy<'a> {
    snapshot: &'a Snapshot<'a>,
    source: &'a SecretView,
    /// The secret, as the copy names it.
    key: &'a str,
}

/// Which copy a job has.
struct Copied {
    name: String,
    /// Is it as it is to be?
    is_ready: bool,
}

impl Copy<'_> {
    fn sync(&self, plan: &mut Plan) -> Copied {
        let job = key(self.snapshot);
        let Some(copy) = self.choose(&job) else {
            let name = self.new_name();
            self.create(&name, &job, plan);
            return Copied {
                name,
                is_ready: false,
            };
        };
        let is_listed = copy.references.iter().any(|one| **one == *job);
        let is_current = copy.fingerprint == self.source.fingerprint;
        if copy.kind != self.source.kind {
            // The type of a secret cannot change.
            let precondition = unchanged(&copy);
            let write = Write::Delete {
                intent: DELETE_SECRET,
                target: target(&copy.namespace, &copy.name),
                precondition,
            };
            let reason = "the original has another type: the copy is created again";
            plan.writes
                .push(ObjectWrites::alone(Phase::Revisions, write, reason));
        } else if !is_current {
            self.update(&copy, &job, plan);
        } else if !is_listed {
            let jobs = with(&copy, &job);
            let jobs: Vec<&str> = jobs.iter().map(|one| &**one).collect();
            let target = target(&copy.namespace, &copy.name);
            let write = annotate(UPDATE_SECRET, target, &jobs, unchanged(&copy));
            plan.writes.push(ObjectWrites::alone(
                Phase::Revisions,
                write,
                "one more job needs the copy",
            ));
        }
        Copied {
            name: copy.name.to_string(),
            is_ready: is_listed && is_current && copy.kind == self.source.kind,
        }
    }

    /// The copy that serves the job: one that lists it already, else the first by name. Versions of OpenKruise made
    /// one for each job.
    fn choose(&self, job: &str) -> Option<Arc<SecretView>> {
        let mut copies = self.snapshot.secrets.of(self.key);
        copies.retain(|copy| *copy.namespace == *self.snapshot.options.agent_namespace && !copy.deleting);
        copies.sort_by(|one, other| one.name.cmp(&other.name));
        let own = copies
            .iter()
            .find(|copy| copy.references.iter().any(|one| **one == *job));
        own.or(copies.first()).cloned()
    }

    /// A name that no other secret has.
    fn new_name(&self) -> String {
        let taken = |name: &str| {
            let namespace = self.snapshot.options.agent_namespace;
            self.snapshot.secrets.get(namespace, name).is_some()
                || self.snapshot.memory.taken_names.contains(name)
        };
        let mut names = (0_u32..).map(|attempt| {
            let digits = sha256::hex(format!("{}#{attempt}", self.key).as_bytes());
            let end = digits.get(..6).unwrap_or_default();
            format!("{}-{end}", self.source.name)
        });
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    /// What the original holds; asks for it if it is not known.
    fn original(&self, plan: &mut Plan) -> Option<Value> {
        let need = Need::Live(
            ResourceId::SECRETS,
            self.source.namespace.to_string(),
            self.source.name.to_string(),
        );
        let Some(original) = self.snapshot.memory.read.get(&need) else {
            plan.needs.push(need);
            return None;
        };
        original.clone()
    }

    fn create(&self, name: &str, job: &str, plan: &mut Plan) {
        let Some(original) = self.original(plan) else {
            return;
        };
        let namespace = self.snapshot.options.agent_namespace;
        let part = |pointer: &str| original.pointer(pointer).cloned().unwrap_or_else(|| json!({}));
        let mut annotations = part("/metadata/annotations");
        if let Some(members) = annotations.as_object_mut() {
            // It would keep credentials that were replaced since.
            members.remove(LAST_APPLIED);
        }
        for (key, value) in [
            (SECRET_SOURCE, self.key),
            (SECRET_REFERENCES, job),
            (SECRET_MODE, SecretReference::BATCH),
        ] {
            put(&mut annotations, &[key], value.into());
        }
        let body = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace, "labels": part("/metadata/labels"), "annotations": annotations},
            "type": *self.source.kind,
            "data": part("/data"),
        });
        let write = Write::Create {
            intent: COPY_SECRET,
            target: target(namespace, name),
            body: body.into(),
            owner_uid: None,
        };
        self.push(write, "node agents cannot read the original", plan);
    }

    /// Writes the data of the original, and the list of jobs.
    fn update(&self, copy: &SecretView, job: &str, plan: &mut Plan) {
        let Some(original) = self.original(plan) else {
            return;
        };
        let data = original.get("data").cloned().unwrap_or_else(|| json!({}));
        let path = "/data";
        // A merge would keep keys that the original does not have any more.
        let mut operations = vec![json!({"op": "add", "path": path, "value": data})];
        let jobs = with(copy, job).join(",");
        let annotation = format!("/metadata/annotations/{}", SECRET_REFERENCES.replace('/', "~1"));
        operations.push(json!({"op": "add", "path": annotation, "value": jobs}));
        let write = Write::Patch {
            intent: UPDATE_SECRET,
            target: target(&copy.namespace, &copy.name),
            part: Part::Main,
            patch: Patch::Json(operations.into()),
            precondition: Precondition::Test(
                "/metadata/resourceVersion".into(),
                json!(*copy.resource_version),
            ),
        };
        self.push(write, "the original has changed", plan);
    }

    fn push(&self, write: Write, reason: &str, plan: &mut Plan) {
        let mut step = Step::new(write, reason);
        let prefix = format!("Error copying secret {}: ", self.source.name);
        step.failed = Some(FailureNote::new(&reasons::FAILED_SECRET_COPY, prefix));
        plan.writes.push(ObjectWrites::new(Phase::Revisions, vec![step]));
    }
}

fn unchanged(copy: &SecretView) -> Precondition {
    Precondition::UidAndVersion(copy.uid.to_string(), copy.resource_version.to_string())
}

/// The jobs that need a copy, with this one.
fn with(copy: &SecretView, job: &str) -> Vec<String> {
    let mut jobs: BTreeSet<String> = copy.references.iter().map(ToString::to_string).collect();
    jobs.insert(job.to_owned());
    jobs.into_iter().collect()
}
