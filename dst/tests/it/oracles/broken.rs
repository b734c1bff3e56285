//! Oracles of the simulation itself: each is shown what it is to find.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use kruise_dst::{
    engine::{
        campaign::twice,
        cluster::Cluster,
        course::Settling,
        liveness::Compared,
        mirror::Mirror,
        oracles::Oracles,
        play::{Keep, play},
        resource::PODS,
        scenario::Scenario,
        subject::{Begun, Seed, Subject, Subjects, Users, begun},
        verdict::Violation,
    },
    subjects::ALL,
};
use serde_json::Value;

/// An oracle, and what it finds where it is shown something.
pub type Shown = (&'static str, fn() -> Option<Violation>);

/// All of them.
pub const SHOWN: &[Shown] = &[
    ("every watch is served", unrecorded_resources),
    ("liveness", slow_play),
    ("nothing panics", panicking_task),
    ("two plays are equal", number_of_plays),
];

/// A manager watches what its subject does not name.
fn unrecorded_resources() -> Option<Violation> {
    let cloneset = ALL.named("cloneset").unwrap();
    let unrecorded = Subject {
        resources: &[PODS],
        ..*cloneset
    };
    let scenario = ALL.scenario(ALL.seed("cloneset/1").unwrap()).unwrap();
    play(only(unrecorded), &scenario, Keep::Hash).unwrap().violation
}

/// A play takes five times as long where requests fail.
fn slow_play() -> Option<Violation> {
    let settling = |seconds| Settling {
        took: Duration::from_secs(seconds),
        pause: Duration::ZERO,
    };
    let compared = Compared {
        seed: Seed {
            of: "cloneset",
            number: 1,
        },
        is_paced_by_users: false,
        calm: settling(20),
        unreliable: settling(100),
        failed: 1,
    };
    compared.violation()
}

/// A task panics, and nobody waits for it.
fn panicking_task() -> Option<Violation> {
    fn panics(_: &Arc<Cluster>) {
        tokio::spawn(async { panic!("to be found") });
    }
    play(
        odd(|_| begun(Odd(panics), Content)),
        &Scenario::clean([(ODD, Value::Null)], []),
        Keep::Hash,
    )
    .unwrap()
    .violation
}

/// What happens depends on how many plays there were.
fn number_of_plays() -> Option<Violation> {
    static PLAYS: AtomicU64 = AtomicU64::new(0);
    fn counts(cluster: &Arc<Cluster>) {
        let number = PLAYS.fetch_add(1, Ordering::Relaxed);
        cluster.look(|state| state.trace.note(Duration::ZERO, &number.to_string()));
    }
    let (_, violation) = twice(
        odd(|_| begun(Odd(counts), Content)),
        &Scenario::clean([(ODD, Value::Null)], []),
    )
    .unwrap();
    violation
}

const ODD: &str = "odd";

/// Users that do something odd.
struct Odd(fn(&Arc<Cluster>));

impl Users for Odd {
    type Edit = ();

    fn attend(&self, cluster: &Arc<Cluster>) {
        (self.0)(cluster);
    }

    async fn edit(&self, _: &Arc<Cluster>, (): &()) -> bool {
        false
    }
}

/// Everything is as it should be.
struct Content;

impl Oracles for Content {
    fn unfinished(&self, _: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// All subjects, and one with users that do something odd.
fn odd(begin: fn(&Scenario) -> anyhow::Result<Begun>) -> Subjects {
    let odd = Subject {
        name: ODD,
        begin,
        ..*ALL.named("deployment").unwrap()
    };
    let mut all = ALL.0.to_vec();
    all.push(Box::leak(Box::new(odd)));
    Subjects(Vec::leak(all))
}

fn only(subject: Subject) -> Subjects {
    Subjects(Box::leak(Box::new([&*Box::leak(Box::new(subject))])))
}
