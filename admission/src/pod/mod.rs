//! What happens to a pod on its way in.
//!
//! [`CHAIN`] is the whole of it, in an order that is a contract: each step sees the pod as the ones before left it.
//! A step has its own folder. It changes a draft of the pod in raw JSON, and the answer is a patch that inserts what is
//! new and touches nothing else, so that fields newer than this program stay on the items they are on.
//!
//! Steps do no I/O. What they have to know beyond the pod they [look up](crate::lookup).

mod affinity;
mod budget;
mod draft;
mod launch;
mod podstate;
mod probes;
mod readiness;
pub mod sidecars;
pub(crate) mod spread;
mod step;

use serde_json::Value;

use self::step::{Context, Done, Stop};
use crate::lookup::Lookups;
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

/// Takes a new pod through [`CHAIN`].
pub fn review(request: &Request, options: Options, lookups: &Lookups) -> Outcome {
    review_timed(request, options, lookups, &mut |_, _| {})
}

/// As [`review`]. `ended` is called after each step with its name and what came of it: `changed`, `unchanged`,
/// `denied`, `without-subset` if a WorkloadSpread has no room for the pod, or `asked` for something that is to be
/// looked up first.
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
