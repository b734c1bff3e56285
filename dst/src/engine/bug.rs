//! Injected bugs, as subjects list them.

/// A bug that scenarios of a subject show. Comments of the lists say what it does.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// Its name, where it is injected.
    pub name: &'static str,
    /// The seed of the first scenario that showed it. Where scenarios have changed, the hunt goes on from there.
    pub first: u64,
    /// The oracles one of which finds it.
    pub oracles: &'static [&'static str],
}

/// A bug of this name.
pub const fn bug(name: &'static str, first: u64, oracles: &'static [&'static str]) -> Bug {
    Bug { name, first, oracles }
}
