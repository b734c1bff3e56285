//! Label and field selectors, as query parameters spell them.

use serde_json::Value;

use crate::api::Call;
use crate::status::Failure;
use crate::store::Head;

/// Which objects a list or watch shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    /// Index of the field, whether it must equal, and the value.
    fields: Vec<(usize, bool, String)>,
    /// Fields that every object has: where, whether it must equal, and the value.
    names: Vec<(Place, bool, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Name,
    Namespace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl Selector {
    /// The selectors of a request.
    pub(crate) fn of_call(call: &Call<'_>) -> Result<Self, Failure> {
        let mut known: Vec<&str> = call
            .resource
            .traits
            .fields
            .iter()
            .map(|field| field.name)
            .collect();
        if call.resource.is_custom() {
            // only the words for unknown fields depend on it
            known.push("metadata.name");
        }
        let query = &call.query;
        Self::parse(query.text("labelSelector"), query.text("fieldSelector"), &known)
    }

    /// Reads both selectors; `fields` are the names of the resource's selectable fields.
    pub(crate) fn parse(labels: &str, fields: &str, known: &[&str]) -> Result<Self, Failure> {
        let mut selector = Self {
            labels: parse_labels(labels)
                .map_err(|why| Failure::bad_request(format!("unable to parse requirement: {why}")))?,
            ..Self::default()
        };
        for term in fields.split(',').filter(|term| !term.is_empty()) {
            selector.field(term, fields, known)?;
        }
        Ok(selector)
    }

    fn field(&mut self, term: &str, all: &str, known: &[&str]) -> Result<(), Failure> {
        let split = [("!=", false), ("==", true), ("=", true)]
            .into_iter()
            .find_map(|(operator, equal)| Some((term.split_once(operator)?, equal)));
        let Some(((name, value), equal)) = split else {
            let why = format!("invalid selector: '{all}'; can't understand '{term}'");
            return Err(Failure::bad_request(
                format!("unable to find {why}").replace("unable to find ", ""),
            ));
        };
        let value = value.to_owned();
        match name {
            "metadata.name" => self.names.push((Place::Name, equal, value)),
            "metadata.namespace" => self.names.push((Place::Namespace, equal, value)),
            _ => match known.iter().position(|one| *one == name) {
                Some(index) => self.fields.push((index, equal, value)),
                None => {
                    return Err(Failure::bad_request(if known.is_empty() {
                        format!(
                            "{name:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                        )
                    } else {
                        format!("field label not supported: {name}")
                    }));
                }
            },
        }
        Ok(())
    }

    /// A `metav1.LabelSelector`; an empty one shows everything.
    pub(crate) fn of_object(selector: &Value) -> Self {
        let text = |of: &Value, name: &str| {
            of.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let equal = selector.get("matchLabels").and_then(Value::as_object);
        let equal = equal.into_iter().flatten().map(|(key, value)| Requirement {
            key: key.clone(),
            test: Test::In(vec![value.as_str().unwrap_or_default().to_owned()]),
        });
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        let expressions = expressions.into_iter().flatten().map(|one| {
            let values = one.get("values").and_then(Value::as_array);
            let values = values
                .into_iter()
                .flatten()
                .filter_map(|value| value.as_str().map(str::to_owned))
                .collect();
            let test = match text(one, "operator").as_str() {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                _ => Test::Absent,
            };
            let key = text(one, "key");
            Requirement { key, test }
        });
        Self {
            labels: equal.chain(expressions).collect(),
            ..Self::default()
        }
    }

    /// Shows one name only.
    pub(crate) fn only(&mut self, name: &str) {
        self.names.push((Place::Name, true, name.to_owned()));
    }

    /// Whether everything is shown.
    pub(crate) fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Whether an object is shown.
    pub(crate) fn matches(&self, namespace: &str, name: &str, head: &Head) -> bool {
        self.labels.iter().all(|one| one.matches(head))
            && self.names.iter().all(|(place, equal, value)| {
                let found = match place {
                    Place::Name => name,
                    Place::Namespace => namespace,
                };
                (found == value) == *equal
            })
            && self.fields.iter().all(|(index, equal, value)| {
                let found = head.fields.get(*index).map_or("", AsRef::as_ref);
                (found == value) == *equal
            })
    }
}

impl Requirement {
    fn matches(&self, head: &Head) -> bool {
        let value = head.label(&self.key);
        let number = value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.iter().any(|one| one == value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Greater(than) => number.is_some_and(|number| number > *than),
            Test::Less(than) => number.is_some_and(|number| number < *than),
        }
    }
}

/// Splits at commas outside of parentheses.
fn terms(text: &str) -> Vec<&str> {
    let (mut out, mut depth, mut from) = (Vec::new(), 0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.extend(text.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    out.extend(text.get(from..));
    out
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    terms(text)
        .into_iter()
        .map(|term| requirement(term.trim()))
        .collect()
}

fn requirement(term: &str) -> Result<Requirement, String> {
    let of = |key: &str, test| {
        let key = key.trim();
        if key.is_empty() || key.contains([' ', '(', ')', '!', '=', '<', '>']) {
            return Err(format!("found '{term}', expected: identifier"));
        }
        let key = key.to_owned();
        Ok(Requirement { key, test })
    };
    let number = |text: &str| {
        text.trim()
            .parse::<i64>()
            .map_err(|_| format!("for 'Gt', 'Lt' operators, the value must be an integer: {text}"))
    };
    if let Some(key) = term.strip_prefix('!') {
        return of(key, Test::Absent);
    }
    for (operator, negated) in [
        (" notin ", true),
        (" in ", false),
        (" notin(", true),
        (" in(", false),
    ] {
        if let Some((key, values)) = term.split_once(operator) {
            let given = if operator.ends_with('(') {
                values
            } else {
                values.trim()
            };
            let values = match given.strip_prefix('(') {
                Some(values) => values,
                None if operator.ends_with('(') => given,
                None => return Err(format!("found '{given}' expected: '('")),
            };
            let values = values
                .strip_suffix(')')
                .ok_or_else(|| "found '', expected: ',' or ')'".to_owned())?;
            let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
            return of(
                key,
                if negated {
                    Test::NotIn(values)
                } else {
                    Test::In(values)
                },
            );
        }
    }
    if let Some((key, value)) = term.split_once("!=") {
        return of(key, Test::NotIn(vec![value.trim().to_owned()]));
    }
    for operator in ["==", "="] {
        if let Some((key, value)) = term.split_once(operator) {
            return of(key, Test::In(vec![value.trim().to_owned()]));
        }
    }
    if let Some((key, value)) = term.split_once('>') {
        return of(key, Test::Greater(number(value)?));
    }
    if let Some((key, value)) = term.split_once('<') {
        return of(key, Test::Less(number(value)?));
    }
    of(term, Test::Exists)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Selector;
    use crate::store::Head;

    #[test]
    fn selectors_select() {
        let pod = json!({"metadata": {"labels": {"app": "web", "n": "5"}}, "spec": {"nodeName": "n1"}});
        let head = Head::of(&pod, ["/spec/nodeName"].into_iter());
        let shows = |labels: &str, fields: &str| {
            let selector = Selector::parse(labels, fields, &["spec.nodeName"]).unwrap();
            selector.matches("ns", "p", &head)
        };
        for good in [
            "",
            "app",
            "app=web",
            "app==web",
            "app in (a,web)",
            "app notin (a)",
            "!x",
            "x!=1",
            "n>4",
            "app=web,n<6",
        ] {
            assert!(shows(good, ""), "{good}");
        }
        for bad in ["x", "app=b", "app!=web", "app in (a)", "!app", "n>5", "app,x"] {
            assert!(!shows(bad, ""), "{bad}");
        }
        assert!(shows(
            "",
            "spec.nodeName=n1,metadata.name=p,metadata.namespace!=x"
        ));
        assert!(!shows("", "spec.nodeName!=n1") && !shows("", "metadata.name=q"));
        for wrong in ["a in (b", "=", "a>x"] {
            assert!(Selector::parse(wrong, "", &[]).is_err(), "{wrong}");
        }
        assert!(Selector::parse("", "spec.foo=1", &[]).is_err());
    }
}
