//! Scenarios that failed once. Each has the name of what it showed.

use std::path::Path;

use kruise_dst::{
    engine::{campaign::twice, scenario::Scenario},
    subjects::ALL,
};

#[test]
fn scenarios_that_failed_once_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut played = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario: Scenario = serde_saphyr::from_str(&text).unwrap();
        // An injected bug is in no ordinary build: such a case would show nothing.
        assert_eq!(scenario.bug, None, "{}", path.display());
        let (_, violation) = twice(ALL, &scenario).unwrap();
        assert_eq!(violation, None, "{}", path.display());
        played += 1;
    }
    assert!(played > 0);
}
