//! Twenty thousand random launches: the planner against a naive kubelet, with faults.
//!
//! The oracle knows nothing of barriers: when a container starts for the first time, all with higher numbers must have
//! been ready, or have ended well, some time before. In the end all run, and nothing is left to be written.

use std::collections::BTreeSet;

use kruise_plan_kit::{Holder, Memory, Plan, ResourceId, Write};
use kruise_views::{BarrierView, PodView};
use serde_json::Value;

use super::{Now, completed, concerns, planned, pod, status};

const LAUNCHES: u64 = 20_000;

/// Reproducible chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// A barrier as stored; one that OpenKruise made has no label, and no watch shows it.
#[derive(Clone)]
struct Stored {
    view: BarrierView,
    labelled: bool,
}

struct World {
    chance: Chance,
    numbers: Vec<i64>,
    version: u64,
    containers: Vec<Now>,
    restarts: Vec<i32>,
    pod: PodView,
    barrier: Option<Stored>,
    /// What watches showed or will show, and how far they are.
    pods: Vec<PodView>,
    barriers: Vec<Option<BarrierView>>,
    seen: [usize; 2],
    memory: Memory,
    /// Containers of this pod that were ready or ended well once, and those that have started.
    done: BTreeSet<usize>,
    started: BTreeSet<usize>,
    /// A key of an earlier pod's barrier let a container start before anybody could do anything about it.
    misled: bool,
    faulty: bool,
    writes: [usize; 2],
}

impl World {
    fn new(seed: u64, faulty: bool) -> Self {
        let mut chance = Chance(seed);
        let count = 1 + chance.below(5);
        let numbers: Vec<i64> = (0..count).map(|_| chance.below(4) as i64 - 1).collect();
        let mut world = Self {
            containers: vec![Now::Unknown; count],
            restarts: vec![0; count],
            chance,
            numbers,
            version: 10,
            pod: PodView::default(),
            barrier: None,
            pods: Vec::new(),
            barriers: vec![None],
            seen: [0, 0],
            memory: Memory::default(),
            done: BTreeSet::new(),
            started: BTreeSet::new(),
            misled: false,
            faulty,
            writes: [0, 0],
        };
        world.create_pod();
        if faulty && world.chance.one_in(4) {
            let owner = if world.chance.one_in(2) {
                world.pod.uid.clone()
            } else {
                "old".into()
            };
            let labelled = world.chance.one_in(2);
            let top = world.numbers.iter().max().copied().unwrap();
            // OpenKruise, stopped half-way, or an earlier pod, which had got to its end.
            let keys = if &*owner == "old" {
                world.numbers.clone()
            } else {
                vec![top]
            };
            world.store(
                &owner,
                keys.iter().map(|number| format!("p_{number}")).collect(),
                labelled,
            );
            if &*owner == "old" {
                // It was there before the pod.
                world.touch();
            }
        }
        world
    }

    /// A new pod, with nothing known of its containers.
    fn create_pod(&mut self) {
        self.version += 1;
        let count = self.numbers.len();
        self.containers = vec![Now::Unknown; count];
        self.restarts = vec![0; count];
        self.done.clear();
        self.started.clear();
        self.misled = false;
        let shapes: Vec<(i64, Now)> = self
            .numbers
            .iter()
            .map(|number| (*number, Now::Unknown))
            .collect();
        self.pod = PodView {
            uid: format!("pod-{}", self.version).into(),
            restarts_always: self.numbers.len().is_multiple_of(2),
            ..pod(&shapes)
        };
        self.touch();
    }

    /// The pod as it is now becomes its next version.
    fn touch(&mut self) {
        self.version += 1;
        self.pod.resource_version = self.version.to_string().into();
        self.pod.statuses = self
            .containers
            .iter()
            .enumerate()
            .filter(|(_, now)| **now != Now::Unknown)
            .map(|(at, now)| {
                let mut status = status(&format!("c{at}"), *now);
                status.restart_count = self.restarts[at];
                status
            })
            .collect();
        self.pods.push(self.pod.clone());
    }

    fn store(&mut self, owner: &str, keys: Vec<String>, labelled: bool) {
        self.version += 1;
        let mut view = super::barrier(owner, &[]);
        view.uid = format!("barrier-{}", self.version).into();
        view.keys = keys.into_iter().map(Into::into).collect();
        self.barrier = Some(Stored { view, labelled });
        self.show();
    }

    /// The barrier as it is now becomes what its watch shows next.
    fn show(&mut self) {
        self.version += 1;
        if let Some(barrier) = &mut self.barrier {
            barrier.view.resource_version = self.version.to_string().into();
        }
        let shown = self.barrier.as_ref().filter(|barrier| barrier.labelled);
        self.barriers.push(shown.map(|barrier| barrier.view.clone()));
    }

    fn is_done(&self, at: usize) -> bool {
        self.containers[at] == Now::Ready || (self.containers[at] == Now::Ended && !self.pod.restarts_always)
    }

    /// The kubelet looks after one container.
    fn kubelet(&mut self, at: usize) {
        let before = self.containers[at];
        self.containers[at] = match before {
            Now::Unknown | Now::Held => self.start(at),
            Now::Ended if self.pod.restarts_always => self.start(at),
            Now::Ended => Now::Ended,
            Now::Running if self.faulty && self.chance.one_in(4) => self.crash(at),
            Now::Running if !self.pod.restarts_always && self.chance.one_in(3) => Now::Ended,
            Now::Ready if self.faulty && self.chance.one_in(4) => Now::Running,
            Now::Ready if self.faulty && self.chance.one_in(4) => self.crash(at),
            Now::Running | Now::Ready => Now::Ready,
        };
        if self.is_done(at) {
            self.done.insert(at);
        }
        if self.containers[at] != before {
            self.touch();
        }
    }

    fn crash(&mut self, at: usize) -> Now {
        self.restarts[at] += 1;
        self.start(at)
    }

    /// Starts a container if its key is there.
    fn start(&mut self, at: usize) -> Now {
        let number = self.numbers[at];
        let barrier = self.barrier.as_ref().map(|stored| &stored.view);
        let Some(barrier) = barrier.filter(|barrier| barrier.has(&format!("p_{number}"))) else {
            return Now::Held;
        };
        self.misled |= !barrier.is_of(&self.pod.uid);
        if self.started.insert(at) && !self.misled {
            let above = (0..self.numbers.len()).filter(|other| self.numbers[*other] > number);
            for other in above {
                assert!(
                    self.done.contains(&other),
                    "{other} of {:?} was not ready before {at}",
                    self.numbers
                );
            }
        }
        Now::Running
    }

    /// The manager sees something, and does what it plans.
    fn manager(&mut self) {
        for (seen, end) in self.seen.iter_mut().zip([self.pods.len(), self.barriers.len()]) {
            *seen += self.chance.below(end - *seen);
        }
        if self.faulty && self.chance.one_in(10) {
            self.memory = Memory::default();
        }
        let plan = self.plan();
        self.execute(&plan);
    }

    fn plan(&self) -> Plan {
        planned(
            &self.pods[self.seen[0]],
            self.barriers[self.seen[1]].as_ref(),
            &self.memory,
        )
    }

    /// Sends the writes, in order. What was written is seen before the next plan.
    fn execute(&mut self, plan: &Plan) {
        for step in plan.writes.iter().flat_map(|object| &object.steps) {
            let lost = self.faulty && self.chance.one_in(8);
            if lost && self.chance.one_in(2) {
                return;
            }
            let accepted = self.write(&step.write);
            let barriers = step.write.target().resource == ResourceId::CONFIG_MAPS;
            self.writes[usize::from(!barriers)] += usize::from(accepted);
            if accepted {
                if barriers {
                    self.seen[1] = self.barriers.len() - 1;
                } else {
                    self.seen[0] = self.pods.len() - 1;
                }
            }
            if lost || !accepted {
                return;
            }
        }
        if plan.writes.iter().any(|object| !object.steps.is_empty()) {
            self.memory = Memory::default();
        }
    }

    fn write(&mut self, write: &Write) -> bool {
        match write {
            Write::Create { body, owner_uid, .. } => {
                if let Some(found) = &self.barrier {
                    let holder = Holder {
                        uid: found.view.uid.to_string(),
                        owners: found.view.pods.iter().map(|(_, uid)| uid.to_string()).collect(),
                    };
                    self.memory.holders.insert("web-barrier".into(), holder);
                    return false;
                }
                let pod = owner_uid.as_deref().expect("a barrier has a pod");
                self.store(pod, keys(&body.render()), true);
                true
            }
            Write::Delete { precondition, .. } => {
                let is_it = |found: &Stored| precondition.uid() == Some(&*found.view.uid);
                if self.barrier.as_ref().is_some_and(is_it) {
                    self.barrier = None;
                    self.show();
                } else if self.barrier.is_some() {
                    return false;
                }
                true
            }
            Write::Patch {
                target,
                patch,
                precondition,
                ..
            } if target.resource == ResourceId::CONFIG_MAPS => {
                let Some(found) = &mut self.barrier else {
                    self.memory = Memory::default();
                    return false;
                };
                if precondition.uid() != Some(&*found.view.uid) {
                    return false;
                }
                let body = patch.body();
                found.labelled |= body.get("metadata").is_some();
                let mut all: BTreeSet<Box<str>> = found.view.keys.iter().cloned().collect();
                all.extend(keys(&body).into_iter().map(Box::from));
                found.view.keys = all.into_iter().collect();
                self.show();
                true
            }
            Write::Patch { precondition, .. } => {
                if precondition.uid() != Some(&*self.pod.uid) {
                    return false;
                }
                self.pod = completed(self.pod.clone());
                self.touch();
                true
            }
        }
    }

    /// Whatever else may happen.
    fn fault(&mut self) {
        match self.chance.below(12) {
            0 if self.barrier.take().is_some() => self.show(),
            1 => self.create_pod(),
            2 | 3 => self.collect(),
            _ => {}
        }
    }

    /// What has no owner any more goes.
    fn collect(&mut self) {
        let uid = self.pod.uid.clone();
        if self.barrier.as_ref().is_some_and(|found| !found.view.is_of(&uid)) {
            self.barrier = None;
            self.show();
        }
    }

    fn play(&mut self, steps: usize) {
        for _ in 0..steps {
            let count = self.containers.len();
            match self.chance.below(3) {
                0 => self.manager(),
                1 => {
                    let at = self.chance.below(count);
                    self.kubelet(at);
                }
                _ if self.faulty => self.fault(),
                _ => {}
            }
        }
    }

    /// Everybody sees and does everything until nothing changes.
    fn settle(&mut self) {
        self.faulty = false;
        for _ in 0..100 {
            let before = self.version;
            self.collect();
            self.seen = [self.pods.len() - 1, self.barriers.len() - 1];
            let plan = self.plan();
            self.execute(&plan);
            for at in 0..self.containers.len() {
                self.kubelet(at);
            }
            self.seen = [self.pods.len() - 1, self.barriers.len() - 1];
            if self.version == before && self.plan().writes.is_empty() {
                return;
            }
        }
        panic!("no end: {:?} {:?}", self.containers, self.numbers);
    }

    fn must_be_complete(&self) {
        for at in 0..self.containers.len() {
            assert!(
                self.started.contains(&at) && self.is_done(at),
                "{at}: {:?} {:?}",
                self.containers,
                self.numbers
            );
        }
        assert!(!concerns(&self.pod), "{:?}", self.pod);
    }
}

fn keys(object: &Value) -> Vec<String> {
    let data = object["data"].as_object().into_iter().flatten();
    data.map(|(key, _)| key.clone()).collect()
}

#[test]
fn twenty_thousand_launches_with_faults_keep_their_order_and_come_to_their_end() {
    for seed in 0..LAUNCHES {
        let mut world = World::new(seed, true);
        world.play(40);
        world.settle();
        world.must_be_complete();
    }
}

#[test]
fn without_faults_a_barrier_costs_a_write_for_each_number_and_the_pod_one() {
    for seed in 0..LAUNCHES / 4 {
        let mut world = World::new(seed, false);
        world.play(60);
        world.settle();
        world.must_be_complete();
        let numbers: BTreeSet<i64> = world.numbers.iter().copied().collect();
        assert!(
            world.writes[0] <= numbers.len(),
            "{:?}: {:?}",
            world.numbers,
            world.writes
        );
        assert_eq!(world.writes[1], 1, "{:?}", world.numbers);
    }
}

#[test]
fn a_container_that_crashes_without_its_barrier_runs_again() {
    for seed in 0..LAUNCHES / 4 {
        let mut world = World::new(seed, false);
        world.settle();
        world.barrier = None;
        world.show();
        let at = world.chance.below(world.containers.len());
        world.containers[at] = world.crash(at);
        world.touch();
        assert_eq!(world.containers[at], Now::Held);
        world.settle();
        world.must_be_complete();
    }
}
