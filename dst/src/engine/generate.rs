//! What scenarios of all subjects are made of: faults, and the additional steps of brief ones.

use serde::Serialize;

use super::{
    random::{Purpose, Random},
    resource::Resource,
    scenario::{Action, LastingFault, Loss, PodAction, Scenario, Step, SuddenFault, stored},
    subject::Subject,
};

/// Longest pause between two edits, in milliseconds.
pub const PAUSE: u64 = 45_000;
/// Early faults happen within so many milliseconds.
const EARLY: u64 = 90_000;

/// A scenario of one subject, still without steps. One in twenty is played to its end; the others end once they count.
pub fn begin(seed: u64, subject: &str, start: &impl Serialize, random: &mut Random) -> Scenario {
    let brief = !random.percent(5);
    Scenario {
        seed,
        bug: None,
        failing: None,
        brief,
        managers: if random.percent(35) { 2 } else { 1 },
        subjects: [(subject.to_owned(), stored(start))].into(),
        steps: Vec::new(),
    }
}

/// Adds so many faults before `end`, in milliseconds.
pub fn add_faults(scenario: &mut Scenario, random: &mut Random, watched: &[Resource], count: u64, end: u64) {
    for _ in 0..count {
        let at = random.between(0, end);
        let what = fault(random, watched);
        scenario.steps.push(Step { at, what });
    }
}

/// How many faults a scenario has whose users take their time.
pub fn faults(scenario: &Scenario, random: &mut Random) -> u64 {
    if scenario.brief {
        random.between(15, 26)
    } else {
        random.between(8, 14)
    }
}

/// Adds managers that end after one of their next few writes, so between two that belong together.
pub fn add_crashes(scenario: &mut Scenario, random: &mut Random, end: u64) {
    for _ in 0..random.between(1, 4) {
        let at = random.between(0, end);
        let what = Action::Once(SuddenFault::CrashAfterWrites(random.between(1, 4) as u32));
        scenario.steps.push(Step { at, what });
    }
}

/// Somebody deletes or evicts one of the pods up to this place.
pub fn removal(random: &mut Random, last: u64) -> Action {
    let pod = random.between(0, last) as u8;
    Action::Pod(if random.percent(50) {
        PodAction::Delete(pod)
    } else {
        PodAction::Evict(pod)
    })
}

/// A fault. `watched` are the resources whose watches it may hit; one that is named twice is hit twice as often.
pub fn fault(random: &mut Random, watched: &[Resource]) -> Action {
    let pod = random.between(0, 9) as u8;
    let lasts = random.between(500, 20_000);
    let percent = random.between(10, 60) as u8;
    let watched = random.pick(watched).map_or("pods", |one| one.plural).to_owned();
    let loss = if random.percent(80) {
        Loss::Broken
    } else {
        Loss::Silent
    };
    match random.between(0, 99) {
        0..15 => Action::During(lasts, LastingFault::Stale(watched, random.between(100, 8_000))),
        15..26 => Action::During(lasts, LastingFault::LostReplies(percent, loss)),
        26..34 => Action::During(lasts, LastingFault::LostRequests(percent, loss)),
        34..44 => {
            let code = *random.pick(&[409, 429, 500, 503]).unwrap_or(&500);
            Action::During(lasts, LastingFault::Refused(percent, code))
        }
        44..50 => Action::During(lasts, LastingFault::Slow(random.between(100, 3_000))),
        50..53 => Action::During(random.between(26_000, 50_000), LastingFault::Isolated),
        53..57 => Action::During(lasts, LastingFault::WebhookDown),
        57..62 => Action::Once(SuddenFault::Crash),
        62..69 => Action::Once(SuddenFault::CrashAfterWrites(random.between(1, 25) as u32)),
        69..72 => Action::Once(SuddenFault::Restart),
        72..77 => Action::Once(SuddenFault::CutWatches(watched)),
        77..81 => Action::Once(SuddenFault::Compact),
        81..83 => Action::NodeLost(random.between(5_000, 30_000)),
        83..86 => Action::Pod(PodAction::Delete(pod)),
        86..88 => Action::Pod(PodAction::Evict(pod)),
        88..91 => Action::Pod(PodAction::Crash(pod)),
        91..94 => Action::Pod(PodAction::Unready(pod, lasts)),
        94..96 => Action::Pod(PodAction::Fail(pod)),
        96..98 => Action::Pod(PodAction::Annotate(pod)),
        _ => Action::Pod(PodAction::Relabel(pod)),
    }
}

/// Puts the steps in order, and has a brief scenario count ([`add_steps`]).
pub fn finish(
    scenario: &mut Scenario,
    watched: &[Resource],
    edit: impl FnMut(&mut Random) -> Action,
    resumes: impl Fn(&Action) -> bool,
) {
    scenario.steps.sort_by_key(|step| step.at);
    if scenario.brief {
        add_steps(scenario, watched, edit, resumes);
    }
}

/// How scenarios are drawn in which users edit one subject.
pub struct Plot {
    /// The numbers for what it starts with, its edits and the faults.
    pub purpose: Purpose,
    /// Resources whose watches faults hit; one that is named twice is hit twice as often.
    pub watched: &'static [Resource],
    /// Do users take their time? Then more faults happen.
    pub is_slow: bool,
    /// Do managers end between writes that belong together?
    pub crashes: bool,
}

impl Plot {
    /// The scenario of a seed: what it starts with, what users do and until when, and one more edit.
    pub fn draw<S: Serialize, E: Serialize>(
        &self,
        subject: &Subject,
        seed: u64,
        start: impl FnOnce(&mut Random) -> S,
        edits: impl FnOnce(&mut Scenario, &mut Random, &S) -> u64,
        edit: impl Fn(&mut Random, &S) -> E,
    ) -> Scenario {
        let mut random = Random::new(seed, self.purpose);
        let random = &mut random;
        let start = start(random);
        let mut scenario = begin(seed, subject.name, &start, random);
        let end = edits(&mut scenario, random, &start);
        let count = if self.is_slow {
            faults(&scenario, random)
        } else {
            random.between(10, 20)
        };
        add_faults(&mut scenario, random, self.watched, count, end);
        if self.crashes {
            add_crashes(&mut scenario, random, end);
        }
        let draw = |random: &mut Random| Action::edit(subject.name, &edit(random, &start));
        finish(&mut scenario, self.watched, draw, |what| subject.releases(what));
        scenario
    }
}

/// A pause between two edits: short with this probability in percent.
pub fn pause(random: &mut Random, short: u8) -> u64 {
    if random.percent(short) {
        random.between(50, 6_000)
    } else {
        random.between(6_000, PAUSE)
    }
}

/// Adds to a brief scenario what makes it count: early faults, and after its last step edits with pauses, faults among
/// them, and the end of what edits may have paused. A scenario ends before them where it counts already.
pub fn add_steps(
    scenario: &mut Scenario,
    watched: &[Resource],
    mut edit: impl FnMut(&mut Random) -> Action,
    resumes: impl Fn(&Action) -> bool,
) {
    let mut random = Random::new(scenario.seed, Purpose::ADDITIONAL_STEPS);
    let random = &mut random;
    let begin = scenario.steps.iter().map(|step| step.at).max().unwrap_or(0);
    let mut at = begin;
    let mut steps = Vec::new();
    for _ in 0..random.between(40, 56) {
        at += random.between(4_000, PAUSE);
        let what = edit(random);
        steps.push(Step { at, what });
    }
    for _ in 0..random.between(8, 16) {
        let at = random.between(begin, at);
        let what = fault(random, watched);
        steps.push(Step { at, what });
    }
    for _ in 0..random.between(4, 8) {
        let at = random.between(0, EARLY);
        let what = fault(random, watched);
        steps.push(Step { at, what });
    }
    let all = scenario.steps.iter().map(|step| &step.what);
    let ends = all.filter(|what| resumes(what)).cloned();
    steps.extend(ends.map(|what| Step { at: at + 1, what }));
    scenario.steps.append(&mut steps);
    scenario.steps.sort_by_key(|step| step.at);
}

/// Brings steps closer together: users change their minds in the middle of rollouts, and faults hit more of them.
pub fn condense(steps: &mut [Step]) {
    for step in steps {
        step.at = step.at * 2 / 3;
    }
}
