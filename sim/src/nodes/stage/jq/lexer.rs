//! Text into tokens.

/// A piece of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name: of a function, a keyword, or a literal such as `true`.
    Name(String),
    /// `.name`
    Field(String),
    Text(String),
    Number(f64),
    /// Punctuation and operators.
    Sign(&'static str),
}

/// Longer signs first.
const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "<", ">", "+", "-", "|", "(", ")", "[", "]", "?", ".",
];

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = if first == '"' {
            string(rest)?
        } else if first.is_ascii_digit() {
            number(rest)?
        } else if is_name(first) {
            let (name, after) = name(rest);
            (Token::Name(name), after)
        } else {
            sign(rest)?
        };
        found.push(token);
        rest = after.trim_start();
    }
    Ok(found)
}

fn name(text: &str) -> (String, &str) {
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (name.to_owned(), rest)
}

fn number(text: &str) -> Result<(Token, &str), String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = digits.parse().map_err(|_| format!("{digits} is not a number"))?;
    Ok((Token::Number(number), rest))
}

/// A string as JSON writes it.
fn string(text: &str) -> Result<(Token, &str), String> {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find_map(|(at, c)| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at + 1)
    });
    let (quoted, rest) = text.split_at(end.ok_or("a string does not end")?);
    let value = serde_json::from_str(quoted).map_err(|_| format!("{quoted} is not a string"))?;
    Ok((Token::Text(value), rest))
}

fn sign(text: &str) -> Result<(Token, &str), String> {
    if let Some(rest) = text.strip_prefix('.') {
        if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let (name, rest) = name(rest);
            return Ok((Token::Field(name), rest));
        }
        if rest.starts_with('"') {
            return match string(rest)? {
                (Token::Text(name), rest) => Ok((Token::Field(name), rest)),
                _ => Err("a string was expected".into()),
            };
        }
    }
    for sign in SIGNS {
        if let Some(rest) = text.strip_prefix(sign) {
            return Ok((Token::Sign(sign), rest));
        }
    }
    let first: String = text.chars().take(1).collect();
    Err(format!("{first:?} is not supported"))
}
