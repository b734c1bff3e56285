//! A tree and an input into a stream of values.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Expr, Function, Operator};

/// The expression does not fit the input.
pub(super) struct Misfit;

type Stream = Result<Vec<Value>, Misfit>;

pub(super) fn eval(expr: &Expr, input: &Value) -> Stream {
    if let Some(found) = borrow(expr, input) {
        return Ok(vec![found.clone()]);
    }
    match expr {
        Expr::Identity => Ok(vec![input.clone()]),
        Expr::Literal(value) => Ok(vec![value.clone()]),
        Expr::Field(base, name) => match borrow(base, input) {
            Some(found) => field(found, name).map(|one| vec![one]),
            None => each(base, input, |value| field(&value, name).map(|one| vec![one])),
        },
        Expr::At(base, index) => each(base, input, |value| at(&value, *index).map(|one| vec![one])),
        Expr::Iterate(base) => each(base, input, items),
        Expr::Try(inner) => Ok(eval(inner, input).unwrap_or_default()),
        Expr::Pipe(left, right) => each(left, input, |value| eval(right, &value)),
        Expr::Array(None) => Ok(vec![Value::Array(Vec::new())]),
        Expr::Array(Some(inner)) => Ok(vec![eval(inner, input)?.into()]),
        Expr::Binary(operator, left, right) => {
            let rights = eval(right, input)?;
            let lefts = eval(left, input)?;
            let pairs = rights
                .iter()
                .flat_map(|right| lefts.iter().map(move |left| (left, right)));
            pairs
                .map(|(left, right)| binary(*operator, left, right))
                .collect()
        }
        Expr::Call(function, argument) => call(*function, argument.as_deref(), input),
    }
}

/// A plain path, followed without copying what is not asked for.
fn borrow<'a>(expr: &Expr, input: &'a Value) -> Option<&'a Value> {
    match expr {
        Expr::Identity => Some(input),
        Expr::Field(base, name) => borrow(base, input)?.as_object()?.get(name),
        _ => None,
    }
}

fn each(base: &Expr, input: &Value, then: impl Fn(Value) -> Stream) -> Stream {
    let mut out = Vec::new();
    for value in eval(base, input)? {
        out.extend(then(value)?);
    }
    Ok(out)
}

fn field(value: &Value, name: &str) -> Result<Value, Misfit> {
    match value {
        Value::Object(members) => Ok(members.get(name).cloned().unwrap_or_default()),
        Value::Null => Ok(Value::Null),
        _ => Err(Misfit),
    }
}

fn at(value: &Value, index: i64) -> Result<Value, Misfit> {
    match value {
        Value::Array(items) => {
            let index = if index < 0 {
                items.len() as i64 + index
            } else {
                index
            };
            let found = usize::try_from(index).ok().and_then(|index| items.get(index));
            Ok(found.cloned().unwrap_or_default())
        }
        Value::Null => Ok(Value::Null),
        _ => Err(Misfit),
    }
}

fn items(value: Value) -> Stream {
    match value {
        Value::Array(items) => Ok(items),
        Value::Object(members) => Ok(members.into_iter().map(|(_, value)| value).collect()),
        _ => Err(Misfit),
    }
}

fn truth(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn binary(operator: Operator, left: &Value, right: &Value) -> Result<Value, Misfit> {
    let order = || compare(left, right);
    Ok(match operator {
        Operator::Or => (truth(left) || truth(right)).into(),
        Operator::And => (truth(left) && truth(right)).into(),
        Operator::Equal => order().is_eq().into(),
        Operator::Unequal => order().is_ne().into(),
        Operator::Less => order().is_lt().into(),
        Operator::AtMost => order().is_le().into(),
        Operator::Greater => order().is_gt().into(),
        Operator::AtLeast => order().is_ge().into(),
        Operator::Add => add(left, right)?,
        Operator::Subtract => subtract(left, right)?,
    })
}

fn add(left: &Value, right: &Value) -> Result<Value, Misfit> {
    Ok(match (left, right) {
        (Value::Null, other) | (other, Value::Null) => other.clone(),
        (Value::Number(a), Value::Number(b)) => (number(a) + number(b)).into(),
        (Value::String(a), Value::String(b)) => format!("{a}{b}").into(),
        (Value::Array(a), Value::Array(b)) => a.iter().chain(b).cloned().collect(),
        _ => return Err(Misfit),
    })
}

fn subtract(left: &Value, right: &Value) -> Result<Value, Misfit> {
    Ok(match (left, right) {
        (Value::Number(a), Value::Number(b)) => (number(a) - number(b)).into(),
        (Value::Array(a), Value::Array(b)) => a.iter().filter(|one| !b.contains(one)).cloned().collect(),
        _ => return Err(Misfit),
    })
}

fn number(number: &serde_json::Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

/// jq's total order: by type, then by value.
fn compare(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => number(a).total_cmp(&number(b)),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a
                .iter()
                .zip(b)
                .map(|(a, b)| compare(a, b))
                .find(|one| one.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(_), Value::Object(_)) if left == right => Ordering::Equal,
        (Value::Object(_), Value::Object(_)) => left.to_string().cmp(&right.to_string()),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn call(function: Function, argument: Option<&Expr>, input: &Value) -> Stream {
    let identity = &Expr::Identity;
    let argument = argument.unwrap_or(identity);
    let tested = || -> Result<Vec<bool>, Misfit> {
        let values = items(input.clone())?;
        let mut found = Vec::new();
        for value in values {
            found.extend(eval(argument, &value)?.iter().map(truth));
        }
        Ok(found)
    };
    let one = match function {
        Function::Select => {
            let kept = eval(argument, input)?.into_iter().filter(truth);
            return Ok(kept.map(|_| input.clone()).collect());
        }
        Function::Empty => return Ok(Vec::new()),
        Function::Map => {
            let mut out = Vec::new();
            for value in items(input.clone())? {
                out.extend(eval(argument, &value)?);
            }
            out.into()
        }
        Function::Any => tested()?.contains(&true).into(),
        Function::All => (!tested()?.contains(&false)).into(),
        Function::Length => match input {
            Value::Null => 0.into(),
            Value::String(text) => text.chars().count().into(),
            Value::Array(items) => items.len().into(),
            Value::Object(members) => members.len().into(),
            _ => return Err(Misfit),
        },
        Function::Sort => match input {
            Value::Array(items) => {
                let mut items = items.clone();
                items.sort_by(compare);
                items.into()
            }
            _ => return Err(Misfit),
        },
        Function::ToText => match input {
            Value::String(_) => input.clone(),
            other => other.to_string().into(),
        },
        Function::Not => (!truth(input)).into(),
    };
    Ok(vec![one])
}
