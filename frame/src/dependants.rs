//! Counts what a protected object has, at the API server, in pages.
//!
//! Pods and claims are decided by their status, so that they are read whole; of objects of a definition only the
//! metadata is.

use kruise_admission::deletion::dependants::Dependants;
use kruise_api::path::segment;
use kruise_runtime::{ApiError, Client};
use serde::{Deserialize, de::IgnoredAny};

/// Objects of a page.
const PAGE: u32 = 500;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<Item>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
    #[serde(default)]
    remaining_item_count: u64,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata {
    deletion_timestamp: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}

/// How many there are.
///
/// The number of objects of a definition is exact up to the first page with an object that is not being deleted.
/// Those after it are counted as the server estimates them, whether or not they are being deleted.
pub async fn count(client: &Client, dependants: &Dependants) -> Result<u64, ApiError> {
    let list = path(dependants);
    let (mut count, mut next) = (0, String::new());
    loop {
        let query = match next.as_str() {
            "" => format!("{list}?limit={PAGE}"),
            next => format!("{list}?limit={PAGE}&continue={}", segment(next)),
        };
        let is_by_metadata = matches!(dependants, Dependants::Objects { .. });
        let page: Page = if is_by_metadata {
            client.get_metadata(&query).await?
        } else {
            client.get(&query).await?
        };
        let items = page.items.iter().flatten();
        count += items
            .map(|item| u64::from(is_live(dependants, item)))
            .sum::<u64>();
        if is_by_metadata && count > 0 {
            return Ok(count.saturating_add(page.metadata.remaining_item_count));
        }
        if page.metadata.next.is_empty() {
            return Ok(count);
        }
        next = page.metadata.next;
    }
}

fn path(dependants: &Dependants) -> String {
    match dependants {
        Dependants::ActivePods { namespace } => format!("/api/v1/namespaces/{}/pods", segment(namespace)),
        Dependants::BoundClaims { namespace } => {
            format!("/api/v1/namespaces/{}/persistentvolumeclaims", segment(namespace))
        }
        Dependants::Objects {
            group,
            version,
            plural,
            ..
        } => format!(
            "/apis/{}/{}/{}",
            segment(group),
            segment(version),
            segment(plural)
        ),
    }
}

fn is_live(dependants: &Dependants, item: &Item) -> bool {
    let phase = item.status.phase.as_str();
    let counts = match dependants {
        Dependants::ActivePods { .. } => !matches!(phase, "Succeeded" | "Failed"),
        Dependants::BoundClaims { .. } => phase == "Bound",
        Dependants::Objects { .. } => true,
    };
    counts && item.metadata.deletion_timestamp.is_none()
}
