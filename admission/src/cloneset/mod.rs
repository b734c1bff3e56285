//! Admission of CloneSets, in whatever version they are written.

pub mod mutate;
pub mod validate;
mod version;

use crate::{Answer, Request};
use kruise_api::cloneset::CloneSet;

/// The object as the controller would read it, or the answer if it could not.
fn decode(request: &Request) -> Result<CloneSet, Answer> {
    request.specified()?;
    CloneSet::from_json(&request.object).map_err(Answer::undecodable)
}
