//! The definitions of the cluster, compared with those of this build.

use kruise_api::drift::{self, Advice};
use kruise_api::path::DEFINITIONS;
use kruise_frame::json::text;
use kruise_install::{crds, manifests};
use kruise_runtime::ApiError;
use serde_json::Value;

use super::{Check, Finding, cluster::Cluster};

const SHOW: &str = "kruise crds --check";

/// Compares them. Definitions of other programs of the project are named.
pub(super) async fn check(cluster: &Cluster, namespace: &str) -> Check {
    let theirs = match theirs(cluster).await {
        Ok(theirs) => theirs,
        Err(error) => {
            let finding = Finding::unknown("definitions", format!("cannot be read: {error}"));
            return Check::new("definitions", "not compared", vec![finding]);
        }
    };
    let ours = manifests::definitions(namespace);
    let findings = theirs.iter().filter_map(|theirs| {
        let name = text(theirs, "/metadata/name");
        match ours.iter().find(|ours| crds::name(ours) == name) {
            Some(ours) => compared(name, ours, theirs),
            None => Some(Finding::note(
                name,
                "is not of this program, and is left alone; the program that acts on it goes on",
            )),
        }
    });
    let served_first = theirs.iter().filter_map(|theirs| {
        let text = crds::served_first(theirs)?;
        Some(Finding::note(crds::name(theirs), text))
    });
    let findings = findings.chain(served_first).collect();
    let installed = kruise_kinds::kinds().iter().copied().filter(|kind| {
        let name = kind.name();
        theirs.iter().any(|one| text(one, "/metadata/name") == name)
    });
    let (installed, all) = (installed.count(), ours.len());
    let summary = if installed == all {
        format!("all {all} are installed")
    } else {
        format!("{installed} of {all} are installed, and the swap adds the others")
    };
    Check::new("definitions", summary, findings)
}

/// The definitions of the project's groups.
async fn theirs(cluster: &Cluster) -> Result<Vec<Value>, ApiError> {
    let (mut theirs, mut pages) = (Vec::new(), cluster.pages(DEFINITIONS));
    while let Some(page) = pages.next().await? {
        theirs.extend(
            page.into_iter()
                .filter(|one| is_of_kruise(text(one, "/spec/group"))),
        );
    }
    Ok(theirs)
}

fn is_of_kruise(group: &str) -> bool {
    group.ends_with(".kruise.io")
}

fn compared(name: &str, ours: &Value, theirs: &Value) -> Option<Finding> {
    let differences = drift::compare(ours, theirs);
    let number = differences.len();
    let finding = match drift::advice(&differences) {
        Advice::Nothing => return None,
        Advice::Apply => Finding::note(
            name,
            format!("{number} differences, which the swap removes without a loss"),
        ),
        Advice::Newer => Finding::problem(
            name,
            format!(
                "knows more than this build ({number} differences): fields that only it has would be lost"
            ),
        ),
        Advice::Migrate => Finding::problem(
            name,
            "objects may be stored in a version that this build does not have",
        ),
        Advice::Recreate => Finding::problem(name, "the server does not change it to that of this build"),
    };
    Some(finding.advising(SHOW))
}
