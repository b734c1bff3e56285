//! Admission of CloneSets, in whatever version they are written.

pub mod mutate;
pub mod validate;
mod version;

use kruise_api::cloneset::CloneSet;
use serde_json::Value;

use self::version::member;
use crate::Answer;

/// The object as the controller would read it, or the answer if it could not.
fn decode(object: &Value) -> Result<CloneSet, Answer> {
    if member(object, "spec").is_none() {
        return Err(Answer::undecodable("spec must be an object"));
    }
    CloneSet::from_json(object).map_err(Answer::undecodable)
}
