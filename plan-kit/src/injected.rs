//! Injected bugs, which the simulation must find: a test of the tests.
//!
//! A bug is named where it is injected, `is_injected("OrderIgnored")`, and in the list of the subject of the simulation
//! that shows it. They exist only in builds with the feature `injected-bugs`, which nothing but the simulation's
//! own feature of that name turns on, and so `cargo test` of the simulation or of the whole workspace. In all other
//! builds [`is_injected`] is a constant, and the code behind it is not compiled in.

#[cfg(feature = "injected-bugs")]
mod active {
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
        static DRAWN: Cell<u64> = const { Cell::new(0) };
    }

    /// Injects a bug into this thread, or none.
    pub fn inject(bug: Option<&'static str>) {
        ACTIVE.set(bug);
        DRAWN.set(0);
    }

    /// Is this bug active here?
    pub fn is_injected(bug: &str) -> bool {
        ACTIVE.get() == Some(bug)
    }

    /// Another number at every call.
    pub fn draw() -> u64 {
        DRAWN.set(DRAWN.get() + 1);
        DRAWN.get()
    }
}

#[cfg(feature = "injected-bugs")]
pub use active::{draw, inject, is_injected};

/// Is this bug active here? Never, in this build.
#[cfg(not(feature = "injected-bugs"))]
pub const fn is_injected(_: &str) -> bool {
    false
}

/// Another number at every call; not in this build.
#[cfg(not(feature = "injected-bugs"))]
pub const fn draw() -> u64 {
    0
}
