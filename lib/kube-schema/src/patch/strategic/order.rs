//! The order of a merged list.

use serde_json::Value;

/// What identifies an item of a list: its key, or all of it.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> Option<&'v Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

/// The items of a list, as far as it takes to find them again.
pub(super) struct Listed(Vec<Option<Value>>);

impl Listed {
    pub(super) fn of(items: &[Value], key: Option<&str>) -> Self {
        Self(items.iter().map(|item| identity(item, key).cloned()).collect())
    }

    /// Where an item is listed that is the same: equal, or equal in its key.
    pub(super) fn position(&self, item: &Value, key: Option<&str>) -> Option<usize> {
        let wanted = identity(item, key)?;
        self.0.iter().position(|one| one.as_ref() == Some(wanted))
    }

    /// As [`Listed::position`], of the items from a place on.
    pub(super) fn position_from(&self, from: usize, item: &Value, key: Option<&str>) -> Option<usize> {
        let wanted = identity(item, key)?;
        let mut rest = self.0.iter().enumerate().skip(from);
        rest.find(|(_, one)| one.as_ref() == Some(wanted))
            .map(|(at, _)| at)
    }
}

/// Items of the patch in the order of the patch, merged with the server's own. An item of the server comes before
/// one of the patch only where both were there before, in that order.
pub(super) fn normalize(
    mut of_patch: Vec<Value>,
    mut others: Vec<Value>,
    wanted: &Listed,
    before: &Listed,
    key: Option<&str>,
) -> Vec<Value> {
    of_patch.sort_by_cached_key(|item| wanted.position(item, key));
    others.sort_by_cached_key(|item| before.position(item, key));
    let mut out = Vec::with_capacity(of_patch.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in of_patch {
        let place = before.position(&item, key);
        while let Some(other) = others.next_if(|other| match (before.position(other, key), place) {
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
