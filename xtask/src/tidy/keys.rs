//! Keys of the wire are spelled in one place: `api/src/names`.

/// Where they are.
const HOME: &str = "api/src/names/";
/// Production code that reads and writes them.
const READERS: &[&str] = &[
    "api/src/",
    "views/src/",
    "plan-",
    "admission/src/",
    "agent-core/src/",
    "runtime/src/",
    "server/src/",
    "frame/src/",
    "kinds/src/",
    "manager/src/",
    "install/src/",
    "swap/src/",
    "playground/src/",
    "program/src/",
    "cli/src/",
    "kruise/src/",
];

/// Texts that hold a key of Kruise: a name after its domain, which no version of an API is.
pub(super) fn spelled(path: &str, text: &str) -> Vec<String> {
    let is_reader = READERS.iter().any(|folder| path.starts_with(folder)) && path.contains("/src/");
    let is_test = path.ends_with("tests.rs")
        || path.ends_with("testing.rs")
        || path.contains("/tests/")
        || path.starts_with("plan-test-kit/");
    if !is_reader || is_test || path.starts_with(HOME) {
        return Vec::new();
    }
    let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = production.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_start().starts_with("//") && has_key(line));
    lines
        .map(|(index, _)| format!("{path}:{}: keys are spelled in {HOME} only", index + 1))
        .collect()
}

/// Is there a text of a key in this line?
fn has_key(line: &str) -> bool {
    // every other part of a line is within quotes
    let texts = line.split('"').skip(1).step_by(2);
    let after = texts.flat_map(|text| text.split("kruise.io/").skip(1));
    after
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        .any(|rest| !rest.starts_with("v1"))
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn a_key_outside_of_its_place_is_found() {
        let key = "const KEY: &str = \"apps.kruise.io/a-key\";\n";
        assert_eq!(spelled("plan-kit/src/order.rs", key).len(), 1);
        for path in [
            "api/src/names/mod.rs",
            "plan-kit/src/order/tests.rs",
            "plan-test-kit/src/pods.rs",
            "dst/src/oracle.rs",
        ] {
            assert_eq!(spelled(path, key), Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn versions_groups_and_tests_are_none() {
        for line in [
            "\"apps.kruise.io/v1beta1\"",
            "format!(\"apps.kruise.io/{version}\")",
            "\"/apis/apps.kruise.io/v1alpha1/clonesets\"",
            "// \"apps.kruise.io/a-key\"",
            "#[cfg(test)]\nmod tests {\n \"kruise.io/a-key\"",
        ] {
            assert_eq!(spelled("cli/src/lookup.rs", line), Vec::<String>::new(), "{line}");
        }
    }
}
