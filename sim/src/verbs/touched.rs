//! Which members of an object a write may change.
//!
//! What a write cannot change is as it was stored: it has its shape and its defaults, and is not checked again.

use serde_json::Value;

/// Members at the top of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// Any of them.
    All,
    /// These.
    Only(Vec<String>),
}

impl Touched {
    pub(super) const NOTHING: Self = Self::Only(Vec::new());

    /// Those that a merge patch names. A directive is about the whole object.
    pub(super) fn by_merge(patch: &Value) -> Self {
        match patch {
            Value::Object(members) if !members.keys().any(|name| name.starts_with('$')) => {
                Self::Only(members.keys().cloned().collect())
            }
            _ => Self::All,
        }
    }

    /// Those that the operations of a JSON patch name.
    pub(super) fn by_operations(patch: &Value) -> Self {
        let operations = patch.as_array().into_iter().flatten();
        let places = operations.flat_map(|one| ["path", "from"].map(|name| one.get(name)));
        let members = places.flatten().map(|place| {
            let below = place.as_str()?.strip_prefix('/')?;
            let member = below.split('/').next().unwrap_or(below);
            (!member.contains('~')).then(|| member.to_owned())
        });
        members.collect::<Option<Vec<_>>>().map_or(Self::All, Self::Only)
    }

    pub(super) fn has(&self, member: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(members) => members.iter().any(|one| one == member),
        }
    }

    /// Those of them that are named here too.
    pub(super) fn among(&self, names: &[&str]) -> Self {
        Self::Only(
            names
                .iter()
                .filter(|name| self.has(name))
                .map(|name| (*name).to_owned())
                .collect(),
        )
    }

    /// Takes the members out of an object that are not touched.
    pub(super) fn set_aside(&self, object: &mut Value) -> Vec<(String, Value)> {
        let (Value::Object(members), Self::Only(_)) = (object, self) else {
            return Vec::new();
        };
        let names: Vec<String> = members.keys().filter(|name| !self.has(name)).cloned().collect();
        names
            .into_iter()
            .filter_map(|name| members.remove_entry(&name))
            .collect()
    }
}

/// Puts members back that were set aside.
pub(super) fn put_back(object: &mut Value, members: Vec<(String, Value)>) {
    if let Value::Object(object) = object {
        object.extend(members);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Touched, put_back};

    fn only(members: &[&str]) -> Touched {
        Touched::Only(members.iter().map(|one| (*one).to_owned()).collect())
    }

    #[test]
    fn a_patch_touches_the_members_that_it_names() {
        assert_eq!(Touched::by_merge(&json!({"status": {"a": 1}})), only(&["status"]));
        assert_eq!(
            Touched::by_merge(&json!({"$patch": "replace", "status": {}})),
            Touched::All
        );
        assert_eq!(Touched::by_merge(&json!(1)), Touched::All);
        let moved = json!([{"op": "move", "from": "/spec/a", "path": "/status/b"}, {"op": "remove", "path": "/data"}]);
        assert_eq!(Touched::by_operations(&moved), only(&["status", "spec", "data"]));
        assert_eq!(
            Touched::by_operations(&json!([{"op": "replace", "path": "", "value": {}}])),
            Touched::All
        );
    }

    #[test]
    fn what_is_set_aside_comes_back_as_it_was() {
        let mut object = json!({"spec": {"a": [1, {"b": null}]}, "status": {"c": 2}, "kind": "K"});
        let before = object.clone();
        let aside = only(&["status"]).set_aside(&mut object);
        assert_eq!(object, json!({"status": {"c": 2}}));
        // what shaping makes of an absent member gives way
        object["spec"] = json!({});
        put_back(&mut object, aside);
        assert_eq!(object, before);
        assert_eq!(Touched::All.set_aside(&mut object), Vec::new());
    }
}
