//! The tutorials (`docs/first-*.md`, `docs/guestbook.md`, `docs/hot-upgrade.md`) and `docs/practise.md`, command by
//! command with the stock kubectl: each command must print what the page says.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Playground, Scratch};

/// A command of a page, and what the page says it prints.
struct Step {
    command: String,
    printed: Vec<String>,
}

/// What a page tells the reader to do.
#[derive(Default)]
struct Page {
    /// Names and contents of files: YAML blocks after a line that ends with the name, as in "Save this as `web.yaml`:".
    files: Vec<(String, String)>,
    /// Options of the playground that the page starts.
    options: Vec<String>,
    /// From the `console` blocks, without those that build and start a playground.
    steps: Vec<Step>,
}

impl Page {
    fn parse(markdown: &str) -> Self {
        let mut page = Self::default();
        let mut named = None;
        let mut lines = markdown.lines();
        while let Some(line) = lines.next() {
            match line {
                "```yaml" => {
                    let name: &str = named.take().expect("a line that names the file is before it");
                    let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
                    page.files.push((name.to_owned(), text.join("\n") + "\n"));
                }
                "```console" => page.console(lines.by_ref().take_while(|line| *line != "```")),
                _ => {
                    let name = line.strip_suffix("`:").and_then(|line| line.rsplit('`').next());
                    named = name
                        .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "yaml"))
                        .or(named);
                }
            }
        }
        page
    }

    fn console<'a>(&mut self, mut lines: impl Iterator<Item = &'a str>) {
        let mut steps: Vec<Step> = Vec::new();
        while let Some(line) = lines.next() {
            if let Some(command) = line.strip_prefix("$ ") {
                let mut command = command.to_owned();
                while command.ends_with('\\') {
                    command.push('\n');
                    command.push_str(lines.next().expect("a command ends"));
                }
                steps.push(Step {
                    command,
                    printed: Vec::new(),
                });
            } else {
                let step = steps.last_mut().expect("a block begins with a command");
                step.printed.push(line.to_owned());
            }
        }
        for step in &steps {
            if let Some(options) = step.command.strip_prefix("kruise playground ") {
                self.options = options.split_whitespace().map(str::to_owned).collect();
            }
        }
        let preparation = ["cargo ", "export ", "kruise playground"];
        steps.retain(|step| !preparation.iter().any(|one| step.command.starts_with(one)));
        self.steps.append(&mut steps);
    }

    /// Starts the playground of the page, in short times and with a kubeconfig of its own. The page names files
    /// from the root of the repository.
    fn start(&self, scratch: &Scratch) -> Playground {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut options = vec!["--fast".to_owned()];
        let mut words = self.options.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--kubeconfig" => drop(words.next()),
                "--load" => {
                    let file = root.join(words.next().expect("a file to load"));
                    options.extend([word.clone(), file.display().to_string()]);
                }
                _ => options.push(word.clone()),
            }
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        if options.contains(&"--bare") {
            Playground::start_until_written(scratch, scratch.file("kubeconfig"), &options)
        } else {
            Playground::start(scratch, &options)
        }
    }
}

/// Runs all commands of a page of `docs` in one shell, on a new playground, and compares what they print.
fn walk(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/{name}.md"));
    let page = Page::parse(&std::fs::read_to_string(file).unwrap());
    assert!(page.steps.len() > 9, "the page has commands");
    let scratch = Scratch::new(name);
    let playground = page.start(&scratch);
    for (name, text) in &page.files {
        std::fs::write(scratch.file(name), text).unwrap();
    }
    let mut script = "exec 2>&1\n".to_owned();
    for (number, step) in page.steps.iter().enumerate() {
        writeln!(script, "{}\nprintf '\\n{}\\n'", step.command, end_of(number)).unwrap();
    }
    let home = scratch.file("");
    let shell = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&home)
        .env("HOME", &home)
        .env("KUBECONFIG", &playground.kubeconfig)
        .env("PATH", path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let group = shell.id();
    let output = shell.wait_with_output().unwrap();
    // A page that went wrong may leave a manager behind, which is in the group of the shell.
    let end = format!("kill -KILL -- -{group} 2>/dev/null");
    let _none_left = Command::new("sh").args(["-c", &end]).status();
    let mut rest = String::from_utf8(output.stdout).unwrap();
    for (number, step) in page.steps.iter().enumerate() {
        let (printed, after) = rest
            .split_once(&format!("\n{}\n", end_of(number)))
            .unwrap_or_else(|| panic!("{} ended the shell: {rest}", step.command));
        let expected = step.printed.join("\n");
        assert_eq!(
            comparable(printed),
            comparable(&expected),
            "$ {}\nprints:\n{printed}\nand the page says:\n{expected}\n",
            step.command
        );
        rest = after.to_owned();
    }
    assert_eq!(playground.end("INT"), Some(0));
}

/// A line that is printed after a command.
fn end_of(number: usize) -> String {
    format!("=== end of command {number}")
}

/// `PATH` with the folders of the executables and of kubectl first.
fn path() -> std::ffi::OsString {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let kruise = Path::new(env!("CARGO_BIN_EXE_kruise"));
    let plugin = kruise.with_file_name("kubectl-kruise");
    assert!(plugin.exists(), "no kubectl-kruise: cargo build -p kruise-cli");
    let kubectl = kubectl().expect("kubectl: set KUBECTL, or build the lab's with `cargo xtask lab build`");
    let folders = [kruise, &kubectl].map(|program| program.parent().unwrap().to_owned());
    std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&before))).unwrap()
}

fn kubectl() -> Option<PathBuf> {
    let named = std::env::var_os("KUBECTL").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|folder| folder.join("kubectl"));
    let lab = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/kube-lab/bin/kubectl"));
    named
        .into_iter()
        .chain(installed)
        .chain(lab)
        .find(|path| path.exists())
}

/// The lines of an output, sorted, without what differs from run to run: names, addresses, nodes, ages, spaces. How
/// long ago a container was restarted is shown or not, depending on when.
fn comparable(output: &str) -> Vec<String> {
    let lines = output.lines().filter(|line| !line.trim().is_empty());
    let mut lines: Vec<String> = lines
        .map(|line| line.split_whitespace().map(masked).collect::<Vec<_>>().join(" "))
        .map(|line| line.replace(" (* ago)", ""))
        .map(|line| {
            match line
                .strip_prefix("rehearsal of ")
                .and_then(|rest| rest.split_once(" s: "))
            {
                Some((_, rest)) => format!("rehearsal of TIME: {rest}"),
                None => line,
            }
        })
        .collect();
    lines.sort();
    lines
}

fn masked(word: &str) -> String {
    if word.parse::<Ipv4Addr>().is_ok() {
        return "ADDRESS".to_owned();
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if word.strip_prefix("node-").is_some_and(is_number) {
        return "NODE".to_owned();
    }
    let mut text = String::new();
    let mut segment = String::new();
    for letter in word.chars().chain(['\n']) {
        if letter.is_ascii_alphanumeric() {
            segment.push(letter);
            continue;
        }
        text.push_str(match segment.as_str() {
            // One sign for both: `6d22h` may be either.
            segment if is_random(segment) || is_age(segment) => "*",
            segment => segment,
        });
        text.push(letter);
        segment.clear();
    }
    text.trim_end().to_owned()
}

/// True of the random part of a name: the API server and the controllers write it in these letters.
fn is_random(segment: &str) -> bool {
    segment.len() >= 5
        && segment
            .bytes()
            .all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte))
}

/// True of `5s`, `2m30s`, `6d21h` and the like.
fn is_age(segment: &str) -> bool {
    segment.starts_with(|first: char| first.is_ascii_digit())
        && segment.ends_with(['s', 'm', 'h', 'd', 'y'])
        && segment
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"smhdy".contains(&byte))
}

#[test]
fn a_page_is_read_as_its_reader_does() {
    let page = Page::parse(
        "```console\n$ kruise playground --bare --nodes 2\n```\n\nSave this as `a.yaml`:\n\n```yaml\nkind: A\n```\n\n\
         ```console\n$ export X=1\n$ one \\\n    more\nout\n$ two\n```\n",
    );
    assert_eq!(page.options, ["--bare", "--nodes", "2"]);
    assert_eq!(page.files, [("a.yaml".to_owned(), "kind: A\n".to_owned())]);
    let steps: Vec<_> = page.steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(steps, ["one \\\n    more", "two"]);
    assert_eq!(page.steps[0].printed, ["out"]);
}

#[test]
fn outputs_are_compared_without_what_differs_from_run_to_run() {
    let one = "NAME   READY\nweb-2bcd5  1/1  1 (3s ago)  10.0.0.7  node-2\nweb-zzzz9: waits";
    let same = "NAME READY\nweb-x7x7v: waits\nweb-hr7th  1/1  1  10.0.1.9  node-1\n";
    assert_eq!(comparable(one), comparable(same));
    for other in [
        one.replace("1/1", "0/1"),
        one.replace("web", "shop"),
        one.replace("NAME", ""),
    ] {
        assert_ne!(comparable(one), comparable(&other));
    }
}

#[test]
#[ignore = "needs kubectl and kubectl-kruise: cargo build -p kruise-cli && cargo test -p kruise --test it -- --ignored"]
fn cloneset_in_ten_minutes_prints_what_the_page_says() {
    walk("first-cloneset");
}

#[test]
#[ignore = "needs kubectl and kubectl-kruise: cargo build -p kruise-cli && cargo test -p kruise --test it -- --ignored"]
fn statefulset_in_ten_minutes_prints_what_the_page_says() {
    walk("first-statefulset");
}

#[test]
#[ignore = "needs kubectl and kubectl-kruise: cargo build -p kruise-cli && cargo test -p kruise --test it -- --ignored"]
fn daemonset_in_ten_minutes_prints_what_the_page_says() {
    walk("first-daemonset");
}

#[test]
#[ignore = "needs kubectl and kubectl-kruise: cargo build -p kruise-cli && cargo test -p kruise --test it -- --ignored"]
fn sidecarset_in_ten_minutes_prints_what_the_page_says() {
    walk("first-sidecarset");
}

#[test]
#[ignore = "needs kubectl and kubectl-kruise: cargo build -p kruise-cli && cargo test -p kruise --test it -- --ignored"]
fn the_guestbook_prints_what_the_page_says() {
    walk("guestbook");
}

#[test]
#[ignore = "needs kubectl and kubectl-kruise: cargo build -p kruise-cli && cargo test -p kruise --test it -- --ignored"]
fn a_sidecar_upgraded_without_a_gap_prints_what_the_page_says() {
    walk("hot-upgrade");
}

#[test]
#[ignore = "needs kubectl and kubectl-kruise: cargo build -p kruise-cli && cargo test -p kruise --test it -- --ignored"]
fn the_swap_in_a_playground_prints_what_the_page_says() {
    walk("practise");
}
