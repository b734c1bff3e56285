//! Templates: YAML with places.
//!
//! A place is `{{ Now }}`, the time of the write, or `{{ .a.b }}`, a path into the object in jq; `| Quote` makes it
//! a quoted string. Whatever else Go's templates have (`range`, `if`, `with`, variables, functions) is refused when
//! the stage is read: what needs it is a [`super::Step`].

use jiff::Timestamp;
use serde_json::Value;

use super::jq::{Input, Query, text};
use crate::object::seconds;

/// A template that was understood.
#[derive(Clone, Debug)]
pub(in crate::nodes) struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Place { source: Source, quoted: bool },
}

#[derive(Clone, Debug)]
enum Source {
    Now,
    Path(Query),
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            pieces.push(Piece::Text(before.to_owned()));
            let (action, after) = after.split_once("}}").ok_or("template: {{ without }}")?;
            pieces.push(place(action.trim())?);
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// The YAML of the template for an object, as a value.
    pub(in crate::nodes) fn render(&self, object: &Value, now: Timestamp) -> Result<Value, String> {
        let input = Input::new(object);
        let mut yaml = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(piece) => yaml.push_str(piece),
                Piece::Place { source, quoted } => {
                    let plain = match source {
                        Source::Now => seconds(now),
                        Source::Path(query) => query.run(&input).first().map(text).unwrap_or_default(),
                    };
                    yaml.push_str(&if *quoted {
                        Value::from(plain).to_string()
                    } else {
                        plain
                    });
                }
            }
        }
        serde_saphyr::from_str(&yaml).map_err(|error| format!("template: {error}"))
    }
}

fn place(action: &str) -> Result<Piece, String> {
    let (source, quoted) = match action.rsplit_once('|') {
        Some((source, filter)) if filter.trim() == "Quote" => (source.trim(), true),
        _ => (action, false),
    };
    let source = if source == "Now" {
        Source::Now
    } else if source.starts_with('.') && !source.contains(char::is_whitespace) {
        Source::Path(Query::parse(source).map_err(|why| format!("template: {{{{ {action} }}}}: {why}"))?)
    } else {
        return Err(format!(
            "template: {{{{ {action} }}}} is not supported; there are Now, paths and | Quote"
        ));
    };
    Ok(Piece::Place { source, quoted })
}
