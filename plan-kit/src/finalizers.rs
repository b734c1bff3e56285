//! Finalizers: an object that is deleted stays until the controller has cleaned up what belongs to it.

use kruise_api::meta::ObjectMeta;
use serde_json::json;

use crate::{Intent, Part, Patch, Target, Write, jobs};

/// The finalizers of an object with this one if it `holds`, otherwise without it; `None` if they are so already.
/// The others stay, in their order.
pub fn changed<'m>(metadata: &'m ObjectMeta, finalizer: &'m str, holds: bool) -> Option<Vec<&'m str>> {
    let stored = metadata.finalizers.iter().map(String::as_str);
    let mut finalizers: Vec<&str> = stored.filter(|one| *one != finalizer).collect();
    let is_held = finalizers.len() < metadata.finalizers.len();
    if is_held == holds {
        return None;
    }
    if holds {
        finalizers.push(finalizer);
    }
    Some(finalizers)
}

/// The write that adds the finalizer if it `holds`, otherwise removes it; `None` if that is so already. A merge
/// patch replaces the whole list, so the server refuses it if the object has changed.
pub fn write(
    metadata: &ObjectMeta,
    target: Target,
    finalizer: &str,
    holds: bool,
    intent: Intent,
) -> Option<Write> {
    let finalizers = changed(metadata, finalizer, holds)?;
    Some(Write::Patch {
        intent,
        target,
        part: Part::Main,
        patch: Patch::Merge(json!({"metadata": {"finalizers": finalizers}})),
        precondition: jobs::unchanged(metadata),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(finalizers: &[&str]) -> ObjectMeta {
        ObjectMeta {
            finalizers: finalizers.iter().map(|one| (*one).to_owned()).collect(),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_finalizer_is_added_and_removed_once_and_the_others_stay_in_their_order() {
        let (without, with) = (of(&["b", "a"]), of(&["b", "own", "a"]));
        assert_eq!(changed(&without, "own", true), Some(vec!["b", "a", "own"]));
        assert_eq!(changed(&with, "own", true), None);
        assert_eq!(changed(&with, "own", false), Some(vec!["b", "a"]));
        assert_eq!(changed(&without, "own", false), None);
    }
}
