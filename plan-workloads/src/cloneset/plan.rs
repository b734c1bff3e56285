//! The order of decisions.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_plan_kit::{
    Chain, Explain, Owner, Plan, Target, Why,
    history::History,
    rollout::{Pod, Rollout, interrupted, refresh},
};

use super::{
    claims::Places,
    create::NewPods,
    explain, history,
    numbers::{Counts, InPlace, Limits, numbers},
    observe::Observed,
    parts, pods,
    scale::{self, Scaling},
    status,
    update::Updaters,
    volumes::Volumes,
};

/// Decides what a set needs now.
pub fn plan(observed: &Observed<'_>, now: Timestamp) -> Plan {
    let (set, spec, memory) = (observed.set, &observed.set.spec, observed.memory);
    let owner = Owner::new(observed.api_version, "CloneSet", &set.metadata);
    let claimed = pods::claim(set, observed.pods);
    let history = History::new(observed.revisions);
    let taken_names = &memory.taken_names;
    let pulls_ahead = observed.options.images_ahead;
    let found = history::find(set, &owner, &history, taken_names, pulls_ahead);
    let pods = claimed.classify(set, &found.update, now);
    let limits = Limits::of(spec, observed.options.exclude_preparing_delete);
    let places = Places {
        owner,
        claims: observed.claims,
        pods: observed.pods,
        taken_names,
        reuse: spec.scale_strategy.enable_pvc_reuse,
    };
    let rollout = Rollout {
        owner,
        strategy: parts::strategy(spec),
        budget: parts::budget(spec, limits),
        lifecycle: spec.lifecycle.as_ref(),
        options: parts::options(observed),
        update: found.update,
        current: found.current,
        history,
        after_deletion: &|pod| places.deletions(pod),
        explain: observed.explain,
        now,
    };
    let mut plan = Plan::default();
    let alive = set.metadata.deletion_timestamp.is_none();
    if alive {
        let recorded = found.chain.is_none();
        plan.chains.extend(found.chain);
        plan.chains.extend(claimed.release(owner.uid));
        let scaling = Scaling {
            new_pods: NewPods {
                places: &places,
                volumes: Volumes {
                    owner,
                    templates: &spec.volume_claim_templates,
                    labels: &spec.selector.match_labels,
                },
                version: &set.metadata.resource_version,
                ready_gate: observed.options.pod_ready_gate,
            },
            node: observed.node,
        };
        let held_as_updated = observed.options.preparing_update_as_update;
        act(&rollout, &scaling, &pods, limits, held_as_updated, &mut plan);
        places.clean_up(&mut plan);
        let named = &spec.scale_strategy.pods_to_delete;
        plan.chains.extend(scale::prune(&owner, named, &pods));
        let images = parts::images(observed);
        let images = images.map(|images| images.plan(&rollout, &pods, recorded));
        plan.chains.extend(images.into_iter().flatten());
        plan.chains
            .extend(history::truncate(&rollout, spec.revision_history_limit, &pods));
    } else {
        let text = "the set is being deleted: its pods go with it";
        plan.why.push(Why::of_set(text));
    }
    // What comes by itself is worth waiting for.
    let idle = alive && plan.chains.is_empty() && plan.requeue.is_none();
    let report = status::report(observed, &rollout, found.collision_count, &pods, idle);
    plan.events.extend(report.events);
    plan.status = report.patch;
    plan.requeue_after(report.requeue);
    plan.why.extend(report.why);
    plan
}

fn act(
    rollout: &Rollout<'_>,
    scaling: &Scaling<'_, '_>,
    pods: &[Pod<'_>],
    limits: Limits,
    held_as_updated: bool,
    plan: &mut Plan,
) {
    let ready = refresh(rollout, pods, plan);
    let decided = plan.chains.len();
    change(rollout, scaling, pods, limits, held_as_updated, plan);
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
    rollout: &Rollout<'_>,
    scaling: &Scaling<'_, '_>,
    pods: &[Pod<'_>],
    limits: Limits,
    held_as_updated: bool,
    plan: &mut Plan,
) {
    let rolls_back = rollout.options.goes_back && rollout.update.name != rollout.current.name;
    let mut updaters = Updaters::new(rollout);
    let limits = Limits { rolls_back, ..limits };
    let limits = Limits {
        in_place: in_place(&mut updaters, pods, limits),
        ..limits
    };
    let count = |updated, held_as_updated| Counts::of(pods, updated, held_as_updated);
    let counted = numbers(
        limits,
        count(false, held_as_updated),
        count(true, held_as_updated),
    );
    let removes = scaling.scale(rollout, pods, counted, plan);
    if rollout.explain == Explain::Yes {
        explain::explain(limits, counted, pods, plan);
    }
    if removes {
        return;
    }
    let updating = numbers(limits, count(false, false), count(true, false));
    updaters.update(rollout, pods, updating, plan);
    if updating.update == 0 {
        plan.chains.extend(interrupted::repair(rollout, pods));
    }
}

/// Which updates can all pods make in place? Asked only where it matters: each revision costs a comparison of templates.
fn in_place(updaters: &mut Updaters<'_>, pods: &[Pod<'_>], limits: Limits) -> InPlace {
    let leaving = |updated: bool| pods.iter().filter(move |pod| pod.updated == updated);
    let surges = limits.max_surge > 0;
    InPlace {
        forward: surges && updaters.forward.all_in_place(leaving(false)),
        back: surges && limits.rolls_back && updaters.back.all_in_place(leaving(true)),
    }
}

fn subject(chain: &Chain) -> Option<&Target> {
    chain.steps.first().map(|step| step.write.target())
}
