//! SidecarSets.

mod bugs;
mod edit;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use edit::Edit;
use oracles::SidecarSetOracles;
use start::{NAME, SIDECARSETS};
use user::SidecarSetUser;

/// SidecarSets above a CloneSet or a Deployment.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("sidecarset-controller"),
    definitions: &[&kruise_api::sidecarset::KIND],
    resources: &[SIDECARSETS, PODS, REVISIONS, NAMESPACES],
    is_always_watched: true,
    // Its revisions.
    selectors: &["kruise.io/sidecarset-name"],
    scenario: Some(generate::generate),
    is_release: |change| says(change, |edit: &Edit| matches!(edit, Edit::Paused(_, false))),
    // What one SidecarSet wrote another one need not know; its oracles have what each wrote.
    remembers_pods: false,
    begin: |scenario| {
        let user = SidecarSetUser(scenario.start(NAME)?);
        begun(user, SidecarSetOracles::default())
    },
    ..Subject::PLAIN
};
