//! What a node is asked to pull.

use go_compat::hash::fnv1a_32;
use jiff::Timestamp;
use kruise_api::{
    imagepulljob::{ImagePullJob, KIND},
    nodeimage::NodeImage,
};
use kruise_plan_kit::{
    Intent, ObjectWrites, Part, Patch, Phase, Precondition, Target, Write, injected::is_injected,
    lifecycle::go_time, put,
};
use serde_json::{Value, json};

use super::{progress::Wanted, snapshot::Snapshot};

/// A node is to pull an image.
const REQUEST_PULL: Intent = Intent::untold("request-pull");

/// Seconds that a tag of a job of type `Never` is kept, and then pulled again.
const DAY: i64 = 86_400;
/// Least whole time of a pull for a job of type `Never`.
const NEVER_DEADLINE: i64 = 1800;
/// Seconds that one attempt may take, and attempts, of which the time to live of a tag is made if the job says nothing.
const DEFAULT_PULL: i64 = 600 * 3;

/// Asks a node to pull, or names further secrets to one that was asked.
pub(super) fn request(
    snapshot: &Snapshot<'_>,
    wanted: &Wanted<'_>,
    node: &NodeImage,
    now: Timestamp,
) -> ObjectWrites {
    let stored = node.images.get(&wanted.image).map(|entry| &*entry.stored);
    let entry = entry(snapshot, wanted, node, stored, now);
    let path = format!("/spec/images/{}", pointer(&wanted.image));
    let metadata = &node.metadata;
    let (patch, precondition) = match stored {
        // Reports of the agent do not disturb it.
        Some(stored) => {
            let same_node = json!({"op": "test", "path": "/metadata/uid", "value": metadata.uid});
            let replace = json!({"op": "replace", "path": path, "value": entry});
            let unchanged = if is_injected("PullsOverwritten") {
                Precondition::Test("/metadata/uid".to_owned(), json!(metadata.uid))
            } else {
                Precondition::Test(path, stored.clone())
            };
            (Patch::Json(json!([same_node, replace])), unchanged)
        }
        // Somebody else may add the same image: only the version of the object shows that.
        None => (
            Patch::Merge(json!({"spec": {"images": {(&wanted.image): entry}}})),
            Precondition::UidAndVersion(metadata.uid.clone(), metadata.resource_version.clone()),
        ),
    };
    let write = Write::Patch {
        intent: REQUEST_PULL,
        target: Target {
            resource: kruise_api::nodeimage::RESOURCE,
            namespace: String::new(),
            name: metadata.name.clone(),
        },
        part: Part::Main,
        patch,
        precondition,
    };
    let reason = format!("the node is to pull {}", snapshot.job.spec.image);
    ObjectWrites::alone(Phase::Pods, write, reason)
}

/// A member of a JSON pointer.
fn pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The entry of the image with the tag of the job.
fn entry(
    snapshot: &Snapshot<'_>,
    wanted: &Wanted<'_>,
    node: &NodeImage,
    stored: Option<&Value>,
    now: Timestamp,
) -> Value {
    let mut entry = stored.cloned().unwrap_or_else(|| json!({}));
    match (&snapshot.job.spec.sandbox_config, entry.as_object_mut()) {
        (Some(config), _) => put(&mut entry, &["sandboxConfig"], config.clone()),
        (None, Some(members)) => drop(members.remove("sandboxConfig")),
        (None, None) => {}
    }
    let missing: Vec<Value> = wanted.missing_secrets(node).map(|secret| json!(secret)).collect();
    if !missing.is_empty() {
        let mut secrets = list(&entry, "pullSecrets");
        secrets.extend(missing);
        put(&mut entry, &["pullSecrets"], secrets.into());
    }
    let mut tags = list(&entry, "tags");
    match tags
        .iter_mut()
        .find(|tag| tag.get("tag") == Some(&json!(wanted.tag)))
    {
        Some(tag) => join(snapshot, wanted, tag, &node.metadata.name, now),
        None => tags.push(new_tag(snapshot, wanted, node, now)),
    }
    tags.sort_by(|one, other| text(one, "tag").cmp(text(other, "tag")));
    put(&mut entry, &["tags"], tags.into());
    entry
}

fn list(of: &Value, member: &str) -> Vec<Value> {
    let list = of.get(member).and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}

fn text<'a>(of: &'a Value, member: &str) -> &'a str {
    of.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn owner(snapshot: &Snapshot<'_>) -> Value {
    let metadata = &snapshot.job.metadata;
    json!({
        "apiVersion": snapshot.api_version,
        "kind": KIND.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
    })
}

/// The job wants a tag that the node has already: a new round begins. A tag that the job wants already stays as it
/// is. How the node pulls is not changed. The tag is kept as long as the job that keeps it longest says: a job of
/// type `Never` would otherwise pull again when the time of another job is over.
fn join(snapshot: &Snapshot<'_>, wanted: &Wanted<'_>, tag: &mut Value, node: &str, now: Timestamp) {
    let mut owners = list(tag, "ownerReferences");
    if owners.iter().any(|owner| text(owner, "uid") == wanted.uid) {
        return;
    }
    owners.push(owner(snapshot));
    let version = tag.get("version").and_then(Value::as_i64).unwrap_or(0);
    put(tag, &["ownerReferences"], owners.into());
    put(tag, &["version"], version.saturating_add(1).into());
    put(tag, &["createdAt"], go_time(now).into());
    put(
        tag,
        &["imagePullPolicy"],
        snapshot.job.spec.image_pull_policy.as_str().into(),
    );
    let ttl = time_to_live(snapshot.job, node, snapshot.options.kept_seconds);
    let stored = tag
        .pointer("/pullPolicy/ttlSecondsAfterFinished")
        .and_then(Value::as_i64);
    if stored.is_some_and(|stored| stored < i64::from(ttl)) {
        put(tag, &["pullPolicy", "ttlSecondsAfterFinished"], ttl.into());
    }
}

fn new_tag(snapshot: &Snapshot<'_>, wanted: &Wanted<'_>, node: &NodeImage, now: Timestamp) -> Value {
    let before = node.tag_status(&wanted.image, &wanted.tag);
    let version = before.map_or(0, |status| status.version.saturating_add(1));
    let mut tag = json!({
        "tag": wanted.tag,
        "createdAt": go_time(now),
        "ownerReferences": [owner(snapshot)],
        "pullPolicy": policy(snapshot.job, &node.metadata.name, snapshot.options.kept_seconds),
    });
    if version != 0 {
        put(&mut tag, &["version"], version.into());
    }
    let pull_policy = &snapshot.job.spec.image_pull_policy;
    if !pull_policy.is_empty() {
        put(&mut tag, &["imagePullPolicy"], pull_policy.as_str().into());
    }
    tag
}

/// How the node pulls, and how long it keeps the tag.
fn policy(job: &ImagePullJob, node: &str, kept_seconds: i64) -> Value {
    let (pull, completion) = (&job.spec.pull_policy, &job.spec.completion_policy);
    let deadline = if completion.is_never() {
        Some(i64::from(pull.timeout()).max(NEVER_DEADLINE))
    } else {
        completion.active_deadline_seconds
    };
    let mut policy = json!({
        "timeoutSeconds": pull.timeout(),
        "backoffLimit": pull.retries(),
        "ttlSecondsAfterFinished": time_to_live(job, node, kept_seconds),
    });
    if let Some(deadline) = deadline {
        put(&mut policy, &["activeDeadlineSeconds"], deadline.into());
    }
    policy
}

/// Seconds that a tag is kept after its pull ended. Nodes get different times, so that they are not all written at
/// once when these are over.
fn time_to_live(job: &ImagePullJob, node: &str, kept_seconds: i64) -> i32 {
    let (pull, completion) = (&job.spec.pull_policy, &job.spec.completion_policy);
    let seed = i64::from(fnv1a_32(format!("{}/{node}", job.metadata.uid).as_bytes()));
    let ttl = if completion.is_never() {
        DAY - 600 + seed % 1201
    } else {
        let of_pull = match (pull.timeout_seconds, pull.backoff_limit) {
            (Some(timeout), Some(retries)) => i64::from(timeout) * i64::from(retries),
            _ => DEFAULT_PULL,
        };
        let ttl = completion.ttl_seconds_after_finished.map(i64::from);
        let base = ttl.or(completion.active_deadline_seconds).unwrap_or(of_pull);
        base.saturating_add(kept_seconds).saturating_add(seed % 300)
    };
    i32::try_from(ttl.max(0)).unwrap_or(i32::MAX)
}
