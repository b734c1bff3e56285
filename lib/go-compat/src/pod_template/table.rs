//! Shapes of Go structs: which members they have, in which order, and when Go leaves one out.

use serde_json::Value;

use super::{canonical, typed};

/// What a field or element holds.
#[derive(Debug)]
pub enum Kind {
    /// Left as it is.
    Any,
    /// A truth value.
    Bool,
    /// A whole number.
    Int,
    /// A whole number or a text.
    IntOrString,
    /// A list of these.
    List(&'static Kind),
    /// A map from texts to these.
    Map(&'static Kind),
    /// Absent is not the same as empty.
    Pointer(&'static Kind),
    /// A resource quantity.
    Quantity,
    /// A text.
    String,
    /// A struct.
    Struct(&'static Struct),
    /// A point in time.
    Time,
}

/// A Go struct; embedded structs are flattened.
#[derive(Debug)]
pub struct Struct {
    /// The members in their order.
    pub fields: &'static [Field],
}

/// A member of a Go struct.
#[derive(Debug)]
pub struct Field {
    /// Its name in JSON.
    pub name: &'static str,
    /// Whether it is written when it holds nothing.
    pub emit: Emit,
    /// What it holds.
    pub kind: Kind,
}

/// Whether Go writes a field that holds nothing. It always writes plain structs, whatever their tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// Also when it is empty.
    Always,
    /// `omitempty`.
    UnlessEmpty,
}

/// A member that is always written.
pub const fn always(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        emit: Emit::Always,
        kind,
    }
}

/// A member that is left out when empty.
pub const fn unless_empty(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        emit: Emit::UnlessEmpty,
        kind,
    }
}

impl Struct {
    /// The value as Go would write it.
    pub fn canonical(&self, value: &Value) -> Value {
        canonical::of_struct(value, self)
    }

    /// The text Go would write, members in the order of the struct.
    pub fn typed_json(&self, value: &Value) -> String {
        let mut out = String::new();
        typed::write_struct(&mut out, &self.canonical(value), self);
        out
    }

    /// The member of this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
