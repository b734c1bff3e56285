//! Adding and removing pods.

use std::time::Duration;

use jiff::Timestamp;
use kruise_plan_kit::{
    Chain, EventNote, Intent, Why, events, lifecycle::State, order::sort_for_removal, readiness,
};

use super::{
    create,
    history::Revisions,
    members::{Member, Side},
    numbers::Numbers,
    observe::Observed,
    remove::{self, Leave},
    writes,
};

/// What scaling does.
#[derive(Default)]
pub(super) struct Scaled {
    pub(super) chains: Vec<Chain>,
    pub(super) events: Vec<EventNote>,
    pub(super) why: Vec<Why>,
    /// Look again after this long.
    pub(super) requeue: Option<Duration>,
    /// Pods leave: changing others waits for the next plan, which sees what is left.
    pub(super) removes: bool,
}

pub(super) fn scale(
    observed: &Observed<'_>,
    revisions: &Revisions,
    members: &[Member<'_>],
    numbers: Numbers,
    now: Timestamp,
) -> Scaled {
    let mut scaled = Scaled::default();
    call_back(observed, members, &mut scaled, now);
    if !scaled.chains.is_empty() {
        scaled.removes = true;
        return scaled;
    }
    if numbers.up > numbers.up_limit {
        let message = format!(
            "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {}",
            numbers.up_limit
        );
        scaled.why.push(Why {
            about: String::new(),
            text: message.clone(),
        });
        scaled.events.push(EventNote {
            reason: &events::SCALE_UP_LIMITED,
            message,
        });
    }
    if numbers.up_limit > 0 {
        let (count, old) = (
            numbers.up_limit as usize,
            numbers.up_old.min(numbers.up_limit) as usize,
        );
        let created = create::create(observed, revisions, count, old, now);
        scaled.why.extend(created.why);
        scaled.requeue = created.requeue;
        if !created.chains.is_empty() {
            scaled.chains = created.chains;
            return scaled;
        }
    }
    remove_surplus(observed, revisions, members, numbers, &mut scaled, now);
    scaled
}

/// A pod held before deletion returns to service when replicas are short and nobody asked for this very pod to go. Where
/// hooks take pods out of service there is no way back: the pod is being drained.
fn call_back(observed: &Observed<'_>, members: &[Member<'_>], scaled: &mut Scaled, now: Timestamp) {
    if readiness::marks(observed.set.spec.lifecycle.as_ref()) {
        return;
    }
    let replicas = observed.set.spec.replicas.unwrap_or(1).max(0) as usize;
    let planned = members
        .iter()
        .filter(|m| m.specified || m.state == State::PreparingDelete)
        .count();
    let staying = members.len() - planned;
    let returning = members
        .iter()
        .filter(|m| m.state == State::PreparingDelete && !m.specified);
    for member in returning.take(replicas.saturating_sub(staying)) {
        let next = (Intent::SetLifecycle, State::PreparingNormal);
        let reason = "replicas are short again".to_owned();
        let step = writes::turn(observed, member.pod, next, &[], reason, now);
        scaled.chains.push(writes::chain(vec![step]));
    }
}

fn remove_surplus(
    observed: &Observed<'_>,
    revisions: &Revisions,
    members: &[Member<'_>],
    numbers: Numbers,
    scaled: &mut Scaled,
    now: Timestamp,
) {
    let mut leave = |member: &Member<'_>, reason: &str| {
        if let Leave::Now(chain) = remove::remove(observed, member, reason, now) {
            scaled.chains.push(chain);
            scaled.removes = true;
        }
    };
    for member in members
        .iter()
        .filter(|member| member.state == State::PreparingDelete)
    {
        leave(member, "its preDelete hook let it go");
    }
    let mut budget = numbers.delete_available;
    let mut waiting = Vec::new();
    for member in members
        .iter()
        .filter(|m| m.specified && m.state != State::PreparingDelete)
    {
        if spend(&mut budget, member) {
            leave(member, "it was asked for by name or label");
        } else {
            waiting.push(member);
        }
    }
    let planned = members
        .iter()
        .any(|m| m.specified || m.state == State::PreparingDelete);
    if numbers.down > 0 && !planned {
        for member in victims(observed, revisions, members, numbers) {
            if spend(&mut budget, member) {
                leave(member, "there are more pods than replicas");
            } else {
                waiting.push(member);
            }
        }
    }
    for member in waiting {
        let text = "to be deleted, held by maxUnavailable: too few other pods are available".to_owned();
        scaled.why.push(Why {
            about: member.pod.name.to_string(),
            text,
        });
    }
}

/// A pod out of service goes free of charge; one in service takes a place of the budget.
fn spend(budget: &mut i32, member: &Member<'_>) -> bool {
    if !member.service.is_available() {
        return true;
    }
    if *budget > 0 {
        *budget -= 1;
        return true;
    }
    false
}

fn victims<'m, 'a>(
    observed: &Observed<'_>,
    revisions: &Revisions,
    members: &'m [Member<'a>],
    numbers: Numbers,
) -> Vec<&'m Member<'a>> {
    let (down, down_old) = (numbers.down as usize, numbers.down_old.min(numbers.down) as usize);
    let topology = topology_keys(revisions);
    let zone_of = |node: &str, key: &str| (observed.node)(node).and_then(|node| node.labels().get(key));
    let mut chosen = Vec::with_capacity(down);
    for (side, count) in [(Side::Old, down_old), (Side::New, down - down_old)] {
        if count == 0 {
            continue;
        }
        let mut group: Vec<&Member<'_>> = members.iter().filter(|member| member.side == side).collect();
        sort_for_removal(&mut group, |member| member.candidate(), &topology, &zone_of);
        chosen.extend(group.into_iter().take(count));
    }
    chosen
}

fn topology_keys(revisions: &Revisions) -> Vec<String> {
    let constraints = revisions
        .update
        .template
        .pointer("/spec/topologySpreadConstraints");
    constraints
        .and_then(|constraints| constraints.as_array())
        .into_iter()
        .flatten()
        .filter_map(|constraint| constraint.get("topologyKey")?.as_str().map(str::to_owned))
        .collect()
}
