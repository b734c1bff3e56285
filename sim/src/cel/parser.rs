//! Words into a tree, by recursive descent: choice, or, and, relation, unary, member.

use serde_json::{Map, Value};

use super::lexer::Token;
use super::{Function, Node, Operator, Quantifier};

/// Deepest nesting: whoever registers an expression must not exhaust the stack.
const DEPTH: usize = 100;
/// Most relations, or members, in a row, which make a deep tree too.
const LINKS: usize = 200;
/// Reads an expression of these variables.
pub(super) fn parse(tokens: &[Token], variables: &[&str]) -> Result<Node, String> {
    let mut parser = Parser {
        tokens,
        variables,
        at: 0,
        depth: 0,
        names: Vec::new(),
    };
    let node = parser.choice()?;
    match parser.peek() {
        None => Ok(node),
        Some(token) => Err(format!("unexpected {token:?}")),
    }
}

fn longer(links: &mut usize) -> Result<(), String> {
    *links += 1;
    if *links > LINKS {
        return Err("it is too long".to_owned());
    }
    Ok(())
}

/// Operands of `&&` or `||` in their order, as a tree that is as deep as it must be. Order and grouping do not matter
/// to what it comes to.
fn balanced(operator: Operator, mut operands: Vec<Node>) -> Node {
    if operands.len() > 1 {
        let right = balanced(operator, operands.split_off(operands.len() / 2));
        let left = balanced(operator, operands);
        return Node::Binary(operator, Box::new(left), Box::new(right));
    }
    operands.pop().unwrap_or(Node::Literal(Value::Null))
}

struct Parser<'a> {
    tokens: &'a [Token],
    variables: &'a [&'a str],
    at: usize,
    depth: usize,
    /// What the macros around range over.
    names: Vec<String>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Symbol(one)) if *one == symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.take(symbol) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(token) => format!("{symbol:?} is missing before {token:?}"),
            None => format!("{symbol:?} is missing at the end"),
        })
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            found => Err(format!("a name is missing, there is {found:?}")),
        }
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        Ok(())
    }

    fn choice(&mut self) -> Result<Node, String> {
        self.deeper()?;
        let mut node = self.or()?;
        if self.take("?") {
            let yes = self.choice()?;
            self.expect(":")?;
            node = Node::Choice(Box::new([node, yes, self.choice()?]));
        }
        self.depth -= 1;
        Ok(node)
    }

    fn or(&mut self) -> Result<Node, String> {
        let mut alternatives = vec![self.and()?];
        while self.take("||") {
            alternatives.push(self.and()?);
        }
        Ok(balanced(Operator::Or, alternatives))
    }

    fn and(&mut self) -> Result<Node, String> {
        let mut parts = vec![self.relation()?];
        while self.take("&&") {
            parts.push(self.relation()?);
        }
        Ok(balanced(Operator::And, parts))
    }

    fn relation(&mut self) -> Result<Node, String> {
        const RELATIONS: &[(&str, Operator)] = &[
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("in", Operator::In),
        ];
        let mut node = self.unary()?;
        let mut links = 0;
        while let Some((_, operator)) = RELATIONS.iter().find(|(symbol, _)| self.take(symbol)) {
            longer(&mut links)?;
            node = Node::Binary(*operator, Box::new(node), Box::new(self.unary()?));
        }
        Ok(node)
    }

    fn unary(&mut self) -> Result<Node, String> {
        if self.take("!") {
            self.deeper()?;
            let node = Node::Not(Box::new(self.unary()?));
            self.depth -= 1;
            return Ok(node);
        }
        if self.take("-") {
            let number = match self.primary()? {
                Node::Literal(number) => number.as_i64().and_then(i64::checked_neg),
                _ => None,
            };
            let number = number.ok_or("a sign is supported before whole numbers only")?;
            return Ok(Node::Literal(number.into()));
        }
        self.member()
    }

    fn member(&mut self) -> Result<Node, String> {
        let mut node = self.primary()?;
        let mut links = 0;
        loop {
            longer(&mut links)?;
            if self.take(".") {
                let name = self.name()?;
                node = if self.take("(") {
                    self.method(node, &name)?
                } else {
                    Node::Member(Box::new(node), name)
                };
            } else if self.take("[") {
                let index = self.choice()?;
                self.expect("]")?;
                node = Node::Index(Box::new(node), Box::new(index));
            } else {
                return Ok(node);
            }
        }
    }

    fn method(&mut self, of: Node, name: &str) -> Result<Node, String> {
        let of = Box::new(of);
        let quantifier = match name {
            "exists" => Some(Quantifier::Exists),
            "all" => Some(Quantifier::All),
            _ => None,
        };
        if let Some(quantifier) = quantifier {
            let variable = self.name()?;
            self.expect(",")?;
            self.names.push(variable.clone());
            let condition = self.choice()?;
            self.names.pop();
            self.expect(")")?;
            return Ok(Node::Macro(quantifier, of, variable, Box::new(condition)));
        }
        let function = match name {
            "startsWith" => Function::StartsWith,
            "endsWith" => Function::EndsWith,
            "contains" => Function::Contains,
            "size" => {
                self.expect(")")?;
                return Ok(Node::Size(of));
            }
            _ => return Err(format!("the function {name:?} is not supported")),
        };
        let argument = Box::new(self.choice()?);
        self.expect(")")?;
        Ok(Node::Function(function, of, argument))
    }

    fn primary(&mut self) -> Result<Node, String> {
        if self.take("(") {
            let node = self.choice()?;
            self.expect(")")?;
            return Ok(node);
        }
        if self.take("[") {
            return self.list();
        }
        if self.take("{") {
            self.expect("}")
                .map_err(|_| "maps with members are not supported".to_owned())?;
            return Ok(Node::Literal(Value::Object(Map::new())));
        }
        if let Some(Token::Literal(value)) = self.peek() {
            let value = value.clone();
            self.at += 1;
            return Ok(Node::Literal(value));
        }
        let name = self.name()?;
        if self.take("(") {
            return self.call(&name);
        }
        if !self.variables.contains(&name.as_str()) && !self.names.contains(&name) {
            return Err(format!("undeclared or unsupported reference to {name:?}"));
        }
        Ok(Node::Name(name))
    }

    fn list(&mut self) -> Result<Node, String> {
        let mut items = Vec::new();
        while !self.take("]") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(self.choice()?);
        }
        Ok(Node::List(items))
    }

    fn call(&mut self, name: &str) -> Result<Node, String> {
        if !matches!(name, "has" | "size") {
            return Err(format!("the function {name:?} is not supported"));
        }
        let argument = self.choice()?;
        self.expect(")")?;
        match (name, argument) {
            ("size", argument) => Ok(Node::Size(Box::new(argument))),
            (_, Node::Member(of, member)) => Ok(Node::Has(of, member)),
            _ => Err("has() takes a member".to_owned()),
        }
    }
}
