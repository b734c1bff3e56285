//! Compares what plans would do to pods with what was done to them.
//!
//! # What it promises
//! - What was done *agrees* if the plan of the state before it has it, or a plan that was made shortly before and
//!   whose wish is not used up ([`claims`](super::claims)). Names of new pods do not count, unless they are
//!   ordinals, nor which of equal pods comes first.
//! - It *differs* only if that plan was made from the specification that the manager had. If the cache has a
//!   specification of the owner that is newer than the write, or gets an older one after it, the write is *not
//!   compared*. So a manager that is faster than the rehearsal, or caches that follow at different speeds, are no
//!   difference.
//! - What plans have wanted for longer than [`GRACE`], without anything of the sort being done, differs
//!   ([`standing`](super::standing)). An interruption of the watch does not count.
//! - What becomes of pods in a namespace that is being deleted is no difference.
//!
//! Time is an argument.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kruise_runtime::worker::ObjectState;
use kube_cache::{ObjectKey, Version};

use super::{
    acts::{Fate, Seen, Verdict, Wish},
    claims::{Claims, GRACE, Pods},
    differences::{Differences, Suspect},
    owner::{Owner, about},
    report::{Report, Tally},
    standing::Standing,
};

/// Most writes of a plan that are named in a difference.
const NAMED: usize = 3;

/// Most pods of an owner whose first steps are kept that no plan had.
const BEGUN: usize = 1_000;

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

/// What is known of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespace {
    /// It is there, and not being deleted.
    Stays,
    /// It is being deleted.
    Ends,
    /// It is gone.
    Gone,
}

#[derive(Debug, Default)]
struct State {
    kind: String,
    standing: Standing,
    claims: Claims,
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

/// Compares.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    owners: BTreeMap<Owner, State>,
    kinds: BTreeMap<String, Tally>,
    objects: BTreeSet<(String, ObjectKey)>,
    differences: Differences,
    /// Namespaces that are being deleted, and since when they are gone.
    ending: BTreeMap<String, Option<Duration>>,
}

impl Matcher {
    fn tally(&mut self, kind: &str) -> &mut Tally {
        self.kinds.entry(kind.to_owned()).or_default()
    }

    /// A plan was made.
    pub(super) fn planned(&mut self, owner: &Owner, kind: &str, wishes: &[Wish], now: Duration) {
        if !kind.is_empty() && self.objects.insert((kind.to_owned(), owner.key.clone())) {
            self.tally(kind).objects += 1;
        }
        let state = self.owners.entry(owner.clone()).or_default();
        kind.clone_into(&mut state.kind);
        // Where a namespace is being deleted, no pod can be created.
        let standing = wishes
            .iter()
            .filter(|wish| !self.ending.contains_key(&wish.namespace));
        let undone = state.standing.planned(&about(kind, &owner.key), standing, now);
        self.differences.undone(undone);
        state.claims.planned(wishes, now);
    }

    /// Something was done to a pod of this owner.
    pub(super) fn seen(&mut self, owner: &Owner, before: &Before<'_>, seen: Seen, now: Duration) -> Verdict {
        let verdict = self.verdict(owner, before, &seen, now);
        if let Some(state) = self.owners.get_mut(owner) {
            state.begun.remove(&seen.pod);
            state.begun_early.remove(&seen.pod);
        }
        self.tally(before.kind).count(verdict, seen.fate);
        if verdict == Verdict::Differs {
            self.differences.suspect(Suspect {
                owner: owner.clone(),
                kind: before.kind.to_owned(),
                text: told(&seen, before.wishes.unwrap_or_default()),
                seen,
            });
        }
        verdict
    }

    fn verdict(&mut self, owner: &Owner, before: &Before<'_>, seen: &Seen, now: Duration) -> Verdict {
        let is_ending = self.ending.contains_key(&seen.namespace);
        let mut state = self.owners.get_mut(owner);
        let ends = is_ending || state.as_ref().is_some_and(|state| state.ends);
        if seen.fate == Fate::Deleted && (ends || seen.is_disruption) {
            if let Some(state) = state {
                state.claims.use_up(seen, Pods::This, now);
            }
            return Verdict::ByOthers;
        }
        let planned = before.wishes.unwrap_or_default();
        let is_planned = planned.iter().any(|wish| wish.is(seen));
        let is_claimed = (state.as_mut()).is_some_and(|state| state.claims.use_up(seen, Pods::Alike, now));
        if is_planned || is_claimed {
            if let Some(state) = state {
                state.standing.done(seen.fate, now);
            }
            return Verdict::Agrees;
        }
        if self.use_up_of_others(Some(owner), seen, now).is_some() {
            return Verdict::Agrees;
        }
        let is_older = self.is_older(owner, before.version, seen);
        let state = self.owners.get(owner);
        let is_early = state.is_some_and(|state| state.begun_early.contains(&seen.pod));
        if before.wishes.is_none() || seen.is_of_sidecars || is_older || is_early || is_ending {
            return Verdict::NotCompared;
        }
        Verdict::Differs
    }

    /// A pod is taken out of service or updated, which may be the first of several writes. `wishes` are those for
    /// it, by the plan of the state before.
    pub(super) fn begins(&mut self, owner: &Owner, step: FirstStep<'_>, wishes: Vec<Wish>, now: Duration) {
        let state = self.owners.entry(owner.clone()).or_default();
        if wishes.is_empty() {
            state.begun.insert(step.pod.to_owned(), step.version);
            if state.begun.len() > BEGUN {
                state.begun.pop_first();
            }
        }
        state.claims.decided(wishes, now);
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

    /// Something was done to a pod that no object with a controller of ours owns. It agrees if plans want it for
    /// this very pod. What else becomes of such a pod is decided by others, unless it was updated in place: then it
    /// is of this kind.
    pub(super) fn seen_elsewhere(&mut self, kind: &str, seen: &Seen, now: Duration) -> Option<Verdict> {
        if let Some(kind) = self.use_up_of_others(None, seen, now) {
            self.tally(&kind).count(Verdict::Agrees, seen.fate);
            return Some(Verdict::Agrees);
        }
        (seen.fate == Fate::Updated).then(|| {
            self.tally(kind).count(Verdict::NotCompared, seen.fate);
            Verdict::NotCompared
        })
    }

    /// Do plans of this object want this?
    pub(super) fn is_wanted(&self, owner: &Owner, seen: &Seen, now: Duration) -> bool {
        let state = self.owners.get(owner);
        state.is_some_and(|state| state.claims.have(seen, now))
    }

    /// Uses up what plans of other objects want for this very pod. Returns the kind of the object.
    fn use_up_of_others(&mut self, owner: Option<&Owner>, seen: &Seen, now: Duration) -> Option<String> {
        if seen.fate == Fate::Created {
            return None;
        }
        let is_near = |of: &Owner| of.key.namespace.is_empty() || *of.key.namespace == *seen.namespace;
        let others = self.owners.iter_mut();
        let mut others = others.filter(|(of, _)| Some(*of) != owner && is_near(of));
        let used_up =
            others.find_map(|(_, state)| state.claims.use_up(seen, Pods::This, now).then_some(state));
        let state = used_up?;
        state.standing.done(seen.fate, now);
        Some(state.kind.clone())
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
        let is_settled = |suspect: &Suspect| suspect.owner == *owner && is_late(suspect.seen.version);
        self.settle(is_settled, !now.stays);
    }

    /// Counts those that turn out to be no differences: deletions as those of others where their reason ends, too.
    fn settle(&mut self, is_none: impl Fn(&Suspect) -> bool, ends: bool) {
        for suspect in self.differences.settle(is_none) {
            let is_collected = suspect.seen.fate == Fate::Deleted && ends;
            let verdict = if is_collected {
                Verdict::ByOthers
            } else {
                Verdict::NotCompared
            };
            self.tally(&suspect.kind).count(verdict, suspect.seen.fate);
        }
    }

    /// Another state of a namespace has arrived. Whatever becomes of pods while it is being deleted is no difference.
    pub(super) fn namespace(
        &mut self,
        name: &str,
        state: Namespace,
        version: Option<Version>,
        now: Duration,
    ) {
        // Events of its pods may arrive after that of its end.
        self.ending
            .retain(|_, gone| gone.is_none_or(|at| now.saturating_sub(at) <= GRACE));
        if state == Namespace::Stays {
            self.ending.remove(name);
            return;
        }
        let gone = (state == Namespace::Gone).then_some(now);
        if self.ending.insert(name.to_owned(), gone).is_some() {
            return;
        }
        for (owner, of_owner) in &mut self.owners {
            let about = about(&of_owner.kind, &owner.key);
            let undone = of_owner.standing.leave(name, &about);
            self.differences.undone(undone);
        }
        let is_late = |done: Option<Version>| version.zip(done).is_none_or(|(at, done)| at < done);
        let is_in = |suspect: &Suspect| suspect.seen.namespace == name && is_late(suspect.seen.version);
        self.settle(is_in, true);
    }

    /// What became of pods until now is not known: the watch has ended, and a list shows what there is.
    pub(super) fn interrupted(&mut self, now: Duration) {
        for state in self.owners.values_mut() {
            state.standing.begin_again(now);
        }
    }

    /// An object is gone.
    pub(super) fn gone(&mut self, owner: &Owner) {
        self.owners.remove(owner);
    }

    /// What was found so far.
    pub(super) fn report(&self, lasted: Duration) -> Report {
        let standing = self
            .owners
            .iter()
            .flat_map(|(owner, state)| state.standing.differences(&about(&state.kind, &owner.key)));
        let (differences, more) = self.differences.with(standing);
        Report {
            lasted,
            kinds: self.kinds.clone(),
            differences,
            more,
        }
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
