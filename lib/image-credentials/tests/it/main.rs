//! Plugins as programs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use image_credentials::{Credential, Keyring, PluginConfig, PluginFailure, Plugins};

/// A folder with one plugin, `plugin`, a script of the shell. It is removed with the value.
///
/// There is one at a time: a process that starts while another thread writes a script has the script open for
/// writing, and then nobody can run it.
struct Folder {
    path: PathBuf,
    _one: MutexGuard<'static, ()>,
}

static ONE: Mutex<()> = Mutex::new(());

impl Folder {
    fn with(name: &str, script: &str) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::env::temp_dir().join(format!("image-credentials-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let folder = Self { path, _one: one };
        let plugin = folder.file("plugin");
        std::fs::write(&plugin, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    fn plugins(&self, limit: Duration) -> Plugins {
        self.configured(limit, "")
    }

    fn configured(&self, limit: Duration, more: &str) -> Plugins {
        let config = format!(
            "apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: plugin
  matchImages: ['*.example']
  defaultCacheDuration: 10s
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [one, 'two words']
  env: [{{name: FOLDER, value: '{}'}}]
{more}",
            self.path.display()
        );
        Plugins::with_limit(PluginConfig::parse(&config).unwrap(), &self.path, limit)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).unwrap();
    }
}

/// Enough for a shell on any machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Answers with a user whose password counts the runs.
const COUNTING: &str = r#"
cat > "$FOLDER/request"
echo "$1,$2" > "$FOLDER/arguments"
echo x >> "$FOLDER/runs"
printf '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",'
printf '"cacheKeyType":"Registry","auth":{"reg.example":{"username":"u","password":"%s"}}}' $(wc -l < "$FOLDER/runs")
"#;

async fn passwords(plugins: &Plugins, repository: &str, second: u64) -> Vec<String> {
    let mut keyring = Keyring::default();
    let errors = plugins
        .add_to(&mut keyring, repository, Duration::from_secs(second))
        .await;
    assert!(errors.is_empty(), "{errors:?}");
    let found = keyring.lookup(repository);
    found
        .into_iter()
        .map(|credential| match credential {
            Credential::Basic { password, .. } => password.clone(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn a_plugin_is_asked_once_while_its_answer_is_valid() {
    let folder = Folder::with("cached", COUNTING);
    let plugins = folder.plugins(PATIENCE);
    assert_eq!(passwords(&plugins, "reg.example/a", 0).await, ["1"]);
    let request = r#"{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"reg.example/a"}"#;
    assert_eq!(folder.text("request"), request);
    assert_eq!(folder.text("arguments"), "one,two words\n");
    // Another image of the same registry.
    assert_eq!(passwords(&plugins, "reg.example/b", 9).await, ["1"]);
    assert_eq!(passwords(&plugins, "reg.example/b", 10).await, ["2"]);
    // Of a registry for which it is not.
    assert!(passwords(&plugins, "reg.test/b", 10).await.is_empty());
    assert_eq!(folder.text("runs"), "x\nx\n");
}

#[tokio::test]
async fn questions_for_one_image_at_the_same_time_run_a_plugin_once() {
    let folder = Folder::with("shared", COUNTING);
    let plugins = folder.plugins(PATIENCE);
    let ask = || passwords(&plugins, "reg.example/a", 0);
    let (one, two, three) = tokio::join!(ask(), ask(), ask());
    assert_eq!([one, two, three], [["1"], ["1"], ["1"]]);
}

#[tokio::test]
async fn a_plugin_that_needs_a_service_account_is_not_run() {
    let folder = Folder::with("account", COUNTING);
    let plugins = folder.configured(PATIENCE, "  tokenAttributes: {requireServiceAccount: true}");
    assert!(passwords(&plugins, "reg.example/a", 0).await.is_empty());
    assert_eq!(folder.text("runs"), "");
    assert_eq!(plugins.unused().collect::<Vec<_>>(), ["plugin"]);
}

async fn failure(name: &str, script: &str, limit: Duration) -> PluginFailure {
    let folder = Folder::with(name, script);
    failed(&folder.plugins(limit)).await
}

async fn failed(plugins: &Plugins) -> PluginFailure {
    let mut keyring = Keyring::default();
    let mut errors = plugins
        .add_to(&mut keyring, "reg.example/a", Duration::ZERO)
        .await;
    assert!(keyring.lookup("reg.example/a").is_empty());
    errors.pop().unwrap().failure
}

#[tokio::test]
async fn a_plugin_that_fails_is_reported_with_its_error_output() {
    let failure = failure("failing", "echo no role for this node >&2; exit 3", PATIENCE).await;
    assert_eq!(failure.to_string(), "exit status: 3: no role for this node");
    let loud = "head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1";
    let text = self::failure("loud", loud, PATIENCE).await.to_string();
    assert_eq!(text, format!("exit status: 1: {}", "x".repeat(1024)));
}

#[tokio::test]
async fn a_plugin_that_hangs_is_killed() {
    let folder = Folder::with("hanging", r#"echo $$ > "$FOLDER/pid"; exec sleep 1000"#);
    // It may be killed before it wrote its number.
    let failure = failed(&folder.plugins(Duration::from_secs(1))).await;
    assert!(matches!(failure, PluginFailure::TimedOut(_)), "{failure}");
    let pid = folder.text("pid");
    if let Ok(pid) = pid.trim().parse::<u32>() {
        let is_alive = || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            state.contains("(sleep)") && !state.contains(") Z ")
        };
        while is_alive() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn a_plugin_that_answers_nonsense_is_an_error_without_its_answer() {
    let text = failure("nonsense", "echo hunter2", PATIENCE).await.to_string();
    assert_eq!(text, "its answer is malformed at line 1, column 1");
    let long = failure("long", "head -c 1048577 /dev/zero", PATIENCE).await;
    assert!(matches!(long, PluginFailure::TooLarge), "{long}");
}

#[tokio::test]
async fn a_plugin_that_is_not_there_is_an_error() {
    let folder = Folder::with("absent", "");
    let plugins = folder.plugins(PATIENCE);
    std::fs::remove_file(folder.file("plugin")).unwrap();
    let failure = failed(&plugins).await;
    assert!(matches!(failure, PluginFailure::Io(_)), "{failure}");
}
