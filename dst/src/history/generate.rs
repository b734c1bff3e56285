//! A history for every seed.

use super::{
    Act, Claims, Edit, History, Loss, PodAct, Policy, Start, Strike, Trouble, Watched, What, features,
    longer, sidecars,
};
use crate::random::{Purpose, Random};

/// What users do begins after this many milliseconds.
const FIRST: u64 = 1_000;
/// Longest pause between two edits.
pub(super) const PAUSE: u64 = 45_000;

/// The history of a seed.
pub fn generate(seed: u64) -> History {
    let mut random = Random::new(seed, Purpose::History);
    let random = &mut random;
    let replicas = random.between(5, 10) as u32;
    let surge = if random.percent(25) { "1" } else { "0" };
    let policy = policy(random, surge);
    let set = Start {
        max_unavailable: pick(random, &["1", "2", "20%", "40%"]),
        max_surge: surge.to_owned(),
        partition: pick(random, &["0", "0", "0", "2", "40%"]),
        min_ready_seconds: if random.percent(20) { 3 } else { 0 },
        scale_max_unavailable: if random.percent(15) {
            "3".into()
        } else {
            String::new()
        },
        grace: grace(seed, policy),
        claims: match random.between(0, 9) {
            0..3 => Some(Claims::Reused),
            3..6 => Some(Claims::Gone),
            _ => None,
        },
        ..Start::plain(replicas, policy)
    };
    let hook = policy != Policy::ReCreate && random.percent(25);
    let set = Start { hook, ..set };
    let mut acts = Vec::new();
    let mut at = FIRST;
    // One in twenty goes on to its end; what others have beyond what makes them count is left out.
    let brief = !random.percent(5);
    let edits = if brief {
        random.between(11, 14)
    } else {
        random.between(6, 8)
    };
    let mut image = 1;
    for number in 0..edits {
        at += if random.percent(30) {
            random.between(50, 6_000)
        } else {
            random.between(6_000, PAUSE)
        };
        let edit = if number == 0 || number + 1 == edits {
            image += 1;
            Edit::Image(image)
        } else {
            edit(random, &set, &mut image)
        };
        acts.push(Act {
            at,
            what: What::Edit(edit),
        });
    }
    // A rollout that stands still at the end would show little.
    acts.push(Act {
        at: at + 1,
        what: What::Edit(Edit::Paused(false)),
    });
    let end = at + random.between(5_000, 30_000);
    let faults = if brief {
        random.between(15, 26)
    } else {
        random.between(8, 14)
    };
    for _ in 0..faults {
        let at = random.between(0, end);
        acts.push(Act {
            at,
            what: fault(random),
        });
    }
    acts.sort_by_key(|act| act.at);
    let mut history = History {
        seed,
        bug: None,
        brief,
        managers: if random.percent(35) { 2 } else { 1 },
        set,
        sidecars: None,
        acts,
    };
    sidecars::add(&mut history);
    features::add(&mut history);
    longer::add(&mut history);
    history
}

fn pick(random: &mut Random, of: &[&str]) -> String {
    random.pick(of).copied().unwrap_or_default().to_owned()
}

/// Drawn by itself, so that it changes nothing else of the history.
fn grace(seed: u64, policy: Policy) -> u32 {
    let mut random = Random::new(seed, Purpose::Grace);
    if policy == Policy::ReCreate || !random.percent(25) {
        return 0;
    }
    random.between(1, 6) as u32
}

/// In-place policies allow no surge when they allow nothing else.
fn policy(random: &mut Random, surge: &str) -> Policy {
    let of: &[Policy] = match surge {
        "0" => &[
            Policy::InPlaceIfPossible,
            Policy::InPlaceIfPossible,
            Policy::ReCreate,
            Policy::InPlaceOnly,
        ],
        _ => &[Policy::InPlaceIfPossible, Policy::ReCreate],
    };
    random.pick(of).copied().unwrap_or(Policy::ReCreate)
}

pub(super) fn edit(random: &mut Random, set: &Start, image: &mut u32) -> Edit {
    if set.claims.is_some() && random.percent(15) {
        return if random.percent(60) {
            Edit::ClaimSize(random.between(2, 9) as u32)
        } else {
            Edit::Reuse(random.percent(50))
        };
    }
    match random.between(0, 99) {
        0..34 => {
            *image += 1;
            Edit::Image(*image)
        }
        34..44 => Edit::Image(random.between(1, u64::from(*image)) as u32),
        44..50 if set.policy != Policy::InPlaceOnly => Edit::Env(random.between(1, 9) as u32),
        44..56 => Edit::Annotation(random.between(1, 9) as u32),
        56..67 => Edit::Scale(random.between(5, 10) as u32),
        67..75 => Edit::Partition(pick(random, &["0", "1", "3", "50%"])),
        75..80 => Edit::MaxUnavailable(pick(random, &["1", "2", "3", "30%"])),
        80..83 => Edit::Paused(random.percent(50)),
        83..88 => Edit::PodsToDelete(vec![random.between(0, 9) as u8], random.percent(40)),
        88..94 => Edit::MarkPod(random.between(0, 9) as u8),
        94..97 if set.policy != Policy::InPlaceOnly => Edit::MaxSurge(pick(random, &["0", "1", "2"])),
        _ if set.policy != Policy::InPlaceOnly => Edit::Policy(policy(random, "1")),
        _ => Edit::Scale(random.between(5, 10) as u32),
    }
}

pub(super) fn fault(random: &mut Random) -> What {
    let pod = random.between(0, 9) as u8;
    let lasts = random.between(500, 20_000);
    let percent = random.between(10, 60) as u8;
    let watched = *random
        .pick(&[
            Watched::Pods,
            Watched::Pods,
            Watched::Sets,
            Watched::Revisions,
            Watched::Claims,
        ])
        .unwrap_or(&Watched::Pods);
    let loss = if random.percent(80) {
        Loss::Broken
    } else {
        Loss::Silent
    };
    match random.between(0, 99) {
        0..15 => What::During(lasts, Trouble::Stale(watched, random.between(100, 8_000))),
        15..26 => What::During(lasts, Trouble::LostReplies(percent, loss)),
        26..34 => What::During(lasts, Trouble::LostRequests(percent, loss)),
        34..44 => What::During(
            lasts,
            Trouble::Refused(percent, *random.pick(&[409, 429, 500, 503]).unwrap_or(&500)),
        ),
        44..50 => What::During(lasts, Trouble::Slow(random.between(100, 3_000))),
        50..53 => What::During(random.between(26_000, 50_000), Trouble::Isolated),
        53..57 => What::During(lasts, Trouble::WebhookDown),
        57..62 => What::Strike(Strike::Crash),
        62..69 => What::Strike(Strike::CrashAfterWrites(random.between(1, 25) as u32)),
        69..72 => What::Strike(Strike::Restart),
        72..77 => What::Strike(Strike::CutWatches(watched)),
        77..81 => What::Strike(Strike::Compact),
        81..83 => What::NodeLost(random.between(5_000, 30_000)),
        83..86 => What::Pod(PodAct::Delete(pod)),
        86..88 => What::Pod(PodAct::Evict(pod)),
        88..91 => What::Pod(PodAct::Crash(pod)),
        91..94 => What::Pod(PodAct::Unready(pod, lasts)),
        94..96 => What::Pod(PodAct::Fail(pod)),
        96..98 => What::Pod(PodAct::Annotate(pod)),
        _ => What::Pod(PodAct::Relabel(pod)),
    }
}
