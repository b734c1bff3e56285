//! What this thread has read of a cluster, as a number that changes when any of it does. [`crate::wait`] sees by it
//! that nothing changes any more.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};

thread_local! {
    /// All that was read since [`during`] began; `None` if that was nothing.
    static READ: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Adds what was read.
pub(crate) fn note(read: &(impl Hash + ?Sized)) {
    let mut hasher = DefaultHasher::new();
    READ.get().hash(&mut hasher);
    read.hash(&mut hasher);
    READ.set(Some(hasher.finish()));
}

/// Calls `reading`, and returns with its result what it read: `None` if it noted nothing.
pub(crate) fn during<T>(reading: impl FnOnce() -> T) -> (T, Option<u64>) {
    let before = READ.take();
    let result = reading();
    let read = READ.replace(before);
    // Whoever waits around this one has read it, too.
    if read.is_some() {
        note(&read);
    }
    (result, read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Option<u64> {
        during(|| texts.iter().for_each(note)).1
    }

    #[test]
    fn the_same_reads_are_the_same_number_and_any_other_is_another() {
        let both = read(&["a", "b"]);
        assert!(both.is_some());
        assert_eq!(read(&["a", "b"]), both);
        for other in [&["a"][..], &["b", "a"], &["a", "c"], &["a", "b", "b"]] {
            assert_ne!(read(other), both, "{other:?}");
        }
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn what_is_read_within_is_read_around_it_and_what_was_read_before_is_not() {
        note("before");
        let outer = |inner: &str| during(|| during(|| note(inner)).1);
        let (within, around) = outer("a");
        assert_eq!(within, read(&["a"]));
        assert_eq!(outer("a"), (within, around));
        assert_ne!(outer("b").1, around);
    }
}
