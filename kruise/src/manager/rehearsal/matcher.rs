//! Compares what plans would do to pods with what was done to them.
//!
//! # What it promises
//! - What was done *agrees* if the plan of the state before it has it, or a plan that was made shortly before. Names of new
//!   pods do not count, unless they are ordinals, nor which of equal pods comes first.
//! - It *differs* only if that plan was made from the specification that the manager had. If the cache has a specification of the
//!   owner that is newer than the write, or gets an older one after it, the write is *not compared*. So a manager that is
//!   faster than the rehearsal, or caches that follow at different speeds, are no difference.
//! - What plans have wanted for longer than [`GRACE`], without anything of the sort being done, differs.
//!
//! Time is an argument.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use kruise_runtime::worker::ObjectState;
use kube_cache::{ObjectKey, Version};

use super::{
    acts::{Fate, Seen, Verdict, Wish},
    report::{Difference, Report, Tally},
};

/// For so long plans may want something that is not done. What a plan no longer wants is remembered for as long.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// Most writes of a plan that are named in a difference.
const NAMED: usize = 3;

/// An object with a controller of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    /// Name of the controller.
    pub(super) controller: &'static str,
    /// The object.
    pub(super) key: ObjectKey,
}

/// What is known of an owner when something is done to a pod of it.
pub(super) struct Before<'b> {
    /// Its kind.
    pub(super) kind: &'b str,
    /// Its version in the cache.
    pub(super) version: Option<Version>,
    /// What the plan of the state before would do; `None` if it could not be made.
    pub(super) wishes: Option<&'b [Wish]>,
}

/// A first step on a pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstStep<'s> {
    /// Name of the pod.
    pub(super) pod: &'s str,
    /// Version of the pod afterwards.
    pub(super) version: Option<Version>,
}

/// What makes two wishes of one owner the same one.
type Identity = (Fate, String, Option<String>);

fn identity(wish: &Wish) -> Identity {
    let pod = if wish.fate == Fate::Created && !wish.is_named {
        String::new()
    } else {
        wish.pod.clone()
    };
    (wish.fate, pod, wish.revision.clone())
}

/// Something that plans want.
#[derive(Debug)]
struct Standing {
    wish: Wish,
    /// Since when, without anything of the sort being done.
    since: Duration,
    /// When the last plan with it was made.
    last: Duration,
}

impl Standing {
    fn lasted(&self) -> Duration {
        self.last.saturating_sub(self.since)
    }

    fn difference(&self, about: &str) -> Option<Difference> {
        let seconds = self.lasted().as_secs();
        (self.lasted() >= GRACE).then(|| Difference {
            about: about.to_owned(),
            text: format!(
                "this build would {}; nothing like it was done in {seconds} s",
                self.wish.text
            ),
        })
    }
}

#[derive(Debug, Default)]
struct State {
    kind: String,
    standing: BTreeMap<Identity, Standing>,
    /// What plans have wanted, and when they ended to.
    past: VecDeque<(Duration, Wish)>,
    /// Is it being deleted?
    ends: bool,
    /// The newest version that the cache has told of.
    told: Option<Version>,
    generation: Option<i64>,
    /// The first version that was seen of the present specification.
    specified: Option<Version>,
    /// Pods with a first step that no plan had, and their versions after it.
    begun: BTreeMap<String, Option<Version>>,
    /// Those of them whose first step was for a specification that arrived after it.
    begun_early: BTreeSet<String>,
}

impl State {
    fn wanted(&self) -> impl Iterator<Item = &Wish> {
        let standing = self.standing.values().map(|standing| &standing.wish);
        standing.chain(self.past.iter().map(|(_, wish)| wish))
    }
}

/// Something that no plan had, so far.
#[derive(Debug)]
struct Suspect {
    owner: Owner,
    kind: String,
    seen: Seen,
    text: String,
}

/// Compares.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    owners: BTreeMap<Owner, State>,
    kinds: BTreeMap<String, Tally>,
    objects: BTreeSet<(String, ObjectKey)>,
    suspects: Vec<Suspect>,
    undone: Vec<Difference>,
}

impl Matcher {
    fn tally(&mut self, kind: &str) -> &mut Tally {
        self.kinds.entry(kind.to_owned()).or_default()
    }

    /// A plan was made.
    pub(super) fn planned(&mut self, owner: &Owner, kind: &str, wishes: Vec<Wish>, now: Duration) {
        if !kind.is_empty() && self.objects.insert((kind.to_owned(), owner.key.clone())) {
            self.tally(kind).objects += 1;
        }
        let state = self.owners.entry(owner.clone()).or_default();
        kind.clone_into(&mut state.kind);
        let mut before = std::mem::take(&mut state.standing);
        for wish in wishes {
            let identity = identity(&wish);
            let since = before.remove(&identity).map(|standing| standing.since);
            let since = state
                .standing
                .get(&identity)
                .map_or(since.unwrap_or(now), |same| same.since);
            let standing = Standing {
                wish,
                since,
                last: now,
            };
            state.standing.insert(identity, standing);
        }
        let about = about(kind, &owner.key);
        for standing in before.into_values() {
            self.undone.extend(standing.difference(&about));
            state.past.push_back((now, standing.wish));
        }
        while (state.past.front()).is_some_and(|(ended, _)| now.saturating_sub(*ended) > GRACE) {
            state.past.pop_front();
        }
    }

    /// Something was done to a pod of this owner.
    pub(super) fn seen(&mut self, owner: &Owner, before: &Before<'_>, seen: Seen, now: Duration) -> Verdict {
        let verdict = self.verdict(owner, before, &seen);
        match verdict {
            Verdict::Agrees => self.done(owner, &seen, now),
            Verdict::Differs => self.suspects.push(Suspect {
                owner: owner.clone(),
                kind: before.kind.to_owned(),
                text: told(&seen, before.wishes.unwrap_or_default()),
                seen: seen.clone(),
            }),
            Verdict::ByOthers | Verdict::NotCompared => {}
        }
        if let Some(state) = self.owners.get_mut(owner) {
            state.begun.remove(&seen.pod);
            state.begun_early.remove(&seen.pod);
        }
        self.tally(before.kind).count(verdict, seen.fate);
        verdict
    }

    fn verdict(&self, owner: &Owner, before: &Before<'_>, seen: &Seen) -> Verdict {
        let state = self.owners.get(owner);
        let ends = state.is_some_and(|state| state.ends);
        if seen.fate == Fate::Deleted && (ends || seen.is_disruption) {
            return Verdict::ByOthers;
        }
        let planned = before.wishes.unwrap_or_default();
        if planned.iter().any(|wish| wish.is(seen)) || self.is_wanted(owner, seen) {
            return Verdict::Agrees;
        }
        let is_older = self.is_older(owner, before.version, seen);
        let is_early = state.is_some_and(|state| state.begun_early.contains(&seen.pod));
        if before.wishes.is_none() || seen.is_of_sidecars || is_older || is_early {
            return Verdict::NotCompared;
        }
        Verdict::Differs
    }

    /// A pod is taken out of service or updated, which may be the first of several writes. `wishes` are those for it, by the plan of
    /// the state before.
    pub(super) fn begins(&mut self, owner: &Owner, step: FirstStep<'_>, wishes: Vec<Wish>, now: Duration) {
        let state = self.owners.entry(owner.clone()).or_default();
        if wishes.is_empty() {
            state.begun.insert(step.pod.to_owned(), step.version);
        }
        state.past.extend(wishes.into_iter().map(|wish| (now, wish)));
    }

    /// Something was done to a pod of an owner that the caches do not have: it is gone, or not there yet.
    pub(super) fn seen_without_owner(&mut self, kind: &str, seen: &Seen) -> Verdict {
        let verdict = match seen.fate {
            // The garbage collector deletes pods whose owner is gone.
            Fate::Deleted => Verdict::ByOthers,
            Fate::Created | Fate::Updated => Verdict::NotCompared,
        };
        self.tally(kind).count(verdict, seen.fate);
        verdict
    }

    /// Do plans want this, or did they shortly before? The plans of other objects than the owner count for this very pod.
    fn is_wanted(&self, owner: &Owner, seen: &Seen) -> bool {
        let namespace = &owner.key.namespace;
        self.owners.iter().any(|(of, state)| {
            let mut wanted = state.wanted();
            if of == owner {
                wanted.any(|wish| wish.is(seen))
            } else {
                let is_near = of.key.namespace == *namespace || of.key.namespace.is_empty();
                is_near
                    && seen.fate != Fate::Created
                    && wanted.any(|wish| wish.pod == seen.pod && wish.is(seen))
            }
        })
    }

    /// Is it older than the specification that the plan was made from?
    fn is_older(&self, owner: &Owner, planned_at: Option<Version>, seen: &Seen) -> bool {
        let Some(done) = seen.version else {
            return true;
        };
        let state = self.owners.get(owner);
        let specified = state.and_then(|state| state.specified);
        // A version that the cache has not told of yet may be another specification.
        let untold = planned_at.filter(|at| state.and_then(|state| state.told) < Some(*at));
        specified.max(untold).is_none_or(|at| done < at)
    }

    /// What was wanted is done, and nothing of the sort has stood for long.
    fn done(&mut self, owner: &Owner, seen: &Seen, now: Duration) {
        let Some(state) = self.owners.get_mut(owner) else {
            return;
        };
        for standing in state.standing.values_mut() {
            if standing.wish.fate == seen.fate {
                standing.since = now;
            }
        }
    }

    /// Another state of an owner has arrived.
    pub(super) fn changed(&mut self, owner: &Owner, now: ObjectState) {
        let state = self.owners.entry(owner.clone()).or_default();
        let is_other =
            now.generation.is_none() || now.generation != state.generation || state.ends == now.stays;
        state.ends = !now.stays;
        state.told = state.told.max(now.version);
        if !is_other {
            return;
        }
        state.generation = now.generation;
        state.specified = now.version;
        let is_late = |done: Option<Version>| now.version.zip(done).is_some_and(|(at, done)| at < done);
        let begun = std::mem::take(&mut state.begun).into_iter();
        state
            .begun_early
            .extend(begun.filter(|(_, done)| is_late(*done)).map(|(pod, _)| pod));
        for suspect in std::mem::take(&mut self.suspects) {
            if suspect.owner == *owner && is_late(suspect.seen.version) {
                let is_collected = suspect.seen.fate == Fate::Deleted && !now.stays;
                let verdict = if is_collected {
                    Verdict::ByOthers
                } else {
                    Verdict::NotCompared
                };
                self.tally(&suspect.kind).count(verdict, suspect.seen.fate);
            } else {
                self.suspects.push(suspect);
            }
        }
    }

    /// An object is gone.
    pub(super) fn gone(&mut self, owner: &Owner) {
        self.owners.remove(owner);
    }

    /// What was found so far.
    pub(super) fn report(&self, lasted: Duration) -> Report {
        let suspects = self.suspects.iter().map(|suspect| Difference {
            about: about(&suspect.kind, &suspect.owner.key),
            text: suspect.text.clone(),
        });
        let standing = self.owners.iter().flat_map(|(owner, state)| {
            let about = about(&state.kind, &owner.key);
            let standing = state.standing.values();
            standing.filter_map(move |standing| standing.difference(&about))
        });
        Report {
            lasted,
            kinds: self.kinds.clone(),
            differences: suspects
                .chain(self.undone.iter().cloned())
                .chain(standing)
                .collect(),
        }
    }
}

/// An object, as it is printed.
fn about(kind: &str, key: &ObjectKey) -> String {
    if kind.is_empty() {
        key.to_string()
    } else {
        format!("{kind} {key}")
    }
}

/// What was done, and what plans would have done in its place.
fn told(seen: &Seen, planned: &[Wish]) -> String {
    let mut text = format!("pod {} {}", seen.pod, seen.fate.told());
    if let Some(revision) = &seen.revision {
        text = format!("{text}, revision {revision}");
    }
    for (container, image) in &seen.images {
        text = format!("{text}, image of {container} {image}");
    }
    text.push_str(": not planned by this build, and who did it is not known");
    let named: Vec<&str> = planned.iter().take(NAMED).map(|wish| &*wish.text).collect();
    let more = match planned.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    if named.is_empty() {
        format!("{text}; it would do nothing to the pods")
    } else {
        format!("{text}; it would {}{more}", named.join("; "))
    }
}
