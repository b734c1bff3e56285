//! Splits status patches that also change labels or annotations, for servers that refuse them.

use kruise_plan_kit::Patch;
use serde_json::{Value, json};

/// How a server accepts a patch of `/status` that also changes metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusForm {
    /// In one request.
    #[default]
    Merged,
    /// In two requests, one for the status and one for the metadata.
    Split,
}

/// The status half and the metadata half of a patch; `None` unless the patch has both.
pub(crate) fn halves(patch: &Patch) -> Option<(Patch, Patch)> {
    let rebuild: fn(Value) -> Patch = match patch {
        Patch::Merge(_) => Patch::Merge,
        Patch::Strategic(_) => |value| Patch::Strategic(value.into()),
        Patch::Json(_) => return None,
    };
    let value = patch.body();
    let metadata = value.get("metadata")?;
    let changes_metadata = ["labels", "annotations"]
        .iter()
        .any(|field| metadata.get(field).is_some());
    let status = value.get("status")?;
    changes_metadata.then(|| {
        (
            rebuild(json!({ "status": status })),
            rebuild(json!({ "metadata": metadata })),
        )
    })
}
