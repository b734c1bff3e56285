//! The lifecycle state of a pod, and the states in which hooks hold it.
//!
//! A hook lists labels and finalizers. While one of them is on the pod the pod is *held* before a deletion or an
//! in-place update; only when all of them are back does an updated pod count as normal again.

use jiff::Timestamp;
use kruise_api::{
    lifecycle::LifecycleHook,
    names::{LIFECYCLE_STATE, LIFECYCLE_TIMESTAMP},
};
use kruise_views::PodView;
use serde_json::{Value, json};

/// Value of the lifecycle label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No label: as good as normal.
    None,
    /// Created, not yet in service.
    PreparingNormal,
    /// In service.
    Normal,
    /// Held before an in-place update.
    PreparingUpdate,
    /// Being updated in place.
    Updating,
    /// Updated, held until the hook is back.
    Updated,
    /// Held before deletion.
    PreparingDelete,
    /// A value this build does not know.
    Foreign,
}

impl State {
    /// The state in a pod's label.
    pub fn of(pod: &PodView) -> Self {
        match pod.labels.get(LIFECYCLE_STATE) {
            None | Some("") => Self::None,
            Some("PreparingNormal") => Self::PreparingNormal,
            Some("Normal") => Self::Normal,
            Some("PreparingUpdate") => Self::PreparingUpdate,
            Some("Updating") => Self::Updating,
            Some("Updated") => Self::Updated,
            Some("PreparingDelete") => Self::PreparingDelete,
            Some(_) => Self::Foreign,
        }
    }

    /// The label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None | Self::Foreign => "",
            Self::PreparingNormal => "PreparingNormal",
            Self::Normal => "Normal",
            Self::PreparingUpdate => "PreparingUpdate",
            Self::Updating => "Updating",
            Self::Updated => "Updated",
            Self::PreparingDelete => "PreparingDelete",
        }
    }

    /// May a pod in this state be available?
    pub fn serves(self) -> bool {
        matches!(self, Self::None | Self::Normal)
    }

    /// `metadata` members that move a pod to this state.
    pub fn metadata(self, now: Timestamp) -> Value {
        json!({
            "labels": {LIFECYCLE_STATE: self.as_str()},
            "annotations": {LIFECYCLE_TIMESTAMP: go_time(now)},
        })
    }
}

/// RFC 3339 with whole seconds, as Go clients write timestamps.
pub fn go_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Does at least one handler of the hook hold the pod?
pub fn holds(hook: Option<&LifecycleHook>, pod: &PodView) -> bool {
    hook.is_some_and(|hook| {
        hook.finalizers_handler
            .iter()
            .any(|finalizer| has_finalizer(pod, finalizer))
            || hook
                .labels_handler
                .iter()
                .any(|(key, value)| pod.labels.get(key) == Some(value))
    })
}

/// Are all handlers of the hook on the pod? False without a hook, true for an empty one.
pub fn fully_hooked(hook: Option<&LifecycleHook>, pod: &PodView) -> bool {
    hook.is_some_and(|hook| {
        hook.finalizers_handler
            .iter()
            .all(|finalizer| has_finalizer(pod, finalizer))
            && hook
                .labels_handler
                .iter()
                .all(|(key, value)| pod.labels.get(key) == Some(value))
    })
}

fn has_finalizer(pod: &PodView, finalizer: &str) -> bool {
    pod.finalizers.iter().any(|have| &**have == finalizer)
}

#[cfg(test)]
mod tests {
    use kruise_api::lifecycle::LifecycleHook;
    use kruise_views::PodView;

    use super::{fully_hooked, holds};

    #[test]
    fn no_hook_neither_holds_nor_completes_and_an_empty_hook_only_completes() {
        let pod = PodView::default();
        assert_eq!((holds(None, &pod), fully_hooked(None, &pod)), (false, false));
        let empty = LifecycleHook::default();
        assert_eq!(
            (holds(Some(&empty), &pod), fully_hooked(Some(&empty), &pod)),
            (false, true)
        );
    }

    #[test]
    fn one_handler_holds_and_all_handlers_complete() {
        let hook = LifecycleHook {
            labels_handler: [("a".to_owned(), "1".to_owned())].into(),
            finalizers_handler: vec!["f".into()],
            ..LifecycleHook::default()
        };
        let mut pod = PodView {
            labels: [("a", "1")].into_iter().collect(),
            ..PodView::default()
        };
        assert_eq!(
            (holds(Some(&hook), &pod), fully_hooked(Some(&hook), &pod)),
            (true, false)
        );
        pod.finalizers = Box::new(["f".into()]);
        assert_eq!(
            (holds(Some(&hook), &pod), fully_hooked(Some(&hook), &pod)),
            (true, true)
        );
        pod.labels = [("a", "2")].into_iter().collect();
        assert_eq!(
            (holds(Some(&hook), &pod), fully_hooked(Some(&hook), &pod)),
            (true, false)
        );
    }
}
