//! Tokens into a tree, by recursive descent: `|` binds least, then `or`, `and`, comparisons, `+` and `-`.

use serde_json::Value;

use super::lexer::Token;
use super::{Expr, Function, Operator};

struct Parser<'a> {
    rest: &'a [Token],
}

pub(super) fn parse(tokens: &[Token]) -> Result<Expr, String> {
    let mut parser = Parser { rest: tokens };
    let expr = parser.pipe()?;
    match parser.rest.first() {
        None => Ok(expr),
        Some(token) => Err(format!("{token:?} is not expected")),
    }
}

/// Operators by how they bind, weakest first.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<", Operator::Less),
        ("<=", Operator::AtMost),
        (">", Operator::Greater),
        (">=", Operator::AtLeast),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
];

const FUNCTIONS: &[(&str, Function, bool)] = &[
    ("select", Function::Select, true),
    ("map", Function::Map, true),
    ("any", Function::Any, true),
    ("all", Function::All, true),
    ("length", Function::Length, false),
    ("sort", Function::Sort, false),
    ("tostring", Function::ToText, false),
    ("not", Function::Not, false),
    ("empty", Function::Empty, false),
];

impl Parser<'_> {
    fn take(&mut self, sign: &str) -> bool {
        let found = match self.rest.first() {
            Some(Token::Sign(found)) => *found == sign,
            Some(Token::Name(found)) => found == sign,
            _ => false,
        };
        if found {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) {
            return Ok(());
        }
        Err(match self.rest.first() {
            Some(token) => format!("{sign} was expected, not {token:?}"),
            None => format!("{sign} was expected, not the end"),
        })
    }

    fn pipe(&mut self) -> Result<Expr, String> {
        let left = self.level(LEVELS)?;
        if self.take("|") {
            return Ok(Expr::Pipe(Box::new(left), Box::new(self.pipe()?)));
        }
        Ok(left)
    }

    fn level(&mut self, levels: &[&[(&str, Operator)]]) -> Result<Expr, String> {
        let Some((operators, tighter)) = levels.split_first() else {
            return self.postfix();
        };
        let mut left = self.level(tighter)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take(sign)) {
            let right = self.level(tighter)?;
            left = Expr::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// A term and the path that follows it.
    fn postfix(&mut self) -> Result<Expr, String> {
        let mut expr = self.term()?;
        loop {
            // jq takes `.a.[]` for `.a[]`
            if matches!(self.rest, [Token::Sign("."), Token::Sign("["), ..]) {
                self.take(".");
            }
            if let Some(Token::Field(name)) = self.rest.first() {
                expr = Expr::Field(Box::new(expr), name.clone());
                self.rest = self.rest.get(1..).unwrap_or_default();
            } else if self.take("[") {
                expr = self.bracket(expr)?;
            } else if self.take("?") {
                expr = Expr::Try(Box::new(expr));
            } else {
                return Ok(expr);
            }
        }
    }

    fn bracket(&mut self, base: Expr) -> Result<Expr, String> {
        let base = Box::new(base);
        if self.take("]") {
            return Ok(Expr::Iterate(base));
        }
        let negative = self.take("-");
        let expr = match self.rest.first() {
            Some(Token::Text(name)) if !negative => Expr::Field(base, name.clone()),
            Some(Token::Number(number)) => {
                let index = *number as i64;
                Expr::At(base, if negative { -index } else { index })
            }
            Some(token) => return Err(format!("{token:?} is not supported as an index")),
            None => return Err("an index was expected, not the end".into()),
        };
        self.rest = self.rest.get(1..).unwrap_or_default();
        self.expect("]")?;
        Ok(expr)
    }

    fn term(&mut self) -> Result<Expr, String> {
        if let Some(Token::Field(name)) = self.rest.first() {
            self.rest = self.rest.get(1..).unwrap_or_default();
            return Ok(Expr::Field(Box::new(Expr::Identity), name.clone()));
        }
        if self.take(".") {
            return Ok(Expr::Identity);
        }
        if self.take("(") {
            let inner = self.pipe()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("[") {
            if self.take("]") {
                return Ok(Expr::Array(None));
            }
            let inner = self.pipe()?;
            self.expect("]")?;
            return Ok(Expr::Array(Some(Box::new(inner))));
        }
        let negative = self.take("-");
        let Some((first, rest)) = self.rest.split_first() else {
            return Err("an expression was expected, not the end".into());
        };
        self.rest = rest;
        match first {
            Token::Text(text) if !negative => Ok(Expr::Literal(text.as_str().into())),
            Token::Number(number) => Ok(Expr::Literal(if negative { -number } else { *number }.into())),
            Token::Name(name) if !negative => self.named(name),
            token => Err(format!("{token:?} is not expected")),
        }
    }

    fn named(&mut self, name: &str) -> Result<Expr, String> {
        match name {
            "true" => return Ok(Expr::Literal(true.into())),
            "false" => return Ok(Expr::Literal(false.into())),
            "null" => return Ok(Expr::Literal(Value::Null)),
            _ => {}
        }
        let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let (_, function, takes_argument) = found.ok_or_else(|| format!("{name} is not supported"))?;
        if !takes_argument {
            return Ok(Expr::Call(*function, None));
        }
        if !self.take("(") {
            return Err(format!("{name} needs an argument"));
        }
        let argument = self.pipe()?;
        self.expect(")")?;
        Ok(Expr::Call(*function, Some(Box::new(argument))))
    }
}
