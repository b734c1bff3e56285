//! What is wrong with a value of a built-in type, without changing it.

use serde_json::{Map, Value};

use crate::mismatch::{TypeMismatch, integer, type_of};
use crate::table::{Kind, Table, TypeId};

/// What a server could not read, and what it would drop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Values of the wrong type.
    pub mismatches: Vec<TypeMismatch>,
    /// Paths of members that no field takes, such as `spec.containers[0].imagePullpolicy`.
    pub unknown: Vec<String>,
}

/// Finds all that is wrong with the types and names of a value's members. `null` fits everywhere, as Go reads it as
/// absent. `path` is the place of the value, such as `spec.template`.
pub fn inspect(table: &Table, of: TypeId, value: &Value, path: &str) -> Findings {
    let mut inspector = Inspector {
        table,
        found: Findings::default(),
    };
    inspector.read(&Kind::Struct(of), value, path);
    inspector.found
}

struct Inspector<'t> {
    table: &'t Table,
    found: Findings,
}

impl Inspector<'_> {
    fn read(&mut self, kind: &Kind, value: &Value, path: &str) {
        match (kind, value) {
            (Kind::Pointer(inner), value) => self.read(inner, value, path),
            (Kind::Any, _) | (_, Value::Null) => {}
            (Kind::Struct(of), Value::Object(members)) => self.members(*of, members, path),
            (Kind::List(item), Value::Array(items)) => {
                for (index, value) in items.iter().enumerate() {
                    self.read(item, value, &format!("{path}[{index}]"));
                }
            }
            (Kind::Map(item), Value::Object(members)) => {
                for (name, value) in members {
                    self.read(item, value, &format!("{path}[{name}]"));
                }
            }
            (kind, value) => {
                if let Some((wanted, found)) = misfit(kind, value) {
                    let path = path.to_owned();
                    self.found.mismatches.push(TypeMismatch { path, wanted, found });
                }
            }
        }
    }

    fn members(&mut self, of: TypeId, members: &Map<String, Value>, path: &str) {
        let of = self.table.get(of);
        for (name, value) in members {
            let path = format!("{path}.{name}");
            match of.field(name) {
                Some(field) => self.read(&field.kind, value, &path),
                None => self.found.unknown.push(path),
            }
        }
    }
}

/// What is wanted and what was found, if the value does not fit.
fn misfit(kind: &Kind, value: &Value) -> Option<(&'static str, &'static str)> {
    let fits = |wanted, fits: bool| (!fits).then(|| (wanted, type_of(value)));
    match kind {
        Kind::Int(go) => integer(value, *go == "int32"),
        Kind::IntOrString => match value {
            Value::String(_) => None,
            Value::Number(_) => integer(value, true),
            other => Some(("an integer or a string", type_of(other))),
        },
        Kind::String(_) | Kind::Bytes | Kind::Time | Kind::MicroTime | Kind::Duration => {
            fits("a string", value.is_string())
        }
        Kind::Bool => fits("a boolean", value.is_boolean()),
        Kind::Float => fits("a number", value.is_number()),
        Kind::Quantity => fits("a string or a number", value.is_string() || value.is_number()),
        Kind::List(_) => fits("an array", value.is_array()),
        Kind::Map(_) | Kind::Struct(_) => fits("an object", value.is_object()),
        Kind::Any | Kind::Pointer(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Findings, inspect};
    use crate::table::Table;

    fn found(template: &Value) -> Findings {
        let table = Table::builtin();
        let of = table.find("core/v1.PodTemplateSpec").unwrap();
        inspect(table, of, template, "spec.template")
    }

    fn container(member: &str, value: &Value) -> Value {
        json!({"spec": {"containers": [{"name": "a", member: value}]}})
    }

    #[test]
    fn a_wrong_type_is_named_by_path_with_both_types_in_the_words_of_json() {
        let at = "spec.template.spec.containers[0]";
        for (member, value, message) in [
            ("image", json!(1), "image: must be a string, not an integer"),
            ("tty", json!("yes"), "tty: must be a boolean, not a string"),
            ("command", json!("sh"), "command: must be an array, not a string"),
            (
                "ports",
                json!([{"containerPort": "80"}]),
                "ports[0].containerPort: must be an integer, not a string",
            ),
            (
                "resources",
                json!({"limits": {"cpu": true}}),
                "resources.limits[cpu]: must be a string or a number, not a boolean",
            ),
            (
                "livenessProbe",
                json!({"httpGet": {"port": []}}),
                "livenessProbe.httpGet.port: must be an integer or a string, not an array",
            ),
            (
                "securityContext",
                json!("root"),
                "securityContext: must be an object, not a string",
            ),
        ] {
            let found = found(&container(member, &value));
            let texts: Vec<String> = found.mismatches.iter().map(ToString::to_string).collect();
            assert_eq!(texts, [format!("{at}.{message}")]);
            assert!(found.unknown.is_empty());
        }
    }

    #[test]
    fn unknown_members_are_named_and_null_fits() {
        let template = json!({
            "metadata": {"labels": {"anything": "x"}, "creationTimestamp": null},
            "spec": {"containers": [{"name": "a", "imagePullpolicy": "Always", "env": null}], "Volumes": []},
        });
        let found = found(&template);
        assert_eq!(found.mismatches, []);
        let unknown = [
            "spec.template.spec.containers[0].imagePullpolicy",
            "spec.template.spec.Volumes",
        ];
        let mut names = found.unknown;
        names.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
        assert_eq!(names, unknown);
    }
}
