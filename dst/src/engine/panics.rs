//! Panics, wherever they are caught.
//!
//! A worker survives a plan that panics, which is right for a manager and hides the bug from who only sees its writes.

use std::{cell::Cell, panic, sync::Once};

thread_local! {
    static PANICS: Cell<u64> = const { Cell::new(0) };
}

/// How many panics this thread has seen since the first call. A scenario lives on one thread.
pub fn count() -> u64 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            before(info);
        }));
    });
    PANICS.get()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_panic_that_is_caught_counts() {
        let before = super::count();
        let caught = std::panic::catch_unwind(|| panic!("on purpose"));
        assert!(caught.is_err());
        assert_eq!(super::count(), before + 1);
    }
}
