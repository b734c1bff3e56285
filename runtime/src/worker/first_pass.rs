//! Which objects of a dry run have been planned once.

use std::collections::BTreeSet;

use kube_cache::ObjectKey;

/// The keys that existed when the controller began and have not been reconciled since.
#[derive(Debug, Default)]
pub(super) struct FirstPass {
    left: BTreeSet<ObjectKey>,
}

impl FirstPass {
    /// Begins with these keys. True if that is also the end, because there are none.
    pub(super) fn begin(&mut self, keys: &[ObjectKey]) -> bool {
        self.left = keys.iter().cloned().collect();
        self.left.is_empty()
    }

    /// A key was reconciled. True if it was the last one.
    pub(super) fn pass(&mut self, key: &ObjectKey) -> bool {
        self.left.remove(key) && self.left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_once_with_the_last_key_whatever_is_reconciled_again() {
        let [a, b] = ["a", "b"].map(|name| ObjectKey::new("shop", name));
        let mut pass = FirstPass::default();
        assert!(!pass.begin(&[a.clone(), b.clone()]));
        assert!(!pass.pass(&a));
        assert!(!pass.pass(&a), "reconciled again");
        assert!(!pass.pass(&ObjectKey::new("shop", "new")));
        assert!(pass.pass(&b));
        assert!(!pass.pass(&b), "it ends once");
    }

    #[test]
    fn without_keys_it_ends_at_once() {
        assert!(FirstPass::default().begin(&[]));
    }
}
