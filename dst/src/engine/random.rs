//! Randomness from a seed.

/// What a sequence of numbers is for. The number is part of what a seed means, so it never changes, and no two purposes
/// have the same. The engine and the first subjects have those below 100; each further subject takes a hundred of
/// its own.
#[derive(Clone, Copy, Debug)]
pub struct Purpose(pub u64);

impl Purpose {
    /// Additional steps of a brief scenario.
    pub const ADDITIONAL_STEPS: Self = Self(32);
    /// Which requests a fault hits.
    pub const CLUSTER: Self = Self(2);
    /// How long a manager takes to restart.
    pub const RESTARTS: Self = Self(3);
    /// What the manager itself leaves to randomness.
    pub const MANAGER: Self = Self(4);
    /// How long an agent takes to restart, what it leaves to randomness, and at which stops it dies.
    pub const AGENTS: Self = Self(9);
    /// How requests are altered that oracles are to find.
    pub const ALTERATIONS: Self = Self(10);
    /// The cluster before any scenario.
    pub const BOOT: Self = Self(8);
}

/// A sequence of numbers that its seed decides (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Equal seeds and purposes yield equal sequences; other purposes yield unrelated ones.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        let mut random = Self(seed ^ purpose.0.wrapping_mul(0xd134_2543_de82_ef95));
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

    /// True with this probability in percent.
    pub fn percent(&mut self, percent: u8) -> bool {
        self.draw() % 100 < u64::from(percent)
    }

    /// One of them; `None` of none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.draw() % (of.len().max(1) as u64);
        of.get(at as usize)
    }

    /// A drawn value with this probability in percent, otherwise the default.
    pub fn maybe<T: Default>(&mut self, percent: u8, draw: impl FnOnce(&mut Self) -> T) -> T {
        if self.percent(percent) {
            draw(self)
        } else {
            T::default()
        }
    }

    /// The first with this probability in percent, otherwise the second.
    pub fn either<T>(&mut self, percent: u8, first: T, second: T) -> T {
        if self.percent(percent) { first } else { second }
    }

    /// A number up to 255, both ends included.
    pub fn small(&mut self, low: u64, high: u64) -> u8 {
        self.between(low, high) as u8
    }

    /// One of them.
    pub fn one<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[(self.draw() % N as u64) as usize]
    }

    /// One of some texts.
    pub fn text(&mut self, of: &[&str]) -> String {
        self.pick(of).copied().unwrap_or_default().to_owned()
    }
}
