//! The part of the Common Expression Language that match conditions of webhooks, and rules and policies of ours are in.
//!
//! Literals, the empty map, `object`, `oldObject` and `request` (in rules of definitions `self` and `oldSelf`, in
//! policies also `variables`), members, indexes, `has`, comparisons, `in`, `&&`, `||`, `!`, `?:`, the macros
//! `exists` and `all`, and of functions `startsWith`, `endsWith`, `contains` and `size`. Anything else is refused
//! when the expression is read, by name: nothing is ignored. As in the language, `||` and `&&` hide an error on one
//! side if the other decides, and a member that is absent is an error.

mod eval;
mod lexer;
mod parser;

use serde_json::Value;

/// The variables of an expression.
pub(crate) struct Variables<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old_object: &'a Value,
    pub(crate) request: &'a Value,
    /// The variables of a policy by name; `null` elsewhere.
    pub(crate) of_policy: &'a Value,
}

/// An expression that was read.
#[derive(Debug)]
pub(crate) struct Expression(Node);

impl Expression {
    /// Reads an expression.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(parser::parse(
            &lexer::tokens(text)?,
            &["object", "oldObject", "request"],
        )?))
    }

    /// Reads an expression of a policy, which may name `variables`, too.
    pub(crate) fn parse_of_policy(text: &str) -> Result<Self, String> {
        let names = ["object", "oldObject", "request", "variables"];
        Ok(Self(parser::parse(&lexer::tokens(text)?, &names)?))
    }

    /// Reads a rule of a definition, with `self` and `oldSelf`: what is `object` and `oldObject` elsewhere.
    pub(crate) fn parse_rule(text: &str) -> Result<Self, String> {
        Ok(Self(parser::parse(&lexer::tokens(text)?, &["self", "oldSelf"])?))
    }

    /// Whether it is true of these variables.
    pub(crate) fn holds(&self, variables: &Variables<'_>) -> Result<bool, String> {
        eval::truth(&self.0, variables)
    }

    /// What it comes to.
    pub(crate) fn value(&self, variables: &Variables<'_>) -> Result<Value, String> {
        eval::value(&self.0, variables)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Literal(Value),
    List(Vec<Node>),
    /// `object`, `oldObject`, `request`, `variables`, `self`, `oldSelf`, or what a macro ranges over.
    Name(String),
    Member(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    /// Whether the member is there.
    Has(Box<Node>, String),
    Not(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Choice(Box<[Node; 3]>),
    Function(Function, Box<Node>, Box<Node>),
    Size(Box<Node>),
    /// Range, name and condition.
    Macro(Quantifier, Box<Node>, String, Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

/// Functions of two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    StartsWith,
    EndsWith,
    Contains,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantifier {
    Exists,
    All,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Expression, Variables};

    fn holds(text: &str) -> Result<bool, String> {
        let object = json!({"a": 1, "f": 1.5, "name": "web-1", "none": null, "list": [1, 2, 3],
            "owners": [{"kind": "X"}, {"kind": "Set", "controller": true}], "labels": {"x.y/z": "v"}});
        let request = json!({"operation": "CREATE"});
        Expression::parse(text)?.holds(&Variables {
            object: &object,
            old_object: &Value::Null,
            request: &request,
            of_policy: &Value::Null,
        })
    }

    #[test]
    fn expressions_mean_what_the_language_says() {
        for text in [
            "true && !false",
            "object.a == 1 && object.a != 2 && object.a >= 1 && object.a < 2 && object.f > 1",
            "oldObject == null && object != null && object.none == null",
            "request.operation in ['CREATE', \"UPDATE\"]",
            "'x.y/z' in object.labels && !('other' in object.labels) && object.labels['x.y/z'] == 'v'",
            "has(object.labels) && !has(object.annotations)",
            "object.name.startsWith('web-') && object.name.endsWith('1') && object.name.contains('b-')",
            "size(object.list) == 3 && object.list.size() == 3 && size('abc') == 3 && object.list[1] == 2",
            "object.owners.exists(o, has(o.controller) && o.controller && o.kind == 'Set')",
            "object.list.all(n, n > 0) && !object.list.all(n, n > 1) && !object.list.exists(n, n > 3)",
            "object.labels.exists(key, key == 'x.y/z')",
            "(object.a == 2 ? 'no' : 'yes') == 'yes'",
            "false || true && true",
            // a side that decides hides an error on the other
            "object.absent == 1 || true",
            "!(object.absent == 1 && false)",
            "object.owners.exists(o, o.controller)",
            "'it\\'s' == \"it's\" && -1 < 0",
            "[has(object.labels) ? object.labels : {}].exists(l, 'x.y/z' in l && l['x.y/z'] == 'v')",
            "![has(object.annotations) ? object.annotations : {}].exists(l, 'x.y/z' in l)",
            "size({}) == 0",
        ] {
            assert_eq!(holds(text), Ok(true), "{text}");
        }
    }

    #[test]
    fn alternatives_may_be_thousands() {
        let many = |last: &str| format!("{}{last}", "object.a == 2 || ".repeat(5_000));
        assert_eq!(holds(&many("object.a == 1")), Ok(true));
        assert_eq!(holds(&many("object.a == 3")), Ok(false));
        let all = |last: &str| format!("{}{last}", "object.a == 1 && ".repeat(5_000));
        assert_eq!(holds(&all("true")), Ok(true));
        assert_eq!(
            holds(&all("object.absent == 1")),
            Err("no such key: absent".to_owned())
        );
    }

    #[test]
    fn errors_are_no_answers() {
        for (text, why) in [
            ("object.absent == 1", "no such key: absent"),
            ("has(object.absent.more)", "no such key: absent"),
            ("object.owners.all(o, o.controller)", "no such key: controller"),
            ("object.list[7] == 1", "index out of bounds: 7"),
            ("object.name", "the expression is no truth value"),
            ("object.name < 1", "no such overload"),
            ("object.a.startsWith('x')", "no such overload"),
            ("oldObject.a == 1", "no such key: a"),
        ] {
            assert_eq!(holds(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "object.a + 1 == 2",
            "object.name.matches('x')",
            "authorizer.group('').check('x').allowed()",
            "size(object.list, 1)",
            "object.",
            "object.list.map(x, x)",
            "'open",
            "(true",
            "true true",
            "",
            "1 == 1.2.3",
            "r'raw' == ''",
            "o.list.exists(o, true)",
            "{'a': 1} == {}",
        ] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        let deep = "(".repeat(10_000) + "true" + &")".repeat(10_000);
        assert!(Expression::parse(&deep).is_err());
        assert!(Expression::parse(&("true".to_owned() + &" && true".repeat(13_000))).is_err());
        assert!(Expression::parse(&("1".to_owned() + &" == 1".repeat(10_000))).is_err());
        assert!(Expression::parse(&("object".to_owned() + &".a".repeat(10_000))).is_err());
        assert!(Expression::parse(&("!".repeat(10_000) + "true")).is_err());
    }
}
