//! Filters of stages, in jq.
//!
//! The core of the language, with `sort`, `length` and the like. Functions that read a clock, the environment or other
//! inputs are not defined, so that the results of a filter depend on the object alone. A filter is compiled once, when
//! its stage is read; one that uses what is not defined is refused then.
//!
//! As in kwok, a filter that fails on an object yields nothing, and `null` counts as nothing.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use jaq_core::compile::{self, Undefined};
use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, Error, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars, unwrap_valr};
use jaq_json::Val;
use serde::Deserialize as _;
use serde_json::Value;

/// A compiled filter.
#[derive(Clone)]
pub(crate) struct Query(Arc<Filter<JustLut<Val>>>);

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Query").field(&self.0.id).finish()
    }
}

/// An object, converted for filters when the first one needs that.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    pub(crate) object: &'a Value,
    converted: OnceCell<Val>,
}

impl<'a> Input<'a> {
    pub(crate) fn new(object: &'a Value) -> Self {
        let converted = OnceCell::new();
        Self { object, converted }
    }

    fn converted(&self) -> Val {
        // every JSON value is one of jq
        let convert = || Val::deserialize(self.object).unwrap_or_default();
        self.converted.get_or_init(convert).clone()
    }
}

impl Query {
    /// Compiles a filter; the error names what is not supported.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let arena = Arena::default();
        let modules = Loader::new(jaq_core::defs())
            .load(&arena, File { code: text, path: () })
            .map_err(syntax)?;
        let functions = jaq_core::funs()
            .chain(jaq_std::base_funs())
            .chain(jaq_json::funs());
        let filter = Compiler::default()
            .with_funs(functions)
            .compile(modules)
            .map_err(undefined)?;
        Ok(Self(Arc::new(filter)))
    }

    /// The results of the filter, without `null`s.
    pub(crate) fn run(&self, input: &Input<'_>) -> Vec<Val> {
        let context = Ctx::<JustLut<Val>>::new(&self.0.lut, Vars::new([]));
        let results = self.0.id.run((context, input.converted())).map(unwrap_valr);
        let mut values: Vec<Val> = results.collect::<Result<_, _>>().unwrap_or_default();
        values.retain(|value| !matches!(value, Val::Null));
        values
    }
}

/// A value as text: strings without quotes, others as JSON.
pub(crate) fn text(value: &Val) -> String {
    match value {
        Val::TStr(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.to_string(),
    }
}

/// Why a text is no filter, from its first error.
fn syntax<P>(errors: load::Errors<&str, P>) -> String {
    let missing = errors.into_iter().next().and_then(|(_, error)| match error {
        Error::Io(_) => None,
        Error::Lex(all) => all.first().map(|(what, at)| (what.as_str(), *at)),
        Error::Parse(all) => all.first().map(|(what, at)| (what.as_str(), *at)),
    });
    match missing {
        Some((what, "")) => format!("{what} expected at the end"),
        Some((what, at)) => format!("{what} expected before {at:?}"),
        None => "modules are not supported".to_owned(),
    }
}

fn undefined<P>(errors: compile::Errors<&str, P>) -> String {
    let first = errors.into_iter().find_map(|(_, names)| names.into_iter().next());
    match first {
        Some((name, Undefined::Filter(count))) => format!("{name} with {count} arguments is not supported"),
        Some((name, kind)) => format!("the {} {name} is not supported", kind.as_str()),
        None => "it does not compile".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Input, Query};

    fn run(text: &str, input: &Value) -> Value {
        let query = Query::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        let values = query.run(&Input::new(input));
        values
            .iter()
            .map(|value| serde_json::from_str::<Value>(&value.to_string()).unwrap())
            .collect()
    }

    #[test]
    fn expressions_yield_what_jq_yields() {
        let pod = json!({
            "metadata": {"labels": {"a/b": "x"}},
            "spec": {"containers": [{"image": "b:1"}, {"image": "a:1"}], "readinessGates": [{"conditionType": "G"}]},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]},
        });
        let cases = [
            (".status.phase", json!(["Running"])),
            (".status.podIP", json!([])),
            (".metadata.labels[\"a/b\"]", json!(["x"])),
            (".metadata.labels.\"a/b\"", json!(["x"])),
            (".spec.containers[1].image", json!(["a:1"])),
            (".spec.containers[-1].image", json!(["a:1"])),
            (".spec.containers[].image", json!(["b:1", "a:1"])),
            (
                ".status.conditions.[] | select( .type == \"Ready\" ) | .status",
                json!(["False"]),
            ),
            (".status.missing[].x", json!([])),
            (".status.missing[]?.x", json!([])),
            ("[.spec.containers[].image] | sort", json!([["a:1", "b:1"]])),
            (
                "(([.spec.containers[].image] | sort) == ([.status.containerStatuses[]?.image] | sort)) | tostring",
                json!(["false"]),
            ),
            (
                "((([.spec.readinessGates[]?.conditionType] + [\"ContainersReady\"]) - [.status.conditions[]? | select(.status==\"True\") | .type]) | length == 0) | tostring",
                json!(["false"]),
            ),
            (
                ".spec.containers | map(.image) | any(. == \"a:1\")",
                json!([true]),
            ),
            (
                ".spec.containers | length > 1 and (.[0].image != \"x\")",
                json!([true]),
            ),
            ("1 + 2 - 4 == -1 or false | not", json!([false])),
            ("empty", json!([])),
            ("\"a\" < \"b\"", json!([true])),
        ];
        for (text, expected) in cases {
            assert_eq!(run(text, &pod), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, part) in [
            (".a | foo", "foo"),
            (".a | test(\"x\")", "test"),
            (".a[", "end"),
            ("(.a", "end"),
            ("$x", "$"),
            ("\"open", "quote"),
            ("select", "argument"),
            (".a b", "b"),
            ("now", "now"),
            ("input", "input"),
            ("$ENV", "$ENV"),
        ] {
            let why = Query::parse(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
