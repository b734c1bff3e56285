//! Calls of the runtime and their answers, as data. They carry the facts of the Container Runtime Interface, version 1.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::containers::{Container, ContainerStatus};
use super::disk::Filesystem;
use super::images::Image;

/// A call that was made. Unique in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub(super) u64);

/// A call of the runtime of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Answer: [`Answer::Version`].
    Version,
    /// All images that are complete. Answer: [`Answer::Images`].
    ListImages,
    /// The image of a reference or an id. Answer: [`Answer::Image`].
    ImageStatus(String),
    /// The file system that holds the images. Answer: [`Answer::ImageFsInfo`].
    ImageFsInfo,
    /// Pulls an image, and ends when it is complete or has failed. Answer: [`Answer::Pulled`].
    PullImage(Pull),
    /// The containers that have all of these labels, ended ones included. Answer: [`Answer::Containers`].
    ListContainers(BTreeMap<String, String>),
    /// The container with this id. Answer: [`Answer::Container`].
    ContainerStatus(String),
    /// Runs a command in a running container. Answer: [`Answer::Output`].
    ExecSync(Exec),
    /// Stops a container, and ends when its process has ended; a container that has ended is left as it is. Answer:
    /// [`Answer::Stopped`].
    StopContainer {
        /// Id of the container.
        container: String,
        /// From the signal until the process is killed.
        grace: Duration,
    },
}

/// What a pull needs. Labels and annotations of a sandbox have no effect here, and are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Reference with a tag or a digest; without either it is `latest`.
    pub image: String,
    /// The credentials; `None` for an anonymous pull.
    pub login: Option<Login>,
}

/// A user of a registry. The password is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Name.
    pub username: String,
    /// Password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// A command in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// Id of the container.
    pub container: String,
    /// Program and arguments. `env` prints the environment. Of anything else the words count that say how long it
    /// takes and how it ends, as in the commands of a job's containers: `sleep 5`, `exit 3`, `false`.
    pub command: Vec<String>,
    /// When it is given up; zero for never.
    pub timeout: Duration,
}

/// What a call led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Call::Version`].
    Version(Version),
    /// To [`Call::ListImages`], in the order of digests.
    Images(Vec<Image>),
    /// To [`Call::ImageStatus`]; `None` if the node does not have it.
    Image(Option<Image>),
    /// To [`Call::ImageFsInfo`].
    ImageFsInfo(Filesystem),
    /// To [`Call::PullImage`]: the id of the image.
    Pulled(String),
    /// To [`Call::ListContainers`], in the order of pods and of their specifications.
    Containers(Vec<Container>),
    /// To [`Call::ContainerStatus`].
    Container(Box<ContainerStatus>),
    /// To [`Call::ExecSync`].
    Output(Output),
    /// To [`Call::StopContainer`].
    Stopped,
}

/// Which runtime it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its name, as ids of containers in the status of pods begin: `containerd`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the interface: `v1`.
    pub api_version: String,
}

/// What a command left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// 0 for success; 137 if the container ended first.
    pub exit_code: i32,
    /// Output.
    pub stdout: String,
    /// Error output.
    pub stderr: String,
}
