//! Lists, a page at a time.

use serde::Deserialize;

/// Objects of one list request.
pub(crate) const SIZE: u32 = 100;

/// A page of a list, with what is read of its objects.
#[derive(Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) metadata: Metadata,
    #[serde(default = "Vec::new")]
    pub(crate) items: Vec<T>,
}

/// Where a page is in its list.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    /// Where the next page begins; empty after the last one.
    #[serde(rename = "continue")]
    pub(crate) next: String,
    /// Number of objects after this page.
    pub(crate) remaining_item_count: u64,
}

/// The path of the page of a list that begins there; at the beginning if `next` is empty.
pub(crate) fn path(list: &str, next: &str) -> String {
    format!("{list}?limit={SIZE}&continue={next}")
}
