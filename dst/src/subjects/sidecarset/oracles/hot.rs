//! *"A twin that serves is not touched before the other one serves."*

use super::view;
use super::view::Spec;
use crate::rules::Broken;
use crate::rules::prelude::*;

/// What is wrong with a change of twins.
pub fn wrong([before, after]: [&Object; 2], spec: Spec<'_>) -> Broken {
    let changes = |container: &str| view::image(before, container) != view::image(after, container);
    for sidecar in spec.sidecars() {
        let (names, Some(empty)) = (sidecar.containers(), sidecar.empty) else {
            continue;
        };
        for (twin, other) in [(&names[0], &names[1]), (&names[1], &names[0])] {
            let takes_over = view::serves(before, other, empty) && !changes(other);
            breaks!("one twin serves",
                changes(twin) && view::serves(before, twin, empty) && !takes_over
                    => "{twin} serves and {other} does not");
        }
    }
    None
}
