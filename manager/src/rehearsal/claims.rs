//! What plans of an object have wanted and what is not used up by what was done.
//!
//! # What it promises
//! - Each wish of a plan agrees with at most one write. A plan with three wishes agrees with up to three.
//! - A newer plan that wants the same renews the wish, because it was made from a state that has what was done. So
//!   what was wanted by two plans does not count twice.
//! - What a newer plan does not want any more still counts for [`GRACE`]: a manager may act on a state that is older.

use std::{collections::BTreeMap, time::Duration};

use super::acts::{Fate, Seen, Wish};

/// For so long plans may want something that is not done. What a plan no longer wants is remembered for as long.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// Most wishes of earlier plans that are kept of an object: the newest ones.
pub(super) const MOST: usize = 1_000;

/// What makes two wishes of one owner the same one.
pub(super) type Identity = (Fate, String, String, Option<String>);

pub(super) fn identity(wish: &Wish) -> Identity {
    let pod = if wish.fate == Fate::Created && !wish.is_named {
        String::new()
    } else {
        wish.pod.clone()
    };
    (wish.fate, wish.namespace.clone(), pod, wish.revision.clone())
}

/// Which pods a wish counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pods {
    /// Its own, and those that are equal.
    Alike,
    /// Its own.
    This,
}

/// Wishes that are not used up.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The newest ones are last.
    claims: Vec<Claim>,
}

#[derive(Debug)]
struct Claim {
    wish: Wish,
    /// When plans ended to want it; `None` for those of the newest plan.
    ended: Option<Duration>,
}

impl Claims {
    /// A plan was made.
    pub(super) fn planned(&mut self, wishes: &[Wish], now: Duration) {
        let mut renewed: BTreeMap<Identity, usize> = BTreeMap::new();
        for wish in wishes {
            *renewed.entry(identity(wish)).or_default() += 1;
        }
        self.forget(now);
        let mut is_renewed = |claim: &Claim| match renewed.get_mut(&identity(&claim.wish)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        };
        let newest_first = std::mem::take(&mut self.claims).into_iter().rev();
        let kept = newest_first
            .filter(|claim| !is_renewed(claim))
            .map(|claim| Claim {
                ended: claim.ended.or(Some(now)),
                ..claim
            });
        self.claims = kept.take(MOST).collect();
        self.claims.reverse();
        let newest = wishes.iter().cloned();
        self.claims.extend(newest.map(|wish| Claim { wish, ended: None }));
    }

    /// A manager may have decided this, and goes on later.
    pub(super) fn decided(&mut self, wishes: Vec<Wish>, now: Duration) {
        for wish in wishes {
            let identity_of_wish = identity(&wish);
            let mut claims = self.claims.iter_mut();
            match claims.find(|claim| identity(&claim.wish) == identity_of_wish) {
                Some(claim) => claim.ended = claim.ended.map(|_| now),
                None => self.claims.push(Claim {
                    wish,
                    ended: Some(now),
                }),
            }
        }
    }

    /// Uses up the wish that this was; false if there is none. One for this very pod comes first.
    pub(super) fn use_up(&mut self, seen: &Seen, of: Pods, now: Duration) -> bool {
        self.forget(now);
        let is_it = |claim: &Claim| claim.wish.is(seen) && (of == Pods::Alike || claim.wish.is_of(seen));
        let claims = self.claims.iter_mut().enumerate();
        let found = claims
            .filter(|(_, claim)| is_it(claim))
            .min_by_key(|(_, claim)| (!claim.wish.is_of(seen), claim.ended.is_some()));
        let Some((index, claim)) = found else {
            return false;
        };
        if let Some(rest) = claim.wish.rest(seen) {
            claim.wish = rest;
        } else {
            self.claims.remove(index);
        }
        true
    }

    /// Is there a wish that this is?
    pub(super) fn have(&self, seen: &Seen, now: Duration) -> bool {
        let mut claims = self.claims.iter().filter(|claim| !claim.is_over(now));
        claims.any(|claim| claim.wish.is(seen))
    }

    fn forget(&mut self, now: Duration) {
        self.claims.retain(|claim| !claim.is_over(now));
    }
}

impl Claim {
    fn is_over(&self, now: Duration) -> bool {
        self.ended.is_some_and(|ended| now.saturating_sub(ended) > GRACE)
    }
}
