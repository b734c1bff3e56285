//! The order of decisions.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_plan_kit::{
    Chain, EventNote, Intent, Pace, Part, Patch, Plan, Precondition, ResourceId, Step, Target, Wave, Why,
    Write, events, inplace::Progress,
};
use serde_json::{Value, json};

use super::{
    claims, history, images,
    members::{self, Member, Side, Standing},
    mover::Movers,
    numbers::{InPlace, Limits, Numbers, Tally, numbers},
    observe::{Explain, Observed},
    ready, scale, stall, status,
    templates::Templates,
    unlabelled, update, writes,
};

/// Decides what a set needs now.
pub fn plan(observed: &Observed<'_>, now: Timestamp) -> Plan {
    let set = observed.set;
    let claimed = members::claim(set, observed.pods);
    let found = history::find(observed);
    let members = members::classify(set, &claimed.active, &found.revisions.update, now);
    let limits = Limits::of(&set.spec, observed.options.exclude_preparing_delete);
    let mut plan = Plan::default();
    let alive = set.metadata.deletion_timestamp.is_none();
    if alive {
        plan.chains.extend(found.chain.clone());
        plan.chains.extend(
            claimed
                .released
                .iter()
                .map(|pod| release(set.metadata.uid.as_str(), pod)),
        );
        act(observed, &found, &members, limits, &mut plan, now);
        let (chains, why) = claims::tend(observed, &plan.chains);
        plan.chains.extend(chains);
        plan.why.extend(why);
        plan.chains.extend(prune(observed, &members));
        plan.chains
            .extend(images::tend(observed, &found, &members, limits, now));
        plan.chains.extend(history::truncate(observed, &found, &members));
    } else {
        plan.why.push(Why {
            about: String::new(),
            text: "the set is being deleted: its pods go with it".into(),
        });
    }
    // What comes by itself is worth waiting for.
    let idle = alive && plan.chains.is_empty() && plan.requeue.is_none();
    let report = status::report(observed, &found, &members, limits, idle, now);
    plan.events.extend(report.events);
    plan.status = report.patch;
    plan.requeue = plan.requeue.into_iter().chain(report.requeue).min();
    if let Some(moved) = report.waits_since.filter(|_| observed.explain == Explain::Yes) {
        plan.why
            .extend(stall::explain(set, &members, observed.memory, moved, now));
    }
    plan
}

fn act(
    observed: &Observed<'_>,
    found: &history::Found,
    members: &[Member<'_>],
    limits: Limits,
    plan: &mut Plan,
    now: Timestamp,
) {
    let templates = Templates::new(&found.sorted);
    let ready = refresh(observed, &templates, members, plan, now);
    let decided = plan.chains.len();
    change(observed, found, &templates, members, limits, plan, now);
    // One pod has one chain in a plan: what brings it into service can wait for what takes it out.
    let ready = if ready.is_empty() {
        ready
    } else {
        let taken: BTreeSet<&Target> = plan.chains.iter().skip(decided).filter_map(subject).collect();
        let free = |chain: &Chain| subject(chain).is_none_or(|pod| !taken.contains(pod));
        ready.into_iter().filter(free).collect()
    };
    plan.chains.extend(ready);
}

fn change(
    observed: &Observed<'_>,
    found: &history::Found,
    templates: &Templates<'_>,
    members: &[Member<'_>],
    limits: Limits,
    plan: &mut Plan,
    now: Timestamp,
) {
    let rolls_back =
        observed.options.partition_rollback && found.revisions.update.name != found.revisions.current.name;
    let limits = Limits { rolls_back, ..limits };
    let mut movers = Movers::new(observed, &found.revisions, templates, now);
    let limits = Limits {
        in_place: in_place(&mut movers, members, limits),
        ..limits
    };
    let held_as_new = observed.options.preparing_update_as_update;
    let tally = |side, held_as_new| Tally::of(members, side, held_as_new);
    let scaling = numbers(
        limits,
        tally(Side::Old, held_as_new),
        tally(Side::New, held_as_new),
    );
    let scaled = scale::scale(observed, &found.revisions, members, scaling, now);
    plan.chains.extend(scaled.chains);
    plan.events.extend(scaled.events);
    plan.why.extend(scaled.why);
    plan.requeue = plan.requeue.into_iter().chain(scaled.requeue).min();
    explain(observed, limits, scaling, plan);
    explain_updated(observed, members, plan);
    if scaled.removes {
        return;
    }
    let updating = numbers(limits, tally(Side::Old, false), tally(Side::New, false));
    let updated = update::update(observed, &mut movers, members, updating, now);
    plan.chains.extend(updated.chains);
    plan.events.extend(updated.events);
    plan.why.extend(updated.why);
    if updating.update == 0 {
        plan.chains
            .extend(unlabelled::tend(observed, templates, members, limits, now));
    }
}

/// Which moves can all pods make in place? Asked only where it matters: each revision costs a comparison of templates.
fn in_place(movers: &mut Movers<'_, '_>, members: &[Member<'_>], limits: Limits) -> InPlace {
    let leaving = |from: Side| members.iter().filter(move |member| member.side == from);
    let surges = limits.max_surge > 0;
    InPlace {
        forward: surges && movers.forward.all_in_place(leaving(Side::Old)),
        back: surges && limits.rolls_back && movers.back.all_in_place(leaving(Side::New)),
    }
}

fn subject(chain: &Chain) -> Option<&Target> {
    chain.steps.first().map(|step| step.write.target())
}

/// What brings pods into service.
fn refresh(
    observed: &Observed<'_>,
    templates: &Templates<'_>,
    members: &[Member<'_>],
    plan: &mut Plan,
    now: Timestamp,
) -> Vec<Chain> {
    let template_of = |label: &str| templates.by_label(label);
    let mut chains = Vec::new();
    for member in members {
        let step = ready::refresh(observed, member, &template_of, now);
        chains.extend(step.chain);
        let text = match step.progress {
            Progress::Complete | Progress::Due { .. } => continue,
            Progress::Waiting(text) => format!("is being updated in place: {text}"),
            Progress::Grace(left) => {
                plan.requeue = plan.requeue.into_iter().chain([left]).min();
                "is out of service and gets its grace period before it changes".to_owned()
            }
            Progress::Unreadable(error) => {
                let message = format!(
                    "pod {}: its in-place update state cannot be read: {error}",
                    member.pod.name
                );
                plan.events.push(EventNote {
                    reason: &events::INVALID_STATE,
                    message: message.clone(),
                });
                message
            }
        };
        if observed.explain == Explain::Yes {
            plan.why.push(Why {
                about: member.pod.name.to_string(),
                text,
            });
        }
    }
    chains
}

fn explain(observed: &Observed<'_>, limits: Limits, numbers: Numbers, plan: &mut Plan) {
    if observed.explain == Explain::No {
        return;
    }
    let Limits {
        replicas,
        partition,
        max_unavailable,
        max_surge,
        ..
    } = limits;
    let text = format!(
        "wants {replicas} pods, keeps {partition} on old revisions, lets {max_unavailable} be out of service and \
         {max_surge} exceed replicas"
    );
    plan.why.push(Why {
        about: String::new(),
        text,
    });
    if numbers.up > 0 {
        let text = format!(
            "{} pods are missing, {} may be created now",
            numbers.up, numbers.up_limit
        );
        plan.why.push(Why {
            about: String::new(),
            text,
        });
    }
    if numbers.down > 0 {
        let text = format!(
            "{} pods are surplus, {} available ones may go now",
            numbers.down, numbers.delete_available
        );
        plan.why.push(Why {
            about: String::new(),
            text,
        });
    }
    if numbers.update < 0 {
        let text = format!(
            "{} updated pods are to go back to the current revision, {} may be out of service meanwhile",
            numbers.update.unsigned_abs(),
            numbers.update_max_unavailable
        );
        plan.why.push(Why {
            about: String::new(),
            text,
        });
    }
    if numbers.update > 0 {
        let text = format!(
            "{} pods are to be updated, {} may be out of service meanwhile",
            numbers.update, numbers.update_max_unavailable
        );
        plan.why.push(Why {
            about: String::new(),
            text,
        });
    }
}

/// Says of each updated pod whether it serves.
fn explain_updated(observed: &Observed<'_>, members: &[Member<'_>], plan: &mut Plan) {
    if observed.explain == Explain::No {
        return;
    }
    for member in members.iter().filter(|member| member.side == Side::New) {
        let text = match member.standing() {
            Standing::Available => "is up to date and in service",
            Standing::Unavailable => "is up to date, not in service yet",
            Standing::Specified => "is asked to go",
            Standing::PreparingDelete => "leaves as soon as its preDelete hook lets it",
        };
        plan.why.push(Why {
            about: member.pod.name.to_string(),
            text: text.to_owned(),
        });
    }
}

/// Removes our owner reference from a pod that left the selector.
fn release(owner_uid: &str, pod: &kruise_views::PodView) -> Chain {
    let patch = json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner_uid}]}});
    let reason = "its labels no longer match the selector".to_owned();
    writes::chain(vec![writes::patch(
        pod,
        Intent::ReleasePod,
        Part::Main,
        patch,
        reason,
    )])
}

/// Takes names from `podsToDelete` that are not, or no longer, pods of the set.
fn prune(observed: &Observed<'_>, members: &[Member<'_>]) -> Option<Chain> {
    let wanted = &observed.set.spec.scale_strategy.pods_to_delete;
    let kept: Vec<&String> = wanted
        .iter()
        .filter(|name| members.iter().any(|member| *member.pod.name == ***name))
        .collect();
    if kept.len() == wanted.len() {
        return None;
    }
    let path = "/spec/scaleStrategy/podsToDelete";
    let operation = if kept.is_empty() {
        json!({"op": "remove", "path": path})
    } else {
        json!({"op": "replace", "path": path, "value": kept})
    };
    let metadata = &observed.set.metadata;
    let write = Write::Patch {
        intent: Intent::PrunePodsToDelete,
        target: Target {
            resource: ResourceId::CLONESETS,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        },
        part: Part::Main,
        patch: Patch::Json(Value::Array(vec![operation])),
        precondition: Precondition::Test(path.into(), json!(wanted)),
    };
    let reason = "these pods are gone".to_owned();
    let steps = vec![Step {
        write,
        reason,
        done: None,
        failed: None,
    }];
    Some(Chain {
        wave: Wave::Cleanup,
        pace: Pace::Bounded,
        steps,
    })
}
