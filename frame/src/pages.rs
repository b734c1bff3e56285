//! Lists, a page at a time.

use kruise_api::meta::null_as_default;
use serde::Deserialize;

/// Objects of one list request.
pub const SIZE: u32 = 100;

/// A page of a list, with what is read of its objects.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct Page<T> {
    /// Where the next page begins.
    pub metadata: Metadata,
    /// An API server writes an empty list of metadata as `null`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub items: Vec<T>,
}

/// Where a page is in its list.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Where the next page begins; empty after the last one.
    #[serde(rename = "continue")]
    pub next: String,
    /// Number of objects after this page.
    pub remaining_item_count: u64,
}

/// The path of the page of a list that begins there; at the beginning if `next` is empty.
pub fn path(list: &str, next: &str) -> String {
    format!("{list}?limit={SIZE}&continue={next}")
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn a_list_without_objects_is_empty_however_it_says_so() {
        for items in ["", r#","items":null"#, r#","items":[]"#] {
            let page: Page<u8> = serde_json::from_str(&format!(r#"{{"metadata":{{}}{items}}}"#)).unwrap();
            assert_eq!(page.items, [0; 0], "{items}");
        }
    }
}
