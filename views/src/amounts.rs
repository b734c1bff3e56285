//! CPU and memory of a container.

use go_compat::quantity::Quantity;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Requests and limits of a container, for the two resources that can change while it runs. The unit is a
/// thousandth of a CPU or of a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmountsView {
    /// `requests.cpu`.
    pub cpu_request: Option<i64>,
    /// `requests.memory`.
    pub memory_request: Option<i64>,
    /// `limits.cpu`.
    pub cpu_limit: Option<i64>,
    /// `limits.memory`.
    pub memory_limit: Option<i64>,
}

impl AmountsView {
    /// The amount under `requests` or `limits` and a resource's name; none for other resources.
    pub fn get(&self, list: &str, resource: &str) -> Option<i64> {
        match (list, resource) {
            ("requests", "cpu") => self.cpu_request,
            ("requests", "memory") => self.memory_request,
            ("limits", "cpu") => self.cpu_limit,
            ("limits", "memory") => self.memory_limit,
            _ => None,
        }
    }
}

/// The amount of a quantity such as `500m` or `1Gi`, in thousandths; none if it cannot be read.
pub fn amount(quantity: &Value) -> Option<i64> {
    let thousandths = Quantity::from_json(quantity).ok()?.thousandths();
    Some(i64::try_from(thousandths).unwrap_or(i64::MAX))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    requests: Option<List>,
    limits: Option<List>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    cpu: Value,
    memory: Value,
}

/// Boxed, so that a container without amounts costs a pointer.
pub(crate) fn boxed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<AmountsView>>, D::Error> {
    let wire = Option::<Wire>::deserialize(from)?.unwrap_or_default();
    let (requests, limits) = (wire.requests.unwrap_or_default(), wire.limits.unwrap_or_default());
    let amounts = AmountsView {
        cpu_request: amount(&requests.cpu),
        memory_request: amount(&requests.memory),
        cpu_limit: amount(&limits.cpu),
        memory_limit: amount(&limits.memory),
    };
    Ok((amounts != AmountsView::default()).then(|| Box::new(amounts)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_read_by_value_and_what_cannot_be_read_is_none() {
        let read = |value: Value| boxed(value).unwrap().map(|amounts| *amounts);
        assert_eq!(read(json!(null)), None);
        assert_eq!(read(json!({"limits": null, "claims": []})), None);
        let amounts = read(json!({"requests": {"cpu": "0.25", "memory": "1Ki"},
                                  "limits": {"cpu": 1, "memory": "much", "nvidia.com/gpu": "1"}}))
        .unwrap();
        assert_eq!(amounts.get("requests", "cpu"), Some(250));
        assert_eq!(amounts.get("requests", "memory"), Some(1_024_000));
        assert_eq!(amounts.get("limits", "cpu"), Some(1000));
        assert_eq!(amounts.get("limits", "memory"), None);
        assert_eq!(amounts.get("limits", "nvidia.com/gpu"), None);
    }
}
