//! New pods, tried before the first one is deleted for them.
//!
//! A rollout by recreation deletes pods first. If the server then refuses their successors, for a policy, a webhook
//! or a name that does not exist, `maxUnavailable` pods are gone and nothing brings them back. So the server is
//! asked first, by the creation of a pod of the new revision as a dry run ([`Need::Trial`](crate::Need::Trial)). If
//! it refuses that, a pod of the old revision is tried as a control: where that is refused, too, the refusal is not
//! about the revision. A full quota refuses both, and a deletion makes room.
//!
//! A plan asks, the runtime carries it out, and the answer stays in [`Memory`](crate::Memory) for the revision.
//! Without a runtime that makes trials nothing is asked, and no rollout is held.

use std::{cell::RefCell, time::Duration};

use jiff::{SignedDuration, Timestamp};

/// How long an answer that lets a rollout go on is good for, where no pod of its revision comes of it.
const FRESH: SignedDuration = SignedDuration::from_mins(1);
/// After the first refusal the server is asked again after this long; after each further one after twice the time.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// The longest pause.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

/// A pod that the server is asked about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTrial {
    /// Its namespace.
    pub namespace: String,
    /// The revision that is rolled out.
    pub revision: String,
    /// Whether it is of that revision, or the control.
    pub role: Role,
    /// The pod as JSON. Its name is generated.
    pub pod: String,
}

/// What a pod is tried for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It is of the revision that is rolled out.
    Update,
    /// It is of the revision of the pods that are to be deleted.
    Control,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The server would create the pod.
    Accepted,
    /// The server refuses it.
    Refused {
        /// HTTP status: one from 400 to 499, and not 429.
        code: u16,
        /// The server's words, without the generated name.
        message: String,
    },
    /// The server is too busy or too slow, or cannot be reached.
    Unclear,
}

/// The trials of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trials {
    /// Are there any? Not for somebody who only wants to know what a plan is.
    pub are_made: bool,
    /// The last one.
    last: Option<Trial>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Trial {
    revision: String,
    at: Timestamp,
    answer: Answer,
    control: Option<Answer>,
    /// Refusals one after the other.
    refusals: u32,
}

impl Trials {
    /// Of a runtime that makes them, none so far.
    pub const fn made() -> Self {
        Self {
            are_made: true,
            last: None,
        }
    }

    /// As a condition reports it: a revision whose pods are refused. For whoever explains a plan and makes no trials.
    pub fn reported(message: &str) -> Option<Self> {
        let (revision, message) = message.strip_prefix(HELD)?.split_once(": ")?;
        let last = Trial {
            revision: revision.to_owned(),
            // It stays so until it is tried again, which it is not.
            at: Timestamp::MAX,
            answer: Answer::Refused {
                code: 0,
                message: message.to_owned(),
            },
            control: Some(Answer::Accepted),
            refusals: 1,
        };
        Some(Self {
            are_made: false,
            last: Some(last),
        })
    }

    /// Notes what came of a trial.
    pub fn note(&mut self, trial: &PodTrial, answer: Answer, now: Timestamp) {
        let last = self.last.take().filter(|last| last.revision == trial.revision);
        self.last = match (trial.role, last) {
            (Role::Control, Some(last)) => Some(Trial {
                control: Some(answer),
                ..last
            }),
            (Role::Control, None) => None,
            (Role::Update, last) => {
                let before = last.map_or(0, |last| last.refusals);
                let is_refused = matches!(answer, Answer::Refused { .. });
                Some(Trial {
                    revision: trial.revision.clone(),
                    at: now,
                    answer,
                    control: None,
                    refusals: if is_refused { before.saturating_add(1) } else { 0 },
                })
            }
        };
    }

    fn of(&self, revision: &str) -> Option<&Trial> {
        self.last.as_ref().filter(|last| last.revision == revision)
    }

    /// May pods be deleted for this revision?
    fn verdict(&self, revision: &str, now: Timestamp) -> Verdict {
        let Some(trial) = self.of(revision) else {
            return Verdict::Ask(Role::Update);
        };
        let Answer::Refused { code, message } = &trial.answer else {
            let is_fresh = now.duration_since(trial.at) <= FRESH;
            return if is_fresh {
                Verdict::Go
            } else {
                Verdict::Ask(Role::Update)
            };
        };
        if trial.again_in(now).is_zero() {
            return Verdict::Ask(Role::Update);
        }
        match &trial.control {
            None => Verdict::Ask(Role::Control),
            // An invalid pod stays invalid, whatever keeps the server from creating a valid one now.
            Some(Answer::Refused { code: control, .. }) if *code != 422 || *control == 422 => Verdict::Go,
            Some(_) => Verdict::Held(message.clone()),
        }
    }
}

impl Trial {
    fn pause(&self) -> SignedDuration {
        let doublings = self.refusals.saturating_sub(1).min(10);
        (PAUSE * (1 << doublings)).min(LONGEST)
    }

    fn again_in(&self, now: Timestamp) -> Duration {
        let left = self.pause() - now.duration_since(self.at);
        left.max(SignedDuration::ZERO).unsigned_abs()
    }
}

/// May pods be deleted for a revision?
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Go,
    Ask(Role),
    Held(String),
}

/// What a plan makes of the trials: it notes which one is wanted.
#[derive(Debug)]
pub struct Trying<'m> {
    /// `None` if a pod of the revision exists: it is no first deletion.
    trials: Option<&'m Trials>,
    revision: &'m str,
    /// Is there an older revision to make a control of?
    has_control: bool,
    now: Timestamp,
    wanted: RefCell<Option<Wanted>>,
}

/// A trial that a plan waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Of which revision the pod is.
    pub role: Role,
    /// The name of the pod that is to be deleted.
    pub pod: Box<str>,
}

impl<'m> Trying<'m> {
    /// For the rollout of a revision, of which a pod exists or not, after another one.
    pub fn new(trials: &'m Trials, [revision, before]: [&'m str; 2], exists: bool, now: Timestamp) -> Self {
        Self {
            trials: Some(trials).filter(|_| !exists),
            revision,
            has_control: before != revision,
            now,
            wanted: RefCell::default(),
        }
    }

    /// May this pod be deleted, so that it comes back on the revision? If not, why: the server is asked first, or
    /// refuses.
    pub(crate) fn ask(&self, pod: &str, revision: &str) -> Result<(), String> {
        let Some(trials) = self.trials.filter(|_| self.revision == revision) else {
            return Ok(());
        };
        match trials.verdict(revision, self.now) {
            Verdict::Go => Ok(()),
            Verdict::Ask(_) if !trials.are_made => Ok(()),
            // Without a control a refusal may be about anything.
            Verdict::Ask(Role::Control) if !self.has_control => Ok(()),
            Verdict::Ask(role) => {
                let wanted = || Wanted {
                    role,
                    pod: pod.into(),
                };
                self.wanted.borrow_mut().get_or_insert_with(wanted);
                Err("waits: the API server is asked first whether it would take its successor".into())
            }
            Verdict::Held(words) => Err(held(revision, &words)),
        }
    }

    /// The trial that the plan waits for.
    pub fn wanted(&self) -> Option<Wanted> {
        self.wanted.borrow().clone()
    }

    /// Has a pod been held in this plan?
    pub fn holds(&self) -> bool {
        self.wanted.borrow().is_some() || self.refused().is_some()
    }

    /// Why no pod is deleted for the revision, and when the server is asked again, if it refused a pod of it.
    pub(crate) fn refused(&self) -> Option<(String, Duration)> {
        let trials = self.trials?;
        let trial = trials.of(self.revision)?;
        match trials.verdict(self.revision, trial.at) {
            Verdict::Held(words) => Some((held(self.revision, &words), trial.again_in(self.now))),
            _ => None,
        }
    }
}

/// What precedes the revision in the message of a rollout that is held.
const HELD: &str = "no pod is deleted, because the API server refuses new ones of revision ";

fn held(revision: &str, words: &str) -> String {
    format!("{HELD}{revision}: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVISIONS: [&str; 2] = ["new", "old"];

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn trial(revision: &str, role: Role) -> PodTrial {
        PodTrial {
            namespace: "shop".into(),
            revision: revision.into(),
            role,
            pod: String::new(),
        }
    }

    fn refused(code: u16) -> Answer {
        Answer::Refused {
            code,
            message: "no".into(),
        }
    }

    /// What becomes of a rollout after these answers about the new pod and the control, a second later.
    fn verdict(answer: Answer, control: Option<Answer>) -> Verdict {
        let mut trials = Trials::made();
        trials.note(&trial("new", Role::Update), answer, at(0));
        if let Some(control) = control {
            trials.note(&trial("new", Role::Control), control, at(0));
        }
        trials.verdict("new", at(1))
    }

    #[test]
    fn only_a_pod_that_is_refused_where_the_old_one_is_taken_holds_a_rollout() {
        let held = Verdict::Held("no".into());
        for (answer, control, expected) in [
            (Answer::Accepted, None, Verdict::Go),
            (Answer::Unclear, None, Verdict::Go),
            (refused(403), None, Verdict::Ask(Role::Control)),
            (refused(403), Some(Answer::Accepted), held.clone()),
            (refused(403), Some(Answer::Unclear), held.clone()),
            (refused(403), Some(refused(403)), Verdict::Go),
            (refused(400), Some(refused(400)), Verdict::Go),
            (refused(422), Some(refused(422)), Verdict::Go),
            (refused(422), Some(refused(403)), held.clone()),
            (refused(403), Some(refused(422)), Verdict::Go),
        ] {
            let name = format!("{answer:?} {control:?}");
            assert_eq!(verdict(answer, control), expected, "{name}");
        }
    }

    #[test]
    fn refusals_are_repeated_at_growing_intervals_and_other_answers_do_not_last() {
        let mut trials = Trials::made();
        let mut now = 0;
        for pause in [10, 20, 40, 80, 160, 300, 300] {
            trials.note(&trial("new", Role::Update), refused(403), at(now));
            trials.note(&trial("new", Role::Control), Answer::Accepted, at(now));
            assert_eq!(
                trials.verdict("new", at(now + pause - 1)),
                Verdict::Held("no".into())
            );
            assert_eq!(trials.verdict("new", at(now + pause)), Verdict::Ask(Role::Update));
            now += pause;
        }
        trials.note(&trial("new", Role::Update), Answer::Accepted, at(now));
        assert_eq!(trials.verdict("new", at(now + 60)), Verdict::Go);
        assert_eq!(trials.verdict("new", at(now + 61)), Verdict::Ask(Role::Update));
        trials.note(&trial("new", Role::Update), refused(403), at(now));
        assert_eq!(
            trials.verdict("new", at(now + 10)),
            Verdict::Ask(Role::Update),
            "the count is new"
        );
    }

    #[test]
    fn another_revision_is_asked_about_anew() {
        let mut trials = Trials::made();
        trials.note(&trial("new", Role::Update), refused(403), at(0));
        trials.note(&trial("new", Role::Control), Answer::Accepted, at(0));
        assert_eq!(trials.verdict("newer", at(1)), Verdict::Ask(Role::Update));
        trials.note(&trial("newer", Role::Control), Answer::Accepted, at(1));
        assert_eq!(
            trials.verdict("newer", at(1)),
            Verdict::Ask(Role::Update),
            "of no trial"
        );
    }

    #[test]
    fn nothing_is_asked_where_nobody_makes_trials_and_where_a_pod_of_the_revision_exists() {
        let none = Trials::default();
        assert_eq!(
            Trying::new(&none, REVISIONS, false, at(0)).ask("a", "new"),
            Ok(())
        );
        let made = Trials::made();
        let trying = Trying::new(&made, REVISIONS, true, at(0));
        assert_eq!((trying.ask("a", "new"), trying.wanted()), (Ok(()), None));
        let trying = Trying::new(&made, REVISIONS, false, at(0));
        assert_eq!(trying.ask("a", "old"), Ok(()), "it goes back");
        assert!(trying.ask("a", "new").is_err() && trying.ask("b", "new").is_err());
        let wanted = trying
            .wanted()
            .map(|wanted| (wanted.role, wanted.pod.to_string()));
        assert_eq!(wanted, Some((Role::Update, "a".into())), "one is asked for");
    }

    #[test]
    fn what_is_reported_is_explained_the_same_for_that_revision_alone() {
        let reported = Trials::reported(&held("new", "pods \"a\" is forbidden: no")).unwrap();
        let trying = Trying::new(&reported, REVISIONS, false, at(7));
        let words = trying.ask("a", "new").unwrap_err();
        assert_eq!(words, held("new", "pods \"a\" is forbidden: no"));
        assert_eq!(trying.wanted(), None);
        let later = Trying::new(&reported, ["newer", "old"], false, at(7));
        assert_eq!((later.ask("a", "newer"), later.wanted()), (Ok(()), None));
        assert_eq!(Trials::reported("something else"), None);
    }

    #[test]
    fn a_refusal_without_an_old_revision_is_no_verdict() {
        let mut trials = Trials::made();
        trials.note(&trial("new", Role::Update), refused(403), at(0));
        let alone = Trying::new(&trials, ["new", "new"], false, at(1));
        assert_eq!((alone.ask("a", "new"), alone.wanted()), (Ok(()), None));
    }

    #[test]
    fn what_holds_a_rollout_is_known_without_a_pod_that_is_to_go() {
        let mut trials = Trials::made();
        trials.note(&trial("new", Role::Update), refused(403), at(0));
        trials.note(&trial("new", Role::Control), Answer::Accepted, at(0));
        let at_four = Trying::new(&trials, REVISIONS, false, at(4));
        let (words, again) = at_four.refused().unwrap();
        assert!(words.ends_with("of revision new: no"), "{words}");
        assert_eq!(again, Duration::from_secs(6));
        assert!(
            Trying::new(&trials, REVISIONS, false, at(40)).refused().is_some(),
            "until it is asked again"
        );
        assert_eq!(
            Trying::new(&trials, ["other", "old"], false, at(4)).refused(),
            None
        );
        assert_eq!(Trying::new(&trials, REVISIONS, true, at(4)).refused(), None);
    }
}
