//! Shape of the type table.

/// What a field or element holds.
#[derive(Debug)]
pub(super) enum Kind {
    /// Left as it is.
    Any,
    Bool,
    Int,
    IntOrString,
    List(&'static Kind),
    Map(&'static Kind),
    /// Absent is not the same as empty.
    Pointer(&'static Kind),
    Quantity,
    String,
    Struct(&'static Struct),
    Time,
}

/// A Go struct; embedded structs are flattened.
#[derive(Debug)]
pub(super) struct Struct {
    pub(super) fields: &'static [Field],
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) emit: Emit,
    pub(super) kind: Kind,
}

/// Whether Go writes a field that holds nothing. It always writes plain structs, whatever their tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emit {
    Always,
    UnlessEmpty,
}

pub(super) const fn always(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        emit: Emit::Always,
        kind,
    }
}

pub(super) const fn unless_empty(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        emit: Emit::UnlessEmpty,
        kind,
    }
}

impl Struct {
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
