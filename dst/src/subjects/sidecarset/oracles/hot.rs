//! *"A twin that serves is not touched before the other one serves."*

use super::change::Change;
use super::view;
use super::view::Spec;

/// What is wrong with a change of twins.
pub fn wrong(change: Change<'_>, spec: Spec<'_>) -> Option<(&'static str, String)> {
    let Change { before, after } = change;
    for sidecar in spec.sidecars() {
        let Some(empty) = sidecar.empty else { continue };
        let containers = sidecar.containers();
        let [one, two] = containers.as_slice() else {
            continue;
        };
        for (twin, other) in [(one, two), (two, one)] {
            let is_touched = view::image(before, twin) != view::image(after, twin);
            let takes_over =
                view::serves(before, other, empty) && view::image(after, other) == view::image(before, other);
            if is_touched && view::serves(before, twin, empty) && !takes_over {
                let text = format!("{twin} serves and {other} does not");
                return Some(("one twin serves", text));
            }
        }
    }
    None
}
