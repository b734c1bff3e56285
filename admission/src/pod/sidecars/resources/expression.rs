//! The language in which resources of sidecars are computed.
//!
//! Numbers, percentages, quantities, the variable `cpu` or `memory`, `+ - * /`, unary minus, parentheses, and
//! `max(a, b)` and `min(a, b)`; precedence as usual, white space free, names in any case.
//!
//! A value is a number or a quantity. Where both meet in a sum or a comparison, a number counts as that many units.
//! Products and quotients need a number on one side, the right one for a quotient, and keep the quantity's suffixes.

use std::fmt;

use go_compat::quantity::Quantity;

/// A value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// A bare number.
    Number(f64),
    /// An amount of a resource.
    Quantity(Quantity),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It cannot be read from this text on; empty at its end.
    Syntax(String),
    /// A name that means nothing here.
    Name(String),
    /// An operation that these operands do not have.
    Operands(char),
    /// A division by nothing.
    Zero,
    /// The result is less than nothing.
    Negative,
    /// It is nested too deeply.
    Deep,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(rest) if rest.is_empty() => f.write_str("the expression ends too early"),
            Self::Syntax(rest) => write!(f, "cannot be read from {rest:?} on"),
            Self::Name(name) => write!(f, "{name:?} means nothing here"),
            Self::Operands(operator) => write!(f, "these operands have no '{operator}'"),
            Self::Zero => f.write_str("division by zero"),
            Self::Negative => f.write_str("the result is negative"),
            Self::Deep => f.write_str("it is nested too deeply"),
        }
    }
}

const DEEPEST: u32 = 64;

/// The value of an expression, as a quantity. `variable` is what `cpu` or `memory` stands for, whichever occurs: the
/// amount of the very resource that is computed.
pub fn evaluate(text: &str, variable: &Amount) -> Result<Quantity, Flaw> {
    let name = variable_of(text);
    let mut parser = Parser {
        rest: text,
        name,
        variable,
        depth: 0,
    };
    let value = parser.sum()?;
    if !parser.skip().is_empty() {
        return Err(Flaw::Syntax(parser.rest.to_owned()));
    }
    let result = match value {
        Amount::Quantity(quantity) => quantity,
        Amount::Number(number) if name == "memory" => {
            Quantity::from_thousandths(truncated(number).saturating_mul(1000))
        }
        Amount::Number(number) => in_units(number),
    };
    if result.is_negative() {
        Err(Flaw::Negative)
    } else {
        Ok(result)
    }
}

/// Does the text hold a number that cannot be read: one that counts as zero, or one that nothing can be made of?
pub fn has_malformed_number(text: &str) -> bool {
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let is_start = (c.is_ascii_digit() || c == '.') && !is_name(before);
        let (token, after) = if is_start {
            let (token, after) = literal(rest);
            // The latter may read nothing at all, so that going on would never end.
            if matches!(token, Literal::Malformed | Literal::None) {
                return true;
            }
            (' ', after)
        } else {
            (c, rest.get(c.len_utf8()..).unwrap_or_default())
        };
        before = token;
        rest = after;
    }
    false
}

/// The name of the variable: that of memory if it occurs.
fn variable_of(text: &str) -> &'static str {
    if text.to_ascii_lowercase().contains("memory") {
        "memory"
    } else {
        "cpu"
    }
}

/// Adds two amounts; the result has the suffixes of the first, unless that is nothing.
pub(super) fn sum(a: &Quantity, b: &Quantity) -> Quantity {
    let like = if a.is_zero() { b } else { a };
    like.with_thousandths(a.thousandths().saturating_add(b.thousandths()))
}

fn truncated(number: f64) -> i128 {
    number as i128
}

fn in_units(number: f64) -> Quantity {
    Quantity::from_thousandths(truncated(number * 1000.0))
}

struct Parser<'a> {
    rest: &'a str,
    name: &'static str,
    variable: &'a Amount,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn skip(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn takes(&mut self, symbol: char) -> bool {
        match self.skip().strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Result<Amount, Flaw> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Flaw::Deep);
        }
        let mut left = self.product()?;
        loop {
            if self.takes('+') {
                left = add(left, self.product()?, 1);
            } else if self.takes('-') {
                left = add(left, self.product()?, -1);
            } else {
                self.depth -= 1;
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> Result<Amount, Flaw> {
        let mut left = self.unary()?;
        loop {
            if self.takes('*') {
                left = multiply(left, self.unary()?)?;
            } else if self.takes('/') {
                left = divide(left, self.unary()?)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn unary(&mut self) -> Result<Amount, Flaw> {
        let mut is_negative = false;
        while self.takes('-') {
            is_negative = !is_negative;
        }
        let value = self.primary()?;
        Ok(match value {
            value if !is_negative => value,
            Amount::Number(number) => Amount::Number(-number),
            Amount::Quantity(quantity) => {
                Amount::Quantity(quantity.with_thousandths(quantity.thousandths().saturating_neg()))
            }
        })
    }

    fn primary(&mut self) -> Result<Amount, Flaw> {
        if self.takes('(') {
            let value = self.sum()?;
            return self.closed(value);
        }
        let rest = self.skip();
        if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let (literal, after) = literal(rest);
            self.rest = after;
            return match literal {
                Literal::Number(number) if self.takes('%') => Ok(Amount::Number(number / 100.0)),
                Literal::Number(number) => Ok(Amount::Number(number)),
                Literal::Quantity(quantity) => Ok(Amount::Quantity(quantity)),
                Literal::Malformed => Ok(Amount::Number(0.0)),
                Literal::None => Err(Flaw::Syntax(rest.to_owned())),
            };
        }
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            return Err(Flaw::Syntax(rest.to_owned()));
        }
        self.rest = after;
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "max" | "min" if self.takes('(') => {
                let (a, b) = (self.sum()?, self.second()?);
                self.closed(pick(a, b, lower == "max"))
            }
            name if name == self.name => Ok(self.variable.clone()),
            _ => Err(Flaw::Name(word.to_owned())),
        }
    }

    fn second(&mut self) -> Result<Amount, Flaw> {
        if self.takes(',') {
            self.sum()
        } else {
            Err(Flaw::Syntax(self.rest.to_owned()))
        }
    }

    fn closed(&mut self, value: Amount) -> Result<Amount, Flaw> {
        if self.takes(')') {
            Ok(value)
        } else {
            Err(Flaw::Syntax(self.rest.to_owned()))
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

enum Literal {
    Number(f64),
    Quantity(Quantity),
    /// Reader like a number with a unit and is none.
    Malformed,
    None,
}

/// Reads digits, and an exponent or a unit behind them.
fn literal(text: &str) -> (Literal, &str) {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = match digits.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => digits,
    };
    let after = match after.strip_prefix(['e', 'E']) {
        Some(exponent) => exponent
            .strip_prefix(['+', '-'])
            .unwrap_or(exponent)
            .trim_start_matches(|c: char| c.is_ascii_digit()),
        None => after,
    };
    let number = text.get(..text.len() - after.len()).unwrap_or_default();
    let rest = after.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if rest.len() == after.len() {
        let value = match number.parse() {
            Ok(value) => Literal::Number(value),
            Err(_) if number.contains(['e', 'E']) => Literal::Malformed,
            Err(_) => Literal::None,
        };
        return (value, rest);
    }
    if number.contains(['e', 'E']) || rest.starts_with(|c: char| c.is_ascii_digit()) {
        return (Literal::None, text);
    }
    let whole = text.get(..text.len() - rest.len()).unwrap_or_default();
    match whole.parse() {
        Ok(quantity) => (Literal::Quantity(quantity), rest),
        Err(_) => (Literal::Malformed, rest),
    }
}

fn as_quantity(amount: Amount) -> Quantity {
    match amount {
        Amount::Quantity(quantity) => quantity,
        Amount::Number(number) => in_units(number),
    }
}

fn add(a: Amount, b: Amount, sign: i8) -> Amount {
    if let (Amount::Number(a), Amount::Number(b)) = (&a, &b) {
        return Amount::Number(a + b * f64::from(sign));
    }
    let (a, b) = (as_quantity(a), as_quantity(b));
    let b = b.with_thousandths(b.thousandths().saturating_mul(i128::from(sign)));
    Amount::Quantity(sum(&a, &b))
}

fn pick(a: Amount, b: Amount, largest: bool) -> Amount {
    if let (Amount::Number(a), Amount::Number(b)) = (&a, &b) {
        return Amount::Number(if largest { a.max(*b) } else { a.min(*b) });
    }
    let (a, b) = (as_quantity(a), as_quantity(b));
    let takes_first = if largest { a >= b } else { a <= b };
    Amount::Quantity(if takes_first { a } else { b })
}

fn scaled(quantity: &Quantity, by: impl Fn(f64) -> f64) -> Amount {
    Amount::Quantity(quantity.with_thousandths(truncated(by(quantity.thousandths() as f64))))
}

fn multiply(a: Amount, b: Amount) -> Result<Amount, Flaw> {
    match (a, b) {
        (Amount::Number(a), Amount::Number(b)) => Ok(Amount::Number(a * b)),
        (Amount::Quantity(quantity), Amount::Number(factor))
        | (Amount::Number(factor), Amount::Quantity(quantity)) => {
            Ok(scaled(&quantity, |amount| amount * factor))
        }
        (Amount::Quantity(_), Amount::Quantity(_)) => Err(Flaw::Operands('*')),
    }
}

fn divide(a: Amount, b: Amount) -> Result<Amount, Flaw> {
    match (a, b) {
        (_, Amount::Number(0.0)) => Err(Flaw::Zero),
        (Amount::Number(a), Amount::Number(b)) => Ok(Amount::Number(a / b)),
        (Amount::Quantity(quantity), Amount::Number(by)) => Ok(scaled(&quantity, |amount| amount / by)),
        (_, Amount::Quantity(_)) => Err(Flaw::Operands('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, variable: &str) -> Result<String, Flaw> {
        let variable = Amount::Quantity(variable.parse().unwrap());
        evaluate(text, &variable).map(|quantity| quantity.canonical())
    }

    #[test]
    fn published_vectors() {
        for (text, variable, result) in [
            ("max(cpu*50%, 50m)", "1500m", "750m"),
            ("0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)", "1500m", "750m"),
            ("cpu+1", "1500m", "2500m"),
            ("memory*50%", "512Mi", "256Mi"),
            ("memory*50%", "1G", "500M"),
            ("memory-100Mi", "512Mi", "412Mi"),
            ("memory-100Mi", "1G", "895142400"),
            ("max(memory*33%, 100Mi)", "512Mi", "177167400960m"),
            ("1Gi*2", "1", "2Gi"),
            ("50foo", "1", "0"),
            ("10e", "1", "0"),
            ("cpu*10%", "0", "0"),
            ("Memory*50%", "512Mi", "256Mi"),
            ("200", "1", "200"),
            ("min(2,1) * -(-1) / 2", "1", "500m"),
            ("MAX(.5, 1e0)", "1", "1"),
            ("memory*0 + 1.9", "1", "1900m"),
            ("memory / 3 - memory / 3 + 7", "0", "7"),
        ] {
            assert_eq!(value(text, variable).as_deref(), Ok(result), "{text}");
        }
    }

    #[test]
    fn what_has_no_value() {
        for text in [
            "1Ei",
            "max(1,2,3)",
            "50%%",
            "cpu 2",
            "1.5.5",
            "0x10",
            "sum(1,2)",
            "max(cpu)",
            "cpu_x",
            "",
            "(",
            "cpu+",
            ".",
            "cpu*cpu",
            "100m/cpu",
            "cpu/0",
            "cpu-2",
            "cpu + memory",
            "é",
            "1 +",
            ")",
        ] {
            assert!(value(text, "1500m").is_err(), "{text}");
        }
        assert_eq!(value("cpu-2", "1500m"), Err(Flaw::Negative));
        assert_eq!(value("cpu*cpu", "1500m"), Err(Flaw::Operands('*')));
        assert_eq!(value(&"(".repeat(100_000), "1"), Err(Flaw::Deep));
    }

    #[test]
    fn numbers_that_count_as_zero_are_told() {
        assert!(has_malformed_number("50foo") && has_malformed_number("cpu + 10e"));
        for good in ["cpu*50%", "50m", "max(cpu*0.5, 1e3)", "cpu1", "1Ki"] {
            assert!(!has_malformed_number(good), "{good}");
        }
    }

    #[test]
    fn digits_or_letters_behind_a_unit_or_an_exponent_make_no_number() {
        for text in ["100m1", "1Gi5", "2x5", "1e5x"] {
            assert!(has_malformed_number(text), "{text}");
            assert!(matches!(value(text, "1"), Err(Flaw::Syntax(_))), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_to_an_end(
            any in ".*",
            close in "[0-9.eEmxGiKcpu+*/%(),_ -]{0,40}",
        ) {
            for text in [&any, &close] {
                has_malformed_number(text);
                let _value_or_flaw = value(text, "1500m");
            }
        }
    }
}
