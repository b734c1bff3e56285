//! The shapes of Kubernetes' built-in API types, as Go encodes and strategic merge patches them.
//!
//! One text file, `builtin.txt`, holds a line per type and a line per field: JSON name, kind, number in protobuf,
//! whether Go omits it when empty, patch strategy and merge key, and how server-side apply merges it. It is read
//! once; everything borrows from it. `gen/` describes how it is made.

mod parse;

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// All known types.
#[derive(Debug)]
pub struct Table {
    types: Vec<Type>,
    names: BTreeMap<&'static str, TypeId>,
}

/// A struct type of a [`Table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeId(usize);

/// A struct.
#[derive(Debug)]
pub struct Type {
    /// Package and name, such as `core/v1.PodSpec`.
    pub name: &'static str,
    /// In the order of the Go struct.
    pub fields: Vec<Field>,
}

/// A member of a struct.
#[derive(Debug)]
pub struct Field {
    /// As in JSON.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Its number in protobuf. Members of an embedded struct, which JSON inlines, are in a message of their own: the
    /// numbers on the way down. Empty if protobuf has no such field.
    pub numbers: Vec<u32>,
    /// When Go leaves it out.
    pub omit: Omit,
    /// How a strategic merge patch treats it.
    pub merge: Merge,
    /// How server-side apply treats it.
    pub apply: Apply,
}

/// When Go leaves a field out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omit {
    /// Never: the zero value is written.
    Never,
    /// When empty (`omitempty`); structs are never empty.
    Empty,
    /// When zero (`omitzero`), or empty.
    Zero,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// Lists are merged instead of replaced.
    pub merges: bool,
    /// Maps are replaced instead of merged.
    pub replaces: bool,
    /// Members of a map that the patch does not name are dropped (`retainKeys`).
    pub retains_keys: bool,
    /// The key by which items of a merged list of objects are identified.
    pub key: Option<&'static str>,
}

/// How server-side apply treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Apply {
    /// Maps and structs by their members, lists as a whole.
    #[default]
    Plain,
    /// As a whole.
    Atomic,
    /// A list of scalars, each by itself.
    Set,
    /// A list of objects that these keys identify; with what an absent one stands for.
    Keys(Vec<(&'static str, Option<&'static str>)>),
    /// The same, of objects that are replaced as a whole.
    Leaves(Vec<(&'static str, Option<&'static str>)>),
}

/// What a value may be.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text; the name of the Go type.
    String(&'static str),
    /// `true` or `false`.
    Bool,
    /// A signed integer; the name of the Go type.
    Int(&'static str),
    /// A number.
    Float,
    /// Base64 text.
    Bytes,
    /// RFC 3339, whole seconds.
    Time,
    /// RFC 3339, microseconds.
    MicroTime,
    /// As Go prints durations.
    Duration,
    /// A resource quantity.
    Quantity,
    /// A count or a percentage.
    IntOrString,
    /// JSON that the server keeps unchanged.
    Any,
    /// Absent and empty differ.
    Pointer(Box<Kind>),
    /// A list.
    List(Box<Kind>),
    /// A map with text keys.
    Map(Box<Kind>),
    /// A struct.
    Struct(TypeId),
}

impl Table {
    /// The built-in types.
    pub fn builtin() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| parse::table(include_str!("builtin.txt")))
    }

    /// A type by package and name, such as `core/v1.Pod`.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.names.get(name).copied()
    }

    /// A type by id.
    pub fn get(&self, id: TypeId) -> &Type {
        // ids are only made by this table
        #[expect(clippy::indexing_slicing)]
        &self.types[id.0]
    }
}

impl Type {
    /// A field by its JSON name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// As Go prints it: `v1.PodSpec`.
    pub fn go_name(&self) -> &'static str {
        self.name.rsplit_once('/').map_or(self.name, |(_, name)| name)
    }
}

impl Kind {
    /// Without the pointer.
    pub fn target(&self) -> &Kind {
        match self {
            Self::Pointer(inner) => inner.target(),
            other => other,
        }
    }

    /// As Go prints the type, for the errors of its decoder.
    pub fn go_name(&self, table: &Table) -> String {
        match self {
            Self::String(name) | Self::Int(name) => (*name).to_owned(),
            Self::Bool => "bool".into(),
            Self::Float => "float64".into(),
            Self::Bytes => "[]uint8".into(),
            Self::Time => "v1.Time".into(),
            Self::MicroTime => "v1.MicroTime".into(),
            Self::Duration => "v1.Duration".into(),
            Self::Quantity => "resource.Quantity".into(),
            Self::IntOrString => "intstr.IntOrString".into(),
            Self::Any => "runtime.RawExtension".into(),
            Self::Pointer(inner) => inner.go_name(table),
            Self::List(item) => format!("[]{}", item.go_name(table)),
            Self::Map(item) => format!("map[string]{}", item.go_name(table)),
            Self::Struct(id) => table.get(*id).go_name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
