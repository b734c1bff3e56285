//! Expressions into words.

use serde_json::{Number, Value};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    /// A number, a text, a truth value or null.
    Literal(Value),
    Symbol(&'static str),
}

/// Longer ones first.
const SYMBOLS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", ".", ",", "(", ")", "[", "]", "-", "{", "}",
];

/// Longest expression, as of servers.
const LENGTH: usize = 100_000;

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    if text.chars().count() > LENGTH {
        return Err(format!("it is longer than {LENGTH} characters"));
    }
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '\'' | '"' => string(rest, first)?,
            '0'..='9' => number(rest)?,
            'a'..='z' | 'A'..='Z' | '_' => word(rest)?,
            _ => {
                let found = SYMBOLS
                    .iter()
                    .find_map(|symbol| Some((*symbol, rest.strip_prefix(symbol)?)));
                let (symbol, after) = found.ok_or_else(|| format!("{first:?} is not supported"))?;
                (Token::Symbol(symbol), after)
            }
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

fn split(text: &str, inside: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !inside(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn word(text: &str) -> Result<(Token, &str), String> {
    let (name, rest) = split(text, |c| c.is_ascii_alphanumeric() || c == '_');
    if rest.starts_with(['\'', '"']) {
        return Err(format!("texts with the prefix {name:?} are not supported"));
    }
    let token = match name {
        "true" => Token::Literal(true.into()),
        "false" => Token::Literal(false.into()),
        "null" => Token::Literal(Value::Null),
        "in" => Token::Symbol("in"),
        name => Token::Name(name.to_owned()),
    };
    Ok((token, rest))
}

fn number(text: &str) -> Result<(Token, &str), String> {
    let (digits, rest) = split(text, |c| c.is_ascii_alphanumeric() || c == '.');
    let number: Number = digits
        .parse()
        .map_err(|_| format!("{digits:?} is not supported as a number"))?;
    Ok((Token::Literal(number.into()), rest))
}

fn string(text: &str, quote: char) -> Result<(Token, &str), String> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == quote => {
                let rest = text.get(at + 1..).unwrap_or_default();
                return Ok((Token::Literal(out.into()), rest));
            }
            '\\' => match chars.next() {
                Some((_, escaped @ ('\\' | '\'' | '"'))) => out.push(escaped),
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                _ => return Err("this escape in a text is not supported".to_owned()),
            },
            c => out.push(c),
        }
    }
    Err("a text does not end".to_owned())
}
