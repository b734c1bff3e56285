//! The subset of a new pod: which WorkloadSpread the pod's workload has, which subset takes the pod, and what the
//! subset adds to it.
//!
//! The subset is chosen by [`kruise_plan_kit::spread`]. A pod that takes a slot is stored in the status of the
//! WorkloadSpread once all other steps have let it pass, and before the response is sent.
//!
//! # What it promises
//! - A pod whose workload cannot be found out is refused, and its controller tries again: it would be in no subset
//!   for good.
//! - A pod passes without a subset only if none has room, as the API server has it now.
//! - A pod whose patch makes something of it that no server can read, or that its own workload would let go at once, is
//!   refused, and the refusal names the WorkloadSpread and the subset.
//! - A dry run is not spread, and a pod that carries the annotation of its WorkloadSpread has been: an API server
//!   may call the webhook twice for one pod.

mod identity;
mod inject;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_api::names::workloadspread::{MATCHED, WORKLOADS};
use kruise_api::workloadspread::{Matched, WorkloadSpread};
use kruise_plan_kit::spread::{
    self, Choice, ListedKind, NewPod, assign, by_ordinal, fits_all, has_ordinals, has_percentages,
    is_counted, is_known, listed, selects,
};
use kruise_plan_kit::workloads::Workload;
use kruise_views::Labels;
use serde_json::Value;

use self::identity::Identity;
use super::draft::{controller, entry, labels};
use super::step::{Context, Done, Stop, failed};
use crate::json::{present, text};
use crate::lookup::{Lookup, Lookups, ObjectName, Stored, readable};
use crate::protocol::{Count, Write};

impl Stored for WorkloadSpread {
    const KIND: &'static Kind = &kruise_api::workloadspread::KIND;

    type All = Vec<Arc<Self>>;

    fn read(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }

    fn collect(objects: Vec<Value>) -> Self::All {
        readable(objects)
    }
}

/// Longest chain of owners. A longer one is a circle, or made to cost requests.
const LONGEST: usize = 8;

/// What happens to a pod.
enum Decision {
    /// No WorkloadSpread is for it, or it has passed before.
    Nothing,
    /// It is in this subset.
    InSubset {
        spread: Arc<WorkloadSpread>,
        matched: Matched,
        write: Option<Write>,
    },
    /// It is in no subset; what is to be done before that is certain.
    WithoutSubset(Option<Write>),
}

/// What has to be looked up for the pod first.
pub(super) fn missing(pod: &Value, context: &Context<'_>) -> Vec<Lookup> {
    match decide(pod, context) {
        Err(Stop::Missing(missing)) => missing,
        _ => Vec::new(),
    }
}

/// Puts the pod into its subset.
pub(super) fn apply(pod: &mut Value, context: &Context<'_>) -> Result<Done, Stop> {
    match decide(pod, context)? {
        Decision::Nothing => Ok(Done::NOTHING),
        // With a read to be made first, it may yet find a subset.
        Decision::WithoutSubset(write) => Ok(Done {
            without_subset: write.is_none(),
            write: write.map(Box::new),
            ..Done::NOTHING
        }),
        Decision::InSubset {
            spread,
            matched,
            write,
        } => {
            let mut subsets = spread.spec.subsets.iter();
            let Some(subset) = subsets.find(|subset| subset.name == matched.subset) else {
                return Ok(Done::NOTHING);
            };
            let refused = |why: String| {
                let (name, subset) = (&matched.name, &matched.subset);
                failed(format!(
                    "the patch of subset {subset} of WorkloadSpread {name} does not fit the pod: {why}"
                ))
            };
            let identity = subset.patch.is_some().then(|| Identity::of(pod));
            inject::inject(pod, subset, &matched).map_err(refused)?;
            if let Some(identity) = identity
                && let Some(why) = identity.lost(pod, context)?
            {
                return Err(refused(why));
            }
            Ok(Done {
                write: write.map(Box::new),
                ..Done::CHANGED
            })
        }
    }
}

fn decide(pod: &Value, context: &Context<'_>) -> Result<Decision, Stop> {
    if !context.options.workload_spread || context.request.dry_run || !is_active(pod) {
        return Ok(Decision::Nothing);
    }
    let Some(controller) = controller(pod) else {
        return Ok(Decision::Nothing);
    };
    let labels = labels(pod);
    let Some(spread) = spread_of(&controller, &labels, context)? else {
        return Ok(Decision::Nothing);
    };
    let name = &spread.metadata.name;
    let carried = entry(pod, "annotations", MATCHED).and_then(Matched::parse);
    if carried.is_some_and(|carried| carried.name == *name) {
        return Ok(Decision::Nothing);
    }
    let pod_name = pod.get("metadata").map_or("", |metadata| text(metadata, "name"));
    if !is_counted(&spread.spec) {
        let subset = if has_ordinals(&spread.spec) {
            by_ordinal(&spread, pod_name)
        } else {
            spread.spec.subsets.first()
        };
        let Some(subset) = subset else {
            return Ok(Decision::WithoutSubset(None));
        };
        let matched = Matched {
            name: name.clone(),
            subset: subset.name.clone(),
            uid: String::new(),
        };
        return Ok(Decision::InSubset {
            spread,
            matched,
            write: None,
        });
    }
    let new = NewPod {
        name: pod_name,
        uid: &context.request.uid,
        version: &spread::version(&labels, &controller.kind),
    };
    counted(name, &new, context)
}

/// Chooses a subset where pods are counted, from the newest version of the WorkloadSpread.
fn counted(name: &str, pod: &NewPod<'_>, context: &Context<'_>) -> Result<Decision, Stop> {
    let (lookups, namespace) = (context.lookups, &context.request.namespace);
    let object = ObjectName::new(namespace, name);
    let lookup = Lookup::one::<WorkloadSpread>(object.clone());
    // The controller reports one that cannot be read.
    let Some(Ok(spread)) = lookups.one::<WorkloadSpread>(object.clone())? else {
        return Ok(Decision::Nothing);
    };
    if spread.metadata.deletion_timestamp.is_some() {
        return Ok(Decision::Nothing);
    }
    let versions = &spread.status.versioned_subset_statuses;
    let is_new = versions.get(pod.version).is_none_or(Vec::is_empty);
    let replicas = if is_new && has_percentages(&spread.spec) {
        replicas_of(spread, namespace, lookups)?
    } else {
        None
    };
    let write = |after| {
        Some(Write::Count(Count {
            spread: object.clone(),
            after,
            is_eviction: false,
        }))
    };
    let is_stored = lookups.is_stored(&lookup);
    match assign(spread, pod, replicas, context.request.now) {
        Ok(Choice::Free(matched)) => {
            let mut subsets = spread.spec.subsets.iter();
            let is_limited = subsets.any(|one| one.name == matched.subset && one.max_replicas.is_some());
            // An entry of an earlier pod of its name may be what an old version shows.
            let is_certain = !is_limited || is_stored || lookups.is_live(&lookup);
            Ok(Decision::InSubset {
                spread: spread.clone(),
                matched,
                write: if is_certain { None } else { write(None) },
            })
        }
        Ok(Choice::Counted(matched, status)) => {
            let after = WorkloadSpread {
                status,
                ..(**spread).clone()
            };
            let write = if is_stored {
                None
            } else {
                write(Some(Arc::new(after)))
            };
            Ok(Decision::InSubset {
                spread: spread.clone(),
                matched,
                write,
            })
        }
        Ok(Choice::Nothing) if !is_stored && !lookups.is_live(&lookup) && should_fit(spread, context)? => {
            Ok(Decision::WithoutSubset(write(None)))
        }
        // A limit that cannot be read is what the controller reports.
        Ok(Choice::Nothing) | Err(_) => Ok(Decision::WithoutSubset(None)),
    }
}

/// Do the limits leave room for all replicas, so that no room is surprising?
fn should_fit(spread: &WorkloadSpread, context: &Context<'_>) -> Result<bool, Stop> {
    let has_limits = spread
        .spec
        .subsets
        .iter()
        .all(|subset| subset.max_replicas.is_some());
    let replicas = if has_limits {
        replicas_of(spread, &context.request.namespace, context.lookups)?
    } else {
        None
    };
    Ok(fits_all(&spread.spec, replicas))
}

/// How many pods the target wants, as it says now; `None` if it does not exist or does not say.
fn replicas_of(spread: &WorkloadSpread, namespace: &str, lookups: &Lookups) -> Result<Option<i32>, Lookup> {
    let Some(target) = &spread.spec.target_ref else {
        return Ok(None);
    };
    let kinds = listed_unless(is_known(target.group(), &target.kind, &[]), lookups)?;
    let object = lookups.object(Lookup::Workload {
        namespace: namespace.to_owned(),
        workload: Workload::new(target.group(), &target.kind, &target.name),
    })?;
    let replicas = object.map(|object| spread::replicas(&spread.spec, object, &kinds));
    Ok(replicas.and_then(Result::ok).flatten())
}

/// The first WorkloadSpread of the namespace that is for pods with this controller and these labels.
fn spread_of(
    controller: &Workload,
    labels: &Labels,
    context: &Context<'_>,
) -> Result<Option<Arc<WorkloadSpread>>, Stop> {
    let (lookups, namespace) = (context.lookups, &context.request.namespace);
    let mut spreads: Vec<_> = lookups.list::<WorkloadSpread>(namespace)?.iter().collect();
    spreads.retain(|one| {
        let is_used = one.metadata.deletion_timestamp.is_none() && one.spec.target_ref.is_some();
        is_used && selects(&one.spec, labels)
    });
    if spreads.is_empty() {
        return Ok(None);
    }
    let mut owners = Owners {
        namespace,
        lookups,
        spreads: &spreads,
        known: vec![controller.clone()],
        is_whole: false,
    };
    if !owners.is_known_kind(controller)? {
        return Ok(None);
    }
    for spread in &spreads {
        let mut at = 0;
        while let Some(owner) = owners.get(at)? {
            let target = spread.spec.target_ref.as_ref();
            if target.is_some_and(|target| target.names(&owner.group, &owner.kind, &owner.name)) {
                return Ok(Some((*spread).clone()));
            }
            at += 1;
        }
    }
    Ok(None)
}

/// The owners of a pod, looked up one after the other as they are needed.
struct Owners<'a> {
    namespace: &'a str,
    lookups: &'a Lookups,
    spreads: &'a [&'a Arc<WorkloadSpread>],
    known: Vec<Workload>,
    is_whole: bool,
}

impl Owners<'_> {
    /// The owner at this distance from the pod; `None` if there is none that matters.
    fn get(&mut self, at: usize) -> Result<Option<Workload>, Stop> {
        if self.known.len() <= at && !self.is_whole {
            let last = self.known.last().cloned().unwrap_or_default();
            let next = if at < LONGEST && self.may_be_below_a_target(&last)? {
                self.owner_of(&last)?
            } else {
                None
            };
            self.is_whole = next.is_none();
            self.known.extend(next);
        }
        Ok(self.known.get(at).cloned())
    }

    /// The owner of a workload. One that does not exist is read from the server before that is believed; its pods
    /// are to be created again when it is known, or never.
    fn owner_of(&self, workload: &Workload) -> Result<Option<Workload>, Stop> {
        let owner = self.lookups.owner(Lookup::Owner {
            namespace: self.namespace.to_owned(),
            workload: workload.clone(),
        })?;
        owner.map(|owner| owner.first().cloned()).ok_or_else(|| {
            let Workload { kind, name, .. } = workload;
            failed(format!("{kind} {name}, which controls the pod, is not found"))
        })
    }

    /// Can a target of the namespace own workloads of this kind? Of the kinds that everybody knows only a
    /// Deployment does.
    fn may_be_below_a_target(&self, workload: &Workload) -> Result<bool, Stop> {
        let targets = self.spreads.iter().filter_map(|one| one.spec.target_ref.as_ref());
        let may_own = |(group, kind): (&str, &str)| match (group, kind) {
            ("apps", "Deployment") => workload.group_kind() == ("apps", "ReplicaSet"),
            _ => !is_known(group, kind, &[]),
        };
        let mut targets = targets.map(|target| (target.group(), target.kind.as_str()));
        Ok(targets.any(may_own) && self.is_known_kind(workload)?)
    }

    fn is_known_kind(&self, workload: &Workload) -> Result<bool, Stop> {
        let (group, kind) = workload.group_kind();
        let is_built_in = is_known(group, kind, &[]);
        let kinds = listed_unless(is_built_in, self.lookups)?;
        Ok(is_built_in || is_known(group, kind, &kinds))
    }
}

/// The kinds that administrators list, unless they do not matter. A list that cannot be read lists none.
fn listed_unless(does_not_matter: bool, lookups: &Lookups) -> Result<Vec<ListedKind>, Lookup> {
    if does_not_matter {
        return Ok(Vec::new());
    }
    let text = lookups.setting(WORKLOADS)?.unwrap_or_default();
    Ok(listed(text).unwrap_or_default())
}

/// Neither terminating nor at its end.
fn is_active(pod: &Value) -> bool {
    let is_deleted = pod
        .get("metadata")
        .is_some_and(|metadata| present(metadata, "deletionTimestamp").is_some());
    let phase = pod.get("status").map_or("", |status| text(status, "phase"));
    !is_deleted && !matches!(phase, "Succeeded" | "Failed")
}
