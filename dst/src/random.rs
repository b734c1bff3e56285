//! Chance from a seed.

/// What a sequence of numbers is for. The numbers are part of what a seed means: a new purpose gets a new one, and the
/// compiler refuses one that is taken.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// The set, its edits and the faults.
    History = 1,
    /// What makes a brief history count.
    Longer = 32,
    /// Which requests a fault hits.
    Cluster = 2,
    /// How long a manager takes to come back.
    Managers = 3,
    /// What the manager itself leaves to chance.
    Manager = 4,
    /// When the hook before updates is answered.
    UpdateHook = 5,
    /// Grace periods.
    Grace = 6,
    /// SidecarSets.
    Sidecars = 7,
    /// Hooks before deletions and before service.
    Hooks = 21,
    /// When those are answered.
    Attendance = 22,
    /// Which pods' hooks are answered then.
    Attended = 23,
    /// Containers that read an annotation.
    Config = 24,
    /// Containers that change one after the other.
    Batches = 25,
    /// Which pods are updated when.
    Strategies = 26,
    /// Deadlines and times.
    Times = 27,
    /// Amounts of containers.
    Resources = 28,
    /// Pods that wait for the others.
    Order = 29,
    /// Containers that restart for another amount.
    Restarts = 30,
    /// Sidecars that their set has no more.
    Dropped = 31,
    /// Pods that are spread over a rollout.
    Scatter = 33,
}

/// A sequence of numbers that its seed decides (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Equal seeds and purposes yield equal sequences; other purposes yield unrelated ones.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        let mut random = Self(seed ^ (purpose as u64).wrapping_mul(0xd134_2543_de82_ef95));
        random.draw();
        random
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high.saturating_sub(low) + 1)
    }

    /// True in so many of a hundred.
    pub fn percent(&mut self, percent: u8) -> bool {
        self.draw() % 100 < u64::from(percent)
    }

    /// One of them; `None` of none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.draw() % (of.len().max(1) as u64);
        of.get(at as usize)
    }
}
