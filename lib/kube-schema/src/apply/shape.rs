//! What the schema says about merging a value.

use serde_json::{Map, Value};

use super::item;
use crate::table::{Apply, Kind, Table, TypeId};

/// The schema of a value.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'s>(Node<'s>);

#[derive(Clone, Copy, Debug)]
enum Node<'s> {
    /// A scalar, or something that is replaced as a whole.
    Leaf,
    /// Maps are merged, all else is replaced.
    Unknown,
    Struct(&'s Table, TypeId),
    Field(&'s Table, &'s Kind, &'s Apply),
    /// A part of a custom resource, and whether something above it keeps unknown members.
    Schema(&'s Value, bool),
    /// A custom resource.
    Custom(&'s Value),
}

/// How a value is merged.
pub(super) enum Atom<'s> {
    /// As a whole.
    Leaf,
    /// By its members.
    Members(Members<'s>),
    /// By its items.
    Items(Items<'s>),
}

/// The members of an object.
#[derive(Clone, Copy)]
pub(super) struct Members<'s>(Node<'s>);

/// The items of a list.
pub(super) struct Items<'s> {
    node: Node<'s>,
    /// The keys, and what an absent one stands for; none in a set of scalars.
    keys: Vec<(&'s str, Option<Value>)>,
}

impl<'s> Shape<'s> {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self(Node::Unknown);

    /// A built-in type.
    pub fn typed(table: &'s Table, of: TypeId) -> Self {
        Self(Node::Struct(table, of))
    }

    /// A custom resource with this schema.
    pub fn custom(schema: &'s Value) -> Self {
        Self(Node::Custom(schema))
    }

    /// How a value of it is merged. Without a schema that is as the value says; without a value, as if it had members.
    pub(super) fn atom(self, value: Option<&Value>) -> Atom<'s> {
        match (self.0.atom(), value) {
            (Atom::Members(_), Some(value)) if !value.is_object() && !value.is_null() => Atom::Leaf,
            (Atom::Items(_), Some(value)) if !value.is_array() && !value.is_null() => Atom::Leaf,
            // null says nothing about the kind of an unknown value
            (Atom::Members(Members(Node::Unknown)), Some(Value::Null)) => Atom::Leaf,
            (atom, _) => atom,
        }
    }
}

impl<'s> Node<'s> {
    fn atom(self) -> Atom<'s> {
        match self {
            Self::Leaf | Self::Field(_, _, Apply::Atomic) => Atom::Leaf,
            Self::Unknown | Self::Struct(..) | Self::Custom(_) => Atom::Members(Members(self)),
            Self::Field(table, kind, apply) => match (kind.target(), apply) {
                (Kind::Struct(of), _) => Atom::Members(Members(Self::Struct(table, *of))),
                (Kind::Map(_), _) => Atom::Members(Members(self)),
                (Kind::List(one), Apply::Set) => Atom::Items(Items {
                    node: Self::Field(table, one, &Apply::Plain),
                    keys: Vec::new(),
                }),
                (Kind::List(one), Apply::Keys(keys) | Apply::Leaves(keys)) => Atom::Items(Items {
                    node: match apply {
                        Apply::Leaves(_) => Self::Field(table, one, &Apply::Atomic),
                        _ => Self::Field(table, one, &Apply::Plain),
                    },
                    keys: keys
                        .iter()
                        .map(|(key, default)| typed_key(table, one, key, *default))
                        .collect(),
                }),
                _ => Atom::Leaf,
            },
            Self::Schema(schema, keeps) => by_schema(schema, keeps || keeps_unknown(schema)),
        }
    }
}

/// A key of a list of structs, and what an absent one stands for: nothing, as its type has it, unless the schema
/// says more.
fn typed_key<'s>(
    table: &Table,
    one: &Kind,
    key: &'s str,
    default: Option<&'s str>,
) -> (&'s str, Option<Value>) {
    let kind = match one.target() {
        Kind::Struct(of) => table.get(*of).field(key).map(|field| &field.kind),
        _ => None,
    };
    let default = match (default, kind) {
        (Some(text), _) => Some(text.into()),
        (None, Some(Kind::String(_))) => Some("".into()),
        (None, Some(Kind::Int(_))) => Some(0.into()),
        (None, _) => None,
    };
    (key, default)
}

fn text<'s>(schema: &'s Value, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn keeps_unknown(schema: &Value) -> bool {
    is(schema, "x-kubernetes-preserve-unknown-fields")
}

fn by_schema(schema: &Value, keeps: bool) -> Atom<'_> {
    if is(schema, "x-kubernetes-int-or-string") {
        return Atom::Leaf;
    }
    match (
        text(schema, "type"),
        text(schema, "x-kubernetes-map-type"),
        text(schema, "x-kubernetes-list-type"),
    ) {
        ("", ..) => Atom::Members(Members(Node::Unknown)),
        ("object", "atomic", _) => Atom::Leaf,
        ("object", ..) => Atom::Members(Members(Node::Schema(schema, keeps))),
        ("array", _, "set") => Atom::Items(Items {
            node: items(schema, keeps),
            keys: Vec::new(),
        }),
        ("array", _, "map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(|key| {
                let of = schema
                    .get("items")
                    .and_then(|one| one.get("properties")?.get(key));
                (key, of.and_then(|of| of.get("default")).cloned())
            });
            Atom::Items(Items {
                node: items(schema, keeps),
                keys: keys.collect(),
            })
        }
        _ => Atom::Leaf,
    }
}

fn items(schema: &Value, keeps: bool) -> Node<'_> {
    let one = schema.get("items");
    one.map_or(Node::Unknown, |one| Node::Schema(one, keeps))
}

/// Metadata is the same for all kinds.
fn metadata<'s>() -> Node<'s> {
    let table = Table::builtin();
    table
        .find("meta/v1.ObjectMeta")
        .map_or(Node::Unknown, |of| Node::Struct(table, of))
}

impl<'s> Members<'s> {
    /// The schema of a member, and whether it is one by name.
    pub(super) fn child(self, name: &str) -> (Shape<'s>, bool) {
        self.known(name).unwrap_or((Shape::UNKNOWN, false))
    }

    /// The same, unless the schema does not allow such a member.
    pub(super) fn known(self, name: &str) -> Option<(Shape<'s>, bool)> {
        self.node(name).map(|(node, is_named)| (Shape(node), is_named))
    }

    fn node(self, name: &str) -> Option<(Node<'s>, bool)> {
        match self.0 {
            Node::Struct(table, of) => {
                let field = table.get(of).field(name)?;
                Some((Node::Field(table, &field.kind, &field.apply), true))
            }
            Node::Field(table, kind, _) => match kind.target() {
                Kind::Map(one) => Some((Node::Field(table, one, &Apply::Plain), false)),
                _ => None,
            },
            Node::Custom(schema) => by_name(schema, name, true, keeps_unknown(schema)),
            Node::Schema(schema, keeps) => {
                by_name(schema, name, is(schema, "x-kubernetes-embedded-resource"), keeps)
            }
            Node::Unknown | Node::Leaf => Some((Node::Unknown, false)),
        }
    }
}

fn by_name<'s>(schema: &'s Value, name: &str, is_object: bool, keeps: bool) -> Option<(Node<'s>, bool)> {
    match name {
        "metadata" if is_object => return Some((metadata(), true)),
        "apiVersion" | "kind" if is_object => return Some((Node::Leaf, true)),
        _ => {}
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(property) = properties.and_then(|all| all.get(name)) {
        return Some((Node::Schema(property, keeps), true));
    }
    match schema.get("additionalProperties") {
        Some(one @ Value::Object(_)) => Some((Node::Schema(one, keeps), false)),
        Some(Value::Bool(true)) => Some((Node::Unknown, false)),
        // an object of which nothing is said takes anything
        None if keeps || properties.is_none_or(Map::is_empty) => Some((Node::Unknown, false)),
        Some(_) | None => None,
    }
}

impl<'s> Items<'s> {
    /// The schema of an item.
    pub(super) fn shape(&self) -> Shape<'s> {
        Shape(self.node)
    }

    /// The path element of an item, or why it has none.
    pub(super) fn key(&self, one: &Value) -> Result<String, String> {
        if self.keys.is_empty() {
            return match one {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".into())
                }
                scalar => Ok(item::by_value(scalar)),
            };
        }
        let Value::Object(members) = one else {
            let what = if one.is_null() {
                "a null element"
            } else {
                "non-map elements"
            };
            return Err(format!("associative list with keys may not have {what}"));
        };
        let found = self.keys.iter().filter_map(|(key, default)| {
            let value = members.get(*key).or(default.as_ref())?;
            Some(((*key).to_owned(), value.clone()))
        });
        let found: Map<String, Value> = found.collect();
        if found.is_empty() {
            let keys: Vec<String> = self.keys.iter().map(|(key, _)| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        Ok(item::by_keys(found))
    }
}

/// What a value is to be that has no parts of its own.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    Number,
    Text,
    Truth,
    Scalar,
    Members,
    Items,
    Anything,
}

impl Shape<'_> {
    /// What a value of it is to be.
    pub(super) fn wanted(self) -> Wanted {
        match self.0 {
            Node::Unknown | Node::Leaf => Wanted::Anything,
            Node::Struct(..) | Node::Custom(_) => Wanted::Members,
            Node::Field(_, kind, _) => match kind.target() {
                Kind::Int(_) | Kind::Float => Wanted::Number,
                Kind::String(_) | Kind::Bytes | Kind::Duration => Wanted::Text,
                Kind::Bool => Wanted::Truth,
                Kind::Struct(_) | Kind::Map(_) => Wanted::Members,
                Kind::List(_) => Wanted::Items,
                Kind::Any => Wanted::Anything,
                _ => Wanted::Scalar,
            },
            Node::Schema(schema, _) => match (text(schema, "type"), text(schema, "format")) {
                ("integer" | "number", _) => Wanted::Number,
                ("string", "" | "byte") => Wanted::Text,
                ("string", _) => Wanted::Scalar,
                ("boolean", _) => Wanted::Truth,
                ("object", _) => Wanted::Members,
                ("array", _) => Wanted::Items,
                _ => Wanted::Anything,
            },
        }
    }

    /// The same, with the parts of what is replaced as a whole.
    pub(super) fn opened(self) -> Self {
        match self.0 {
            Node::Field(table, kind, Apply::Atomic) => Self(Node::Field(table, kind, &Apply::Plain)),
            _ => self,
        }
    }

    /// The schema of the items of a list that is replaced as a whole.
    pub(super) fn inner(self) -> Self {
        Self(match self.0 {
            Node::Field(table, kind, _) => match kind.target() {
                Kind::List(one) => Node::Field(table, one, &Apply::Plain),
                _ => Node::Leaf,
            },
            Node::Schema(schema, keeps) if text(schema, "type") == "array" => items(schema, keeps),
            _ => Node::Leaf,
        })
    }
}
