//! What plans of an object want, and for how long nothing like it has been done.

use std::{collections::BTreeMap, time::Duration};

use super::{
    acts::{Fate, Wish},
    claims::{GRACE, Identity, identity},
    report::Difference,
};

/// What the newest plan wants.
#[derive(Debug, Default)]
pub(super) struct Standing {
    wanted: BTreeMap<Identity, Wanted>,
}

#[derive(Debug)]
struct Wanted {
    wish: Wish,
    /// Since when, without anything of the sort being done.
    since: Duration,
    /// When the last plan with it was made.
    last: Duration,
}

impl Wanted {
    fn difference(&self, about: &str) -> Option<Difference> {
        let lasted = self.last.saturating_sub(self.since);
        (lasted >= GRACE).then(|| Difference {
            about: about.to_owned(),
            text: format!(
                "this build would {}; nothing like it was done in {} s",
                self.wish.text,
                lasted.as_secs()
            ),
        })
    }
}

impl Standing {
    /// A plan was made. Returns what was wanted for too long and is not wanted any more.
    pub(super) fn planned<'w>(
        &mut self,
        about: &str,
        wishes: impl Iterator<Item = &'w Wish>,
        now: Duration,
    ) -> Vec<Difference> {
        let mut before = std::mem::take(&mut self.wanted);
        for wish in wishes {
            let identity = identity(wish);
            let since = before.remove(&identity).map_or(now, |wanted| wanted.since);
            self.wanted.entry(identity).or_insert_with(|| Wanted {
                wish: wish.clone(),
                since,
                last: now,
            });
        }
        let ended = before.into_values();
        ended.filter_map(|wanted| wanted.difference(about)).collect()
    }

    /// Something of this sort was done.
    pub(super) fn done(&mut self, fate: Fate, now: Duration) {
        for wanted in self.wanted.values_mut().filter(|wanted| wanted.wish.fate == fate) {
            wanted.since = now;
        }
    }

    /// What was done until now is not known.
    pub(super) fn begin_again(&mut self, now: Duration) {
        for wanted in self.wanted.values_mut() {
            wanted.since = now;
        }
    }

    /// Nothing is wanted any more in this namespace. Returns what was wanted there for too long.
    pub(super) fn leave(&mut self, namespace: &str, about: &str) -> Vec<Difference> {
        let wanted = std::mem::take(&mut self.wanted).into_iter();
        let (left, wanted): (BTreeMap<_, _>, _) =
            wanted.partition(|(_, wanted)| wanted.wish.namespace == namespace);
        self.wanted = wanted;
        let left = left.values();
        left.filter_map(|wanted| wanted.difference(about)).collect()
    }

    /// What has been wanted for too long.
    pub(super) fn differences(&self, about: &str) -> Vec<Difference> {
        let wanted = self.wanted.values();
        wanted.filter_map(|wanted| wanted.difference(about)).collect()
    }
}
