//! What happens to a pod on its way in.
//!
//! [`CHAIN`] is the whole of it, in an order that is a contract: each step sees the pod as the ones before left it.
//! A step has its own folder. It changes a draft of the pod in raw JSON, and the answer is a patch that inserts what is
//! new and touches nothing else, so that fields newer than this program stay on the items they are on.
//!
//! Steps do no I/O. What they have to know beyond the pod they [look up](crate::lookup).

mod affinity;
mod budget;
mod launch;
mod podstate;
mod probes;
mod readiness;
pub mod sidecars;
pub(crate) mod spread;

use kruise_plan_kit::ledger::Workload;
use kruise_views::Labels;
use serde_json::Value;

use crate::json::{items, text};
use crate::lookup::{Lookup, Lookups};
use crate::write::Write;
use crate::{Operation, Options, Outcome, Request, Response};

/// A step: its name, and what it does.
type Step = (&'static str, fn(&mut Value, &Context<'_>) -> Result<Done, Stop>);

/// The steps in their order.
const CHAIN: &[Step] = &[
    ("readiness-gate", readiness::apply),
    ("workload-spread", spread::apply),
    ("sidecars", sidecars::apply),
    ("launch", launch::apply),
    ("budget", budget::apply),
    ("persistent-pod-state", podstate::apply),
    ("pod-probes", probes::apply),
];

/// What a step may look at.
struct Context<'a> {
    request: &'a Request,
    options: Options,
    lookups: &'a Lookups,
}

/// What a step did.
#[derive(Default)]
struct Done {
    /// The pod is another one now.
    changed: bool,
    /// Texts shown to the author of the pod.
    warnings: Vec<String>,
    /// What has to be stored before the pod passes.
    write: Option<Box<Write>>,
    /// No subset has room for the pod.
    without_subset: bool,
}

impl Done {
    const NOTHING: Self = Self {
        changed: false,
        warnings: Vec::new(),
        write: None,
        without_subset: false,
    };
    const CHANGED: Self = Self {
        changed: true,
        warnings: Vec::new(),
        write: None,
        without_subset: false,
    };
}

/// Why a step did not finish.
enum Stop {
    /// The pod is turned down.
    Deny(Response),
    /// Something has to be looked up first.
    Missing(Vec<Lookup>),
}

impl From<Lookup> for Stop {
    fn from(lookup: Lookup) -> Self {
        Self::Missing(vec![lookup])
    }
}

/// Takes a new pod through [`CHAIN`].
pub fn review(request: &Request, options: Options, lookups: &Lookups) -> Outcome {
    review_timed(request, options, lookups, &mut |_, _| {})
}

/// As [`review`]. `ended` is called after each step with its name and what came of it: `changed`, `unchanged`, `denied`,
/// `without-subset` if a WorkloadSpread has no room for the pod, or `asked` for something that is to be looked up first.
pub(crate) fn review_timed(
    request: &Request,
    options: Options,
    lookups: &Lookups,
    ended: &mut dyn FnMut(&'static str, &'static str),
) -> Outcome {
    if request.operation != Operation::Create || !request.sub_resource.is_empty() {
        return Outcome::Response(Response::ALLOW);
    }
    if !request.object.get("spec").is_some_and(Value::is_object) {
        return Outcome::Response(Response::undecodable("a pod needs a spec"));
    }
    let context = Context {
        request,
        options,
        lookups,
    };
    // The last steps look these up. Without them the steps before would run twice.
    let mut missing = spread::missing(&request.object, &context);
    let of_others = [
        budget::known(&request.object, &context).err(),
        podstate::known(&request.object, &context).err(),
        probes::known(&context).err(),
    ]
    .into_iter()
    .flatten();
    missing.extend(of_others);
    if !missing.is_empty() {
        return Outcome::Missing(missing);
    }
    let mut pod = request.object.clone();
    let mut warnings = Vec::new();
    let mut write = None;
    for (name, step) in CHAIN {
        let result = step(&mut pod, &context);
        ended(
            name,
            match &result {
                Ok(Done { changed: true, .. }) => "changed",
                Ok(Done {
                    without_subset: true, ..
                }) => "without-subset",
                Ok(_) => "unchanged",
                Err(Stop::Deny(_)) => "denied",
                Err(Stop::Missing(_)) => "asked",
            },
        );
        match result {
            Ok(done) => {
                warnings.extend(done.warnings);
                write = write.or(done.write);
            }
            Err(Stop::Deny(response)) => return Outcome::Response(response),
            Err(Stop::Missing(missing)) => return Outcome::Missing(missing),
        }
    }
    // Only now is it certain that no other step turns the pod down.
    if let Some(write) = write {
        return Outcome::Write(write);
    }
    Outcome::Response(Response::patched(&request.object, &pod, warnings))
}

/// Refuses a pod for a reason that lies with us or our objects, not with its author: 500, as in OpenKruise.
fn failed(message: String) -> Stop {
    Stop::Deny(Response::denied(500, message))
}

/// A label or annotation.
fn entry<'a>(object: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(map)?.get(key)?.as_str()
}

/// Labels of the pod.
fn labels(pod: &Value) -> Labels {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
    let texts = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    texts.collect()
}

/// The workload that controls the pod, as its owner reference says.
fn controller(pod: &Value) -> Option<Workload> {
    let owners = items(pod.get("metadata")?, "ownerReferences").iter();
    let mut controllers = owners.filter(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    let owner = controllers.next()?;
    let group = text(owner, "apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    Some(Workload {
        group: group.to_owned(),
        kind: text(owner, "kind").to_owned(),
        name: text(owner, "name").to_owned(),
    })
}

/// A list of an object, made if it is absent.
fn list<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Vec<Value>> {
    let member = object.as_object_mut()?.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Array(Vec::new());
    }
    member.as_array_mut()
}

/// Sets an annotation.
fn annotate(pod: &mut Value, key: &str, value: String) {
    for name in ["metadata", "annotations"] {
        let path = if name == "metadata" { "" } else { "/metadata" };
        let Some(Value::Object(parent)) = pod.pointer_mut(path) else {
            return;
        };
        let member = parent.entry(name).or_insert(Value::Null);
        if member.is_null() {
            *member = Value::Object(serde_json::Map::new());
        }
    }
    if let Some(Value::Object(annotations)) = pod.pointer_mut("/metadata/annotations") {
        annotations.insert(key.to_owned(), value.into());
    }
}
