//! How many objects the next page of a list may have, so that its bytes stay within [`PAGE_BYTES`].
//!
//! A page that is too large is requested again with a quarter of the objects. From each page that fits, the next one
//! follows: as many objects of that size as take three quarters of what fits, and at most twice as many as before.

use kube_cache::PAGE_LIMIT;

use crate::client::PAGE_BYTES;

/// What a page is meant to take.
const MEANT: usize = PAGE_BYTES / 4 * 3;

/// Objects of the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageSize(u32);

impl Default for PageSize {
    fn default() -> Self {
        Self(PAGE_LIMIT)
    }
}

impl PageSize {
    /// The limit to request where the reflector wants this one. `None` (all objects at once) is kept as long as no
    /// page was too large.
    pub(crate) fn limit(self, wanted: Option<u32>) -> Option<u32> {
        match wanted {
            None if self == Self::default() => None,
            wanted => Some(wanted.map_or(self.0, |wanted| wanted.min(self.0))),
        }
    }

    /// A page with this limit was too large. False if it cannot be smaller.
    pub(crate) fn shrink(&mut self, limit: Option<u32>) -> bool {
        let limit = limit.unwrap_or(PAGE_LIMIT);
        self.0 = (limit / 4).max(1);
        limit > 1
    }

    /// A page had so many objects and bytes.
    pub(crate) fn fitted(&mut self, objects: usize, bytes: usize) {
        if objects == 0 {
            return;
        }
        let fitting = u32::try_from(objects * MEANT / bytes.max(1)).unwrap_or(PAGE_LIMIT);
        self.0 = fitting.clamp(1, PAGE_LIMIT).min(self.0.saturating_mul(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits of the requests for a list of `count` objects of `size` bytes each.
    fn limits(count: u32, size: usize, wanted: Option<u32>) -> Vec<u32> {
        let (mut page_size, mut left, mut limits) = (PageSize::default(), count, Vec::new());
        while left > 0 {
            let limit = page_size.limit(wanted);
            limits.push(limit.unwrap_or(0));
            let objects = limit.unwrap_or(left).min(left);
            let bytes = objects as usize * size;
            if bytes > PAGE_BYTES {
                assert!(page_size.shrink(limit), "an object fits");
            } else {
                page_size.fitted(objects as usize, bytes);
                left -= objects;
            }
        }
        limits
    }

    #[test]
    fn a_list_of_small_objects_has_pages_as_client_go() {
        assert_eq!(limits(1200, 4 << 10, Some(500)), [500, 500, 500]);
        assert_eq!(limits(1200, 4 << 10, None), [0], "all at once, if that is wanted");
    }

    #[test]
    fn a_list_of_large_objects_costs_a_few_requests_more_than_its_bytes_need() {
        let of_a_mebibyte = limits(500, 1 << 20, Some(500));
        assert_eq!(of_a_mebibyte[..5], [500, 125, 31, 7, 6]);
        assert_eq!(of_a_mebibyte.len(), 3 + 84);
        assert_eq!(limits(50, 1 << 20, None)[..4], [0, 125, 31, 7]);
    }

    #[test]
    fn pages_grow_again_where_objects_are_small() {
        let mut page_size = PageSize(6);
        let mut grown = Vec::new();
        for _ in 0..8 {
            page_size.fitted(6, 6 << 10);
            grown.push(page_size.0);
        }
        assert_eq!(grown, [12, 24, 48, 96, 192, 384, 500, 500]);
    }

    #[test]
    fn one_object_that_does_not_fit_is_the_end() {
        let mut page_size = PageSize(1);
        assert!(!page_size.shrink(Some(1)));
        page_size.fitted(0, 40);
        assert_eq!(
            page_size.limit(None),
            Some(1),
            "a page without objects says nothing"
        );
    }
}
