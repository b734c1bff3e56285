//! Readers that go away, such as `kruise manifests | head -1`.

use crate::command::{Closed, Folder, unread};

#[test]
fn a_closed_pipe_ends_no_command_with_a_panic_or_an_error() {
    let folder = Folder::new();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let pod = write(
        "pod.yaml",
        "metadata: {name: web, labels: {app: web}}\nspec: {containers: [{name: main, image: 'm:1'}]}\n",
    );
    let sets = write(
        "sets.yaml",
        "kind: SidecarSet\nmetadata: {name: logs}\nspec: {selector: {matchLabels: {app: web}}, containers: []}\n",
    );
    for arguments in [
        &["manifests", "--image=example/kruise:1"][..],
        &["crds"],
        &["inject", "--filename", &pod, "--with", &sets],
        &["--help"],
        &["explain", "--help"],
        &["manager", "--help"],
    ] {
        let (code, errors) = unread(&folder, arguments, Closed::Output);
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[cfg(feature = "playground")]
#[test]
fn a_playground_whose_output_nobody_reads_ends_without_a_panic() {
    let (code, errors) = unread(&Folder::new(), &["playground"], Closed::Output);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("Broken pipe") && !errors.contains("panicked"),
        "{errors}"
    );
}

#[test]
fn an_error_that_nobody_can_read_keeps_its_exit_code() {
    for (arguments, code) in [
        (&["explain", "clone/web"][..], 1),
        (&["inject", "--filename", "/nowhere"], 1),
        (&["migrate", "storage"], 1),
        (&["crds", "--check"], 2),
        (&["manager", "--no-such-flag"], 2),
        (&["manager", "--logging-format=tape"], 2),
        (&["no-such-command"], 2),
    ] {
        let (found, _) = unread(&Folder::new(), arguments, Closed::Both);
        assert_eq!(found, Some(code), "{arguments:?}");
    }
}
