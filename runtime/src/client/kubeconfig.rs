//! Which cluster a person means: kubectl's rules for kubeconfig files and the flags that choose in them.
//!
//! `--kubeconfig` names one file, which must exist. `KUBECONFIG` is a list, of which files may be missing;
//! without it there is `~/.kube/config`. The first file that has a context, cluster or user of a name, or a
//! current context, decides. Without any file the service account of the pod counts.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use kube_client::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// What a person chose. Everything else is as the kubeconfig has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The only kubeconfig.
    pub file: Option<PathBuf>,
    /// Context, instead of the current one.
    pub context: Option<String>,
    /// Cluster, instead of that of the context.
    pub cluster: Option<String>,
    /// User, instead of that of the context.
    pub user: Option<String>,
    /// Address of the API server, instead of that of the cluster.
    pub server: Option<String>,
    /// User to act as.
    pub act_as: Option<String>,
    /// Groups to act as.
    pub act_as_groups: Vec<String>,
    /// UID to act as.
    pub act_as_uid: Option<String>,
}

/// What a person chose cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// A kubeconfig cannot be read.
    #[error("{} cannot be used: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: KubeconfigError,
    },
    /// No kubeconfig exists, and this is no pod.
    #[error("no cluster: {}", missing(.0))]
    NoCluster(Vec<PathBuf>),
    /// The context that was chosen does not exist, or none was.
    #[error("{}", unknown(name, known))]
    Context {
        /// Its name; empty if none was chosen.
        name: String,
        /// Names of the contexts that there are.
        known: Vec<String>,
    },
    /// The kubeconfig does not say what a connection needs.
    #[error("the kubeconfig cannot be used: {0}")]
    Incomplete(KubeconfigError),
    /// The address of the API server that was chosen cannot be read.
    #[error("--server={0} is no address; write it as https://HOST:PORT")]
    Server(String),
}

fn missing(files: &[PathBuf]) -> String {
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let verb = if files.len() == 1 { "does" } else { "do" };
    let looked = match files.as_slice() {
        [] => "there is no home folder".to_owned(),
        _ => format!("{} {verb} not exist", files.join(", ")),
    };
    format!("{looked}, and this is no pod; pass --kubeconfig=FILE or export KUBECONFIG")
}

fn unknown(name: &str, known: &[String]) -> String {
    let known = known.join(", ");
    match (name, known.as_str()) {
        (_, "") => "the kubeconfig has no context".to_owned(),
        ("", _) => format!("the kubeconfig has no current context; choose one with --context: {known}"),
        _ => format!("context \"{name}\" does not exist; there are: {known}"),
    }
}

impl Choice {
    /// The parameters of the connection.
    pub(super) async fn config(&self) -> Result<Config, ChoiceError> {
        let files = match &self.file {
            Some(file) => vec![file.clone()],
            None => files(std::env::var_os("KUBECONFIG"), std::env::home_dir()),
        };
        self.config_of(&files).await
    }

    async fn config_of(&self, files: &[PathBuf]) -> Result<Config, ChoiceError> {
        let read = files
            .iter()
            .filter(|file| self.file.is_some() || file.exists())
            .map(|file| read(file));
        let all = read.collect::<Result<Vec<_>, _>>()?;
        let mut config = if all.is_empty() {
            Config::incluster().map_err(|_| ChoiceError::NoCluster(files.to_vec()))?
        } else {
            self.config_in(merged(all)).await?
        };
        if let Some(server) = &self.server {
            config.cluster_url = server.parse().map_err(|_| ChoiceError::Server(server.clone()))?;
        }
        if self.act_as.is_some() {
            let who = &mut config.auth_info;
            who.impersonate.clone_from(&self.act_as);
            who.impersonate_uid.clone_from(&self.act_as_uid);
            who.impersonate_groups = (!self.act_as_groups.is_empty()).then(|| self.act_as_groups.clone());
        }
        Ok(config)
    }

    async fn config_in(&self, all: Kubeconfig) -> Result<Config, ChoiceError> {
        let current = all.current_context.as_ref().filter(|name| !name.is_empty());
        let name = self.context.as_ref().or(current).cloned().unwrap_or_default();
        if !all.contexts.iter().any(|context| context.name == name) {
            let known = all.contexts.into_iter().map(|context| context.name);
            return Err(ChoiceError::Context {
                name,
                known: known.collect(),
            });
        }
        let options = KubeConfigOptions {
            context: Some(name),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        Config::from_custom_kubeconfig(all, &options)
            .await
            .map_err(ChoiceError::Incomplete)
    }
}

/// The files of a person: those that the variable lists, once each, or that in the home folder.
fn files(variable: Option<OsString>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let Some(list) = variable.filter(|list| !list.is_empty()) else {
        return home.into_iter().map(|home| home.join(".kube/config")).collect();
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for file in std::env::split_paths(&list) {
        if !file.as_os_str().is_empty() && !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

fn read(file: &Path) -> Result<Kubeconfig, ChoiceError> {
    Kubeconfig::read_from(file).map_err(|reason| ChoiceError::File {
        path: file.to_owned(),
        reason,
    })
}

/// Of each name, what the first file says.
fn merged(all: Vec<Kubeconfig>) -> Kubeconfig {
    let mut whole = Kubeconfig::default();
    for one in all {
        let is_set = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.is_empty());
        if !is_set(&whole.current_context) {
            whole.current_context = one.current_context;
        }
        add(&mut whole.clusters, one.clusters, |cluster| &cluster.name);
        add(&mut whole.auth_infos, one.auth_infos, |user| &user.name);
        add(&mut whole.contexts, one.contexts, |context| &context.name);
    }
    whole
}

fn add<T>(all: &mut Vec<T>, more: Vec<T>, name: impl Fn(&T) -> &String) {
    for one in more {
        if !all.iter().any(|have| name(have) == name(&one)) {
            all.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of one test with kubeconfigs, which is removed afterwards.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("kruise-kubeconfig-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// A kubeconfig with one context, cluster and user of this name.
        fn file(&self, name: &str, current: &str, namespace: &str) -> PathBuf {
            let path = self.0.join(name);
            let text = format!(
                "{{current-context: '{current}', clusters: [{{name: {name}, cluster: {{server: 'http://{name}.example'}}}}], \
                 users: [{{name: {name}, user: {{}}}}], contexts: [{{name: {name}, \
                 context: {{cluster: {name}, user: {name}, namespace: '{namespace}'}}}}]}}"
            );
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _removed = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_list_may_name_nothing_and_the_same_twice() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let list = |text: &str| files(Some(text.into()), Some("/home/me".into()));
        assert_eq!(list("/a::/b:/a"), paths(&["/a", "/b"]));
        assert_eq!(list(""), paths(&["/home/me/.kube/config"]));
        assert_eq!(files(None, None), paths(&[]));
    }

    #[tokio::test]
    async fn files_that_are_missing_are_passed_over_and_the_first_that_says_something_decides() {
        let folder = Folder::new("list");
        let files = [
            folder.0.join("missing"),
            folder.file("one", "", "shop"),
            folder.file("two", "two", "other"),
        ];
        let of = async |choice: Choice| {
            let config = choice.config_of(&files).await.unwrap();
            (config.cluster_url.to_string(), config.default_namespace)
        };
        let two = ("http://two.example/".to_owned(), "other".to_owned());
        assert_eq!(of(Choice::default()).await, two);
        let chosen = Choice {
            context: Some("one".into()),
            ..Choice::default()
        };
        let one = ("http://one.example/".to_owned(), "shop".to_owned());
        assert_eq!(of(chosen.clone()).await, one);
        let mixed = Choice {
            cluster: Some("two".into()),
            ..chosen
        };
        assert_eq!(of(mixed).await, (two.0, one.1));
        let server = Choice {
            server: Some("https://here:1".into()),
            ..Choice::default()
        };
        assert_eq!(of(server).await.0, "https://here:1/");
    }

    #[tokio::test]
    async fn who_acts_as_somebody_says_so_to_the_server() {
        let folder = Folder::new("as");
        let files = [folder.file("one", "one", "")];
        let choice = Choice {
            act_as: Some("bob".into()),
            act_as_groups: vec!["admins".into()],
            act_as_uid: Some("7".into()),
            ..Choice::default()
        };
        let who = choice.config_of(&files).await.unwrap().auth_info;
        assert_eq!(who.impersonate.as_deref(), Some("bob"));
        assert_eq!(who.impersonate_uid.as_deref(), Some("7"));
        assert_eq!(who.impersonate_groups, Some(vec!["admins".to_owned()]));
    }

    #[tokio::test]
    async fn what_is_not_there_is_named_with_what_is() {
        let folder = Folder::new("missing");
        let file = folder.file("one", "", "");
        let error = async |choice: Choice, files: &[PathBuf]| {
            let error = choice.config_of(files).await.unwrap_err();
            error.to_string()
        };
        let none = Choice::default();
        let missing = folder.0.join("missing");
        assert_eq!(
            error(none.clone(), std::slice::from_ref(&file)).await,
            "the kubeconfig has no current context; choose one with --context: one"
        );
        let other = Choice {
            context: Some("othr".into()),
            ..none.clone()
        };
        assert_eq!(
            error(other, std::slice::from_ref(&file)).await,
            "context \"othr\" does not exist; there are: one"
        );
        let named = Choice {
            file: Some(missing.clone()),
            ..none.clone()
        };
        let text = error(named, std::slice::from_ref(&missing)).await;
        assert!(
            text.starts_with(&format!("{} cannot be used", missing.display())),
            "{text}"
        );
        let text = error(none, std::slice::from_ref(&missing)).await;
        assert!(
            text.starts_with(&format!("no cluster: {} does not exist", missing.display())),
            "{text}"
        );
    }
}
