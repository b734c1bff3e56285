//! The order of a merged list.

use serde_json::Value;

/// Whether two items are the same: equal, or equal in their key.
pub(super) fn same(left: &Value, right: &Value, key: Option<&str>) -> bool {
    match key {
        Some(key) => left.get(key).is_some() && left.get(key) == right.get(key),
        None => left == right,
    }
}

fn position(items: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    items.iter().position(|one| same(one, item, key))
}

/// Items of the patch in the order the patch wants, woven with the server's own. An item of the server comes before
/// one of the patch only where both were there before, in that order.
pub(super) fn normalize(
    mut of_patch: Vec<Value>,
    mut others: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    of_patch.sort_by_key(|item| position(wanted, item, key));
    others.sort_by_key(|item| position(before, item, key));
    let mut out = Vec::with_capacity(of_patch.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in of_patch {
        let place = position(before, &item, key);
        while let Some(other) = others.next_if(|other| match (position(before, other, key), place) {
            (Some(other), Some(place)) => other < place,
            _ => false,
        }) {
            out.push(other);
        }
        out.push(item);
    }
    out.extend(others);
    out
}
