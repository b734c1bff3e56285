//! What an expression comes to.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::{Function, Node, Operator, Quantifier, Variables};

/// The values of names: those of macros, the innermost last.
struct Scope<'a> {
    variables: &'a Variables<'a>,
    names: Vec<(String, Value)>,
}

type Result<T> = std::result::Result<T, String>;

pub(super) fn truth(node: &Node, variables: &Variables<'_>) -> Result<bool> {
    let mut scope = Scope {
        variables,
        names: Vec::new(),
    };
    scope.truth(node).map_err(|why| match why.as_str() {
        NO_TRUTH => "the expression is no truth value".to_owned(),
        _ => why,
    })
}

pub(super) fn value(node: &Node, variables: &Variables<'_>) -> Result<Value> {
    let names = Vec::new();
    Scope { variables, names }.value(node)
}

const NO_TRUTH: &str = "no such overload: not a truth value";

fn overload<T>() -> Result<T> {
    Err("no such overload".to_owned())
}

impl Scope<'_> {
    fn truth(&mut self, node: &Node) -> Result<bool> {
        let value = self.value(node)?;
        value.as_bool().ok_or_else(|| NO_TRUTH.to_owned())
    }

    fn value(&mut self, node: &Node) -> Result<Value> {
        match node {
            Node::Literal(value) => Ok(value.clone()),
            Node::List(items) => items.iter().map(|item| self.value(item)).collect(),
            Node::Name(_) | Node::Member(..) => self.place(node).map(Cow::into_owned),
            Node::Index(of, index) => {
                let (of, index) = (self.value(of)?, self.value(index)?);
                at(&of, &index)
            }
            Node::Has(of, name) => {
                let of = self.place(of)?;
                Ok(of.get(name).is_some().into())
            }
            Node::Not(of) => Ok((!self.truth(of)?).into()),
            Node::Binary(Operator::Or, left, right) => self.either(true, left, right),
            Node::Binary(Operator::And, left, right) => self.either(false, left, right),
            Node::Binary(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                relation(*operator, &left, &right).map(Value::from)
            }
            Node::Choice(parts) => {
                let [condition, yes, no] = parts.as_ref();
                let chosen = if self.truth(condition)? { yes } else { no };
                self.value(chosen)
            }
            Node::Function(function, of, argument) => {
                let (of, argument) = (self.value(of)?, self.value(argument)?);
                let (Some(text), Some(part)) = (of.as_str(), argument.as_str()) else {
                    return overload();
                };
                Ok(match function {
                    Function::StartsWith => text.starts_with(part),
                    Function::EndsWith => text.ends_with(part),
                    Function::Contains => text.contains(part),
                }
                .into())
            }
            Node::Size(of) => match &*self.place(of)? {
                Value::String(text) => Ok(text.chars().count().into()),
                Value::Array(items) => Ok(items.len().into()),
                Value::Object(members) => Ok(members.len().into()),
                _ => overload(),
            },
            Node::Macro(quantifier, range, name, condition) => {
                let range = self.value(range)?;
                self.quantified(*quantifier, range, name, condition)
            }
        }
    }

    /// A value where it is, without copying what is around it.
    fn place<'s>(&'s mut self, node: &Node) -> Result<Cow<'s, Value>> {
        match node {
            Node::Name(name) => {
                let inner = self.names.iter().rev().find(|(one, _)| one == name);
                Ok(Cow::Borrowed(match (inner, name.as_str()) {
                    (Some((_, value)), _) => value,
                    (None, "object" | "self") => self.variables.object,
                    (None, "oldObject" | "oldSelf") => self.variables.old_object,
                    (None, "variables") => self.variables.of_policy,
                    (None, _) => self.variables.request,
                }))
            }
            Node::Member(of, name) => {
                let missing = || format!("no such key: {name}");
                match self.place(of)? {
                    Cow::Borrowed(of) => of.get(name).map(Cow::Borrowed).ok_or_else(missing),
                    Cow::Owned(of) => of.get(name).cloned().map(Cow::Owned).ok_or_else(missing),
                }
            }
            other => self.value(other).map(Cow::Owned),
        }
    }

    /// `||` for true, `&&` for false: one side that is the deciding value decides.
    fn either(&mut self, deciding: bool, left: &Node, right: &Node) -> Result<Value> {
        match self.truth(left) {
            Ok(truth) if truth == deciding => Ok(deciding.into()),
            Ok(_) => self.truth(right).map(Value::from),
            Err(why) => match self.truth(right) {
                Ok(truth) if truth == deciding => Ok(deciding.into()),
                _ => Err(why),
            },
        }
    }

    fn quantified(
        &mut self,
        quantifier: Quantifier,
        range: Value,
        name: &str,
        condition: &Node,
    ) -> Result<Value> {
        let items: Vec<Value> = match range {
            Value::Array(items) => items,
            // a map's range is its keys
            Value::Object(members) => members.into_iter().map(|(key, _)| key.into()).collect(),
            _ => return overload(),
        };
        let deciding = quantifier == Quantifier::Exists;
        let mut failure = None;
        for item in items {
            self.names.push((name.to_owned(), item));
            let truth = self.truth(condition);
            self.names.pop();
            match truth {
                Ok(truth) if truth == deciding => return Ok(deciding.into()),
                Ok(_) => {}
                Err(why) => failure = failure.or(Some(why)),
            }
        }
        match failure {
            Some(why) => Err(why),
            None => Ok((!deciding).into()),
        }
    }
}

fn at(of: &Value, index: &Value) -> Result<Value> {
    match (of, index) {
        (Value::Array(items), index) if index.is_i64() || index.is_u64() => {
            let item = index.as_u64().and_then(|at| items.get(usize::try_from(at).ok()?));
            item.cloned()
                .ok_or_else(|| format!("index out of bounds: {index}"))
        }
        (Value::Object(members), Value::String(key)) => {
            let member = members.get(key);
            member.cloned().ok_or_else(|| format!("no such key: {key}"))
        }
        _ => overload(),
    }
}

fn relation(operator: Operator, left: &Value, right: &Value) -> Result<bool> {
    match operator {
        Operator::Equal => return Ok(equal(left, right)),
        Operator::NotEqual => return Ok(!equal(left, right)),
        Operator::In => {
            return match (left, right) {
                (left, Value::Array(items)) => Ok(items.iter().any(|item| equal(left, item))),
                (Value::String(key), Value::Object(members)) => Ok(members.contains_key(key)),
                _ => overload(),
            };
        }
        _ => {}
    }
    let Some(order) = order(left, right) else {
        return overload();
    };
    Ok(match operator {
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

/// Numbers are equal across their types.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => order(left, right) == Some(Ordering::Equal),
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
