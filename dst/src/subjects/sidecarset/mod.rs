//! SidecarSets.

mod edit;
mod generate;
mod oracles;
mod start;
mod user;

use edit::Edit;
use oracles::SidecarSetOracles;
use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, NAME, SIDECARSETS};
use user::SidecarSetUser;

use crate::engine::{
    oracles::Oracles,
    resource::{NAMESPACES, PODS, REVISIONS, Resource},
    scenario::Scenario,
    subject::{Subject, User},
};

/// SidecarSets above a CloneSet or a Deployment.
pub struct SidecarSet;

impl Subject for SidecarSet {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::sidecarset::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[SIDECARSETS, PODS, REVISIONS, NAMESPACES]
    }

    fn is_always_watched(&self) -> bool {
        true
    }

    /// Its revisions.
    fn selectors(&self) -> &'static [&'static str] {
        &["kruise.io/sidecarset-name"]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let user = SidecarSetUser(scenario.start(NAME)?);
        Ok((Box::new(user), Box::new(SidecarSetOracles::default())))
    }
}
