//! Secrets that images may be pulled with. Their contents never come here.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::Call;
use crate::{NodeImageView, ObjectRef, SecretRef, SecretState};

/// What is known of the secrets that the NodeImage names.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets {
    known: BTreeMap<SecretRef, SecretState>,
    /// The states without which pulls began and that were reported.
    reported: BTreeMap<SecretRef, SecretState>,
}

impl Secrets {
    /// Forgets secrets that are named no more.
    pub(super) fn sync(&mut self, spec: &NodeImageView) {
        let named = spec.images.values().flat_map(|image| &image.secrets);
        let named: BTreeSet<&SecretRef> = named.collect();
        self.known.retain(|secret, _| named.contains(secret));
        self.reported.retain(|secret, _| named.contains(secret));
    }

    /// Takes note of a secret, and logs once for each change that it is not there. Returns whether there is
    /// something new to pull with.
    pub(super) fn note(&mut self, secret: &SecretRef, state: &SecretState, call: &mut Call<'_>) -> bool {
        let before = self.known.insert(secret.clone(), state.clone());
        if before.as_ref() == Some(state) {
            return false;
        }
        if let Some(problem) = problem(secret, state) {
            call.warn(problem);
        }
        before.is_some() && matches!(state, SecretState::Found { .. })
    }

    /// A pull begins with what is known of a secret. Returns why it is not used, if that was not reported yet.
    pub(super) fn news(&mut self, secret: &SecretRef, state: &SecretState) -> Option<String> {
        let Some(problem) = problem(secret, state) else {
            self.reported.remove(secret);
            return None;
        };
        let before = self.reported.insert(secret.clone(), state.clone());
        (before.as_ref() != Some(state)).then_some(problem)
    }
}

/// Why a secret is not used, if it was not found.
fn problem(secret: &SecretRef, state: &SecretState) -> Option<String> {
    match state {
        SecretState::Found { .. } => None,
        SecretState::Missing => Some(format!("pull secret {secret} does not exist")),
        SecretState::Forbidden(problem) => Some(format!(
            "pull secret {secret} may not be read by the agent: {problem}"
        )),
        SecretState::Unreadable(problem) => Some(format!("pull secret {secret} cannot be read: {problem}")),
    }
}

/// Why secrets are not used.
pub(super) fn unused(states: &[(SecretRef, SecretState)]) -> Vec<String> {
    let problems = states.iter().filter_map(|(secret, state)| problem(secret, state));
    problems.collect()
}

/// Why a secret that may exist is not known.
pub(super) fn unreadable(states: &[(SecretRef, SecretState)]) -> Option<String> {
    let mut states = states.iter();
    let (secret, state) = states.find(|(_, state)| matches!(state, SecretState::Unreadable(_)))?;
    problem(secret, state)
}

/// Returns whether a tag of these owners may be pulled with this secret. A copy that was made for some jobs is used
/// for these jobs only. Other secrets, and tags without owners, come from an administrator and are not limited.
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
