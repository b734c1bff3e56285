//! Secrets that images may be pulled with. Their contents never come here.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::Call;
use crate::{NodeImageView, ObjectRef, SecretRef, SecretState};

/// What is known of the secrets that the NodeImage names.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets {
    known: BTreeMap<SecretRef, SecretState>,
}

impl Secrets {
    /// Forgets secrets that are named no more.
    pub(super) fn sync(&mut self, spec: &NodeImageView) {
        let named = spec.images.values().flat_map(|image| &image.secrets);
        let named: BTreeSet<&SecretRef> = named.collect();
        self.known.retain(|secret, _| named.contains(secret));
    }

    /// Takes note of a secret, and logs once for each change that it is missing. Returns whether there is something new to
    /// pull with.
    pub(super) fn note(&mut self, secret: &SecretRef, state: &SecretState, call: &mut Call<'_>) -> bool {
        let before = self.known.insert(secret.clone(), state.clone());
        if before.as_ref() == Some(state) {
            return false;
        }
        match state {
            SecretState::Missing => call.warn(format!("pull secret {secret} does not exist and is not used")),
            SecretState::Unreadable(problem) => {
                call.warn(format!(
                    "pull secret {secret} cannot be read and is not used: {problem}"
                ));
            }
            SecretState::Found { .. } => {}
        }
        before.is_some() && matches!(state, SecretState::Found { .. })
    }
}

/// Returns whether a tag of these owners may be pulled with this secret. A copy that was made for some jobs is used for these
/// jobs only. Other secrets, and tags without owners, come from an administrator and are not limited.
pub(super) fn is_allowed(state: &SecretState, owners: &[ObjectRef]) -> bool {
    let SecretState::Found { references, .. } = state else {
        return false;
    };
    let Some(references) = references.as_deref() else {
        return true;
    };
    let is_for = |owner: &ObjectRef| {
        let mut jobs = references.split(',').filter_map(|job| job.trim().split_once('/'));
        jobs.any(|(namespace, name)| *owner.namespace == *namespace && *owner.name == *name)
    };
    owners.is_empty() || owners.iter().any(is_for)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(references: Option<&str>) -> SecretState {
        SecretState::Found {
            version: "1".into(),
            references: references.map(Into::into),
        }
    }

    #[test]
    fn a_copy_serves_the_jobs_that_it_was_made_for() {
        let owner = |namespace: &str, name: &str| ObjectRef {
            namespace: namespace.into(),
            name: name.into(),
            ..ObjectRef::default()
        };
        let shop = [owner("shop", "warm"), owner("other", "job")];
        let bank = [owner("bank", "warm")];
        for (references, owners, allowed) in [
            (Some("bank/a,shop/warm"), &shop[..], true),
            (Some("bank/a,shop/warm"), &bank, false),
            (Some("shop/warm"), &[], true),
            (Some(""), &bank, false),
            (None, &bank, true),
        ] {
            assert_eq!(
                is_allowed(&found(references), owners),
                allowed,
                "{references:?} {owners:?}"
            );
        }
        assert!(!is_allowed(&SecretState::Missing, &shop));
        assert!(!is_allowed(&SecretState::Unreadable("timeout".into()), &shop));
    }
}
