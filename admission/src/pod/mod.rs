//! What happens to a pod on its way in.
//!
//! [`CHAIN`] is the whole of it, in an order that is a contract: each step sees the pod as the ones before left it.
//! A step has its own folder. It changes a draft of the pod in raw JSON, and the answer is a patch that inserts what is
//! new and touches nothing else, so that fields newer than this program stay on the items they are on.
//!
//! Steps do no I/O. What they need to know beyond the pod is in [`Known`]; where that does not suffice they say what is
//! missing, and are asked again with it: [`Outcome::Needs`].

mod known;
mod launch;
pub mod patch;
mod readiness;
pub mod sidecars;

use serde_json::Value;

use crate::{Answer, Operation, Options, Request};

pub use known::{Known, Need, Revision};

/// A step: its name, and what it does.
type Step = (&'static str, fn(&mut Value, &Context<'_>) -> Result<Done, Stop>);

/// The steps in their order.
const CHAIN: &[Step] = &[
    ("readiness-gate", readiness::apply),
    ("sidecars", sidecars::apply),
    ("launch", launch::apply),
];

/// What a step may look at.
struct Context<'a> {
    request: &'a Request,
    options: Options,
    known: &'a Known,
}

/// What a step did.
#[derive(Default)]
struct Done {
    /// The pod is another one now.
    changed: bool,
    /// What the author of the pod is told.
    warnings: Vec<String>,
}

impl Done {
    const NOTHING: Self = Self {
        changed: false,
        warnings: Vec::new(),
    };
    const CHANGED: Self = Self {
        changed: true,
        warnings: Vec::new(),
    };
}

/// Why a step did not finish.
enum Stop {
    /// The pod is turned down.
    Deny(Answer),
    /// Something has to be looked up first.
    Needs(Vec<Need>),
}

/// What becomes of a review.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Decided.
    Answer(Answer),
    /// To be asked again, with these in [`Known`].
    Needs(Vec<Need>),
}

/// Takes a new pod through [`CHAIN`].
pub fn review(request: &Request, options: Options, known: &Known) -> Outcome {
    review_told(request, options, known, &mut |_, _| {})
}

/// As [`review`]; `tell` hears of each step as it ends, by its name and what came of it: `changed`, `unchanged`, `denied`,
/// or `asked` for something that is to be looked up first.
pub fn review_told(
    request: &Request,
    options: Options,
    known: &Known,
    tell: &mut dyn FnMut(&'static str, &'static str),
) -> Outcome {
    if request.operation != Operation::Create || !request.sub_resource.is_empty() {
        return Outcome::Answer(Answer::ALLOW);
    }
    if !request.object.get("spec").is_some_and(Value::is_object) {
        return Outcome::Answer(Answer::undecodable("a pod needs a spec"));
    }
    let context = Context {
        request,
        options,
        known,
    };
    let mut pod = request.object.clone();
    let mut warnings = Vec::new();
    for (name, step) in CHAIN {
        let ended = step(&mut pod, &context);
        tell(
            name,
            match &ended {
                Ok(Done { changed: true, .. }) => "changed",
                Ok(_) => "unchanged",
                Err(Stop::Deny(_)) => "denied",
                Err(Stop::Needs(_)) => "asked",
            },
        );
        match ended {
            Ok(done) => warnings.extend(done.warnings),
            Err(Stop::Deny(answer)) => return Outcome::Answer(answer),
            Err(Stop::Needs(needs)) => return Outcome::Needs(needs),
        }
    }
    let patch = patch::between(&request.object, &pod);
    Outcome::Answer(Answer::Allow {
        patch: (!patch.is_empty()).then(|| patch.into()),
        warnings,
    })
}

/// Refuses a pod for a reason that lies with us or our objects, not with its author: 500, as OpenKruise answers.
fn failed(message: String) -> Stop {
    Stop::Deny(Answer::Deny { code: 500, message })
}

/// The items of a list in an object; none if it is absent or something else.
fn items<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    let list = object.get(name).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// A string; empty if absent.
fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A label or annotation.
fn entry<'a>(object: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(map)?.get(key)?.as_str()
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
