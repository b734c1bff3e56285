//! What makes a brief history count: faults early, of more kinds, so that it need not wait for them; and more of the
//! same after its last act, for those that have not shown enough by then. A history ends when it has ([`crate::enough`]).

use super::{
    Act, Edit, History, What, generate,
    sidecars::{self, Above},
};
use crate::random::{Purpose, Random};

/// Faults come early within so many milliseconds.
const EARLY: u64 = 90_000;

/// Adds early faults, and after the last act edits with pauses, faults among them, and the end of what edits may have
/// paused.
pub(super) fn add(history: &mut History) {
    if !history.brief {
        return;
    }
    let mut random = Random::new(history.seed, Purpose::Longer);
    let random = &mut random;
    let begin = history.acts.iter().map(|act| act.at).max().unwrap_or(0);
    let mut at = begin;
    let mut image = last_image(history);
    let mut acts = Vec::new();
    for _ in 0..random.between(8, 14) {
        at += random.between(4_000, generate::PAUSE);
        let what = match &history.sidecars {
            Some(of) if of.above == Above::Deployment || random.percent(50) => {
                What::Sidecars(sidecars::edit(random, &of.sets, &mut image))
            }
            _ => What::Edit(generate::edit(random, &history.set, &mut image)),
        };
        acts.push(Act { at, what });
    }
    for _ in 0..random.between(3, 8) {
        let at = random.between(begin, at);
        let what = generate::fault(random);
        acts.push(Act { at, what });
    }
    for _ in 0..random.between(4, 8) {
        let at = random.between(0, EARLY);
        let what = generate::fault(random);
        acts.push(Act { at, what });
    }
    let goes_on = |what: &What| {
        matches!(
            what,
            What::Edit(Edit::Paused(false)) | What::Sidecars(sidecars::Edit::Paused(_, false))
        )
    };
    let pauses = history
        .acts
        .iter()
        .map(|act| &act.what)
        .filter(|what| goes_on(what));
    acts.extend(pauses.cloned().map(|what| Act { at: at + 1, what }));
    history.acts.append(&mut acts);
    history.acts.sort_by_key(|act| act.at);
    if history.sidecars.is_none() {
        crowd(&mut history.acts);
    }
}

/// Brings acts closer together: users change their minds in the middle of rollouts, and faults meet more of what is going on.
/// (SidecarSets write so little that they need the time.)
fn crowd(acts: &mut [Act]) {
    for act in acts {
        act.at = act.at * 2 / 3;
    }
}

/// The newest image that an act names; later ones are new.
fn last_image(history: &History) -> u32 {
    let images = history.acts.iter().filter_map(|act| match &act.what {
        What::Edit(Edit::Image(image))
        | What::Sidecars(sidecars::Edit::Image(_, image) | sidecars::Edit::HotImage(_, image)) => {
            Some(*image)
        }
        _ => None,
    });
    images.max().unwrap_or(1)
}
