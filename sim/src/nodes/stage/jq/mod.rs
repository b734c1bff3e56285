//! The part of jq that stage selectors use.
//!
//! Paths (`.a.b`, `."a/b"`, `["a/b"]`, `[0]`, `[]`, each with an optional `?`), pipes, comparisons, `and`, `or`, `+`, `-`,
//! parentheses, arrays, literals, and the functions `select`, `map`, `any`, `all`, `length`, `sort`, `tostring`, `not`,
//! `empty`. Everything else is refused when a stage is read.
//!
//! As in kwok, an expression that fails on an object yields nothing, and `null` counts as nothing.

mod eval;
mod lexer;
mod parser;

use serde_json::Value;

/// An expression that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query(Expr);

/// A syntax tree.
#[derive(Clone, Debug, PartialEq)]
enum Expr {
    Identity,
    Field(Box<Expr>, String),
    At(Box<Expr>, i64),
    Iterate(Box<Expr>),
    /// What fails yields nothing.
    Try(Box<Expr>),
    Pipe(Box<Expr>, Box<Expr>),
    Literal(Value),
    Array(Option<Box<Expr>>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Call(Function, Option<Box<Expr>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Add,
    Subtract,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Select,
    Map,
    Any,
    All,
    Length,
    Sort,
    ToText,
    Not,
    Empty,
}

impl Query {
    /// Reads an expression; the error says what is not understood.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parser::parse(&lexer::tokens(text)?).map(Self)
    }

    /// What the expression yields, without `null`s.
    pub(crate) fn run(&self, input: &Value) -> Vec<Value> {
        let mut values = eval::eval(&self.0, input).unwrap_or_default();
        values.retain(|value| !value.is_null());
        values
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Query;

    fn run(text: &str, input: &Value) -> Value {
        Query::parse(text)
            .unwrap_or_else(|why| panic!("{text}: {why}"))
            .run(input)
            .into()
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
            ("\"open", "string"),
            ("select", "argument"),
            (".a b", "b"),
        ] {
            let why = Query::parse(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
