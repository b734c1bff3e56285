//! Readers of texts, for fuzz targets.

use serde_json::{Value, json};

use crate::cel::{Expression, Variables};
use crate::nodes::jq;
use crate::selector::Selector;
use crate::store::Head;

/// Whether an object with these labels is listed with a label selector.
///
/// # Errors
/// The selector cannot be read.
pub fn selects(selector: &str, labels: &Value) -> Result<bool, String> {
    let selector = Selector::parse(selector, "", &[]).map_err(|failure| format!("{failure:?}"))?;
    let head = Head::of(&json!({"metadata": {"labels": labels}}), std::iter::empty());
    Ok(selector.matches("", "", &head))
}

/// Whether a match condition holds for an object that is created.
///
/// # Errors
/// The condition cannot be read (first), or has no value for the object (second).
pub fn holds(condition: &str, object: &Value) -> Result<Result<bool, String>, String> {
    let expression = Expression::parse(condition)?;
    Ok(expression.holds(&Variables {
        object,
        old_object: &Value::Null,
        request: &json!({"operation": "CREATE"}),
        of_policy: &Value::Null,
    }))
}

/// A filter in jq.
pub struct Filter(jq::Query);

impl Filter {
    /// Compiles it.
    ///
    /// # Errors
    /// What it lacks, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        jq::Query::parse(text).map(Self)
    }

    /// Its results for an object, as JSON.
    pub fn run(&self, object: &Value) -> Vec<String> {
        let results = self.0.run(&jq::Input::new(object));
        results.iter().map(ToString::to_string).collect()
    }
}
