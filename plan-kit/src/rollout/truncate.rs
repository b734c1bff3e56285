//! Deleting revisions that nothing uses any more.

use super::Rollout;
use crate::{history::Keep, plan::ObjectWrites};

impl Rollout<'_> {
    /// Deletes the oldest revisions that no pod uses, beyond the limit of the specification (default 10). `labels`
    /// are the revision labels of the pods.
    pub fn truncate<'l>(
        &self,
        limit: Option<i32>,
        labels: impl Iterator<Item = &'l str> + Clone,
    ) -> Vec<ObjectWrites> {
        let limit = limit.unwrap_or(10).max(0) as usize;
        let is_used = |revision: &str| {
            let mut labels = labels.clone().filter(|label| !label.is_empty());
            labels.any(|label| go_compat::revision::label_matches_revision(label, revision))
        };
        let reason = format!("more than {limit} unused revisions");
        let kept = [self.update.name.as_str(), self.current.name.as_str()];
        let keep = Keep::Unused(limit);
        let is_used = |view: &kruise_views::RevisionView| is_used(&view.name);
        self.history.truncate(&self.owner, keep, &kept, is_used, &reason)
    }
}
