//! Answers of simulated runtimes, as a client of the container runtime interface gives them.
//!
//! An answer of another call than was made is malformed: that is a mistake here, and the agent must survive it.

use cri::{
    Auth, Container, ContainerStatus, Error, Exec, Filesystem, Filesystems, Image, Output, Pull, State,
    Version,
};
use kruise_agent::Filesystem as Room;
use kruise_sim::runtime::{self as sim, Answer};

fn malformed<T>() -> Result<T, Error> {
    Err(Error::Malformed("it belongs to another call".into()))
}

/// An error, by its number as [`cri`] reads it.
pub fn error(error: sim::Error) -> Error {
    let (code, message) = (error.code(), error.to_string());
    match error {
        sim::Error::Unauthorized(_) => Error::CredentialsRefused(message),
        _ if code == 4 => Error::TimedOut(message),
        _ if code == 5 => Error::NotFound(message),
        _ if code == 14 => Error::Unavailable(message),
        _ => Error::Other { code, message },
    }
}

/// To [`sim::Call::Version`].
pub fn version(answer: Answer) -> Result<Version, Error> {
    match answer {
        Answer::Version(version) => Ok(Version {
            name: version.name,
            version: version.version,
            api_version: version.api_version,
        }),
        _ => malformed(),
    }
}

/// To [`sim::Call::ImageFsInfo`]. Images and containers share a file system.
pub fn filesystems(answer: Answer) -> Result<Filesystems, Error> {
    let Answer::ImageFsInfo(found) = answer else {
        return malformed();
    };
    let one = Filesystem {
        mountpoint: found.mountpoint.into(),
        used_bytes: found.used_bytes,
        used_inodes: None,
    };
    Ok(Filesystems {
        images: vec![one.clone()],
        containers: vec![one],
    })
}

/// What the system says of the file system.
pub fn room(answer: Answer) -> Result<Room, Error> {
    match answer {
        Answer::ImageFsInfo(found) => Ok(Room {
            free: found.free_bytes,
            size: found.size_bytes,
        }),
        _ => malformed(),
    }
}

/// To [`sim::Call::ListImages`].
pub fn images(answer: Answer) -> Result<impl Iterator<Item = Image>, Error> {
    let Answer::Images(all) = answer else {
        return malformed();
    };
    Ok(all.into_iter().map(|image| Image {
        id: image.id,
        tags: image.tags,
        digests: image.digests,
        bytes: image.bytes,
    }))
}

/// To [`sim::Call::PullImage`].
pub fn pulled(answer: Answer) -> Result<String, Error> {
    match answer {
        Answer::Pulled(id) => Ok(id),
        _ => malformed(),
    }
}

/// To [`sim::Call::ListContainers`].
pub fn containers(answer: Answer) -> Result<impl Iterator<Item = Container>, Error> {
    match answer {
        Answer::Containers(all) => Ok(all.into_iter().map(container)),
        _ => malformed(),
    }
}

/// To [`sim::Call::ContainerStatus`].
pub fn status(answer: Answer) -> Result<ContainerStatus, Error> {
    let Answer::Container(found) = answer else {
        return malformed();
    };
    let (image, image_ref) = (found.container.image.clone(), found.container.image_ref.clone());
    Ok(ContainerStatus {
        container: container(found.container),
        started: found.started,
        finished: found.finished,
        exit_code: found.exit_code,
        image,
        image_ref,
        reason: found.reason,
        message: String::new(),
    })
}

/// To [`sim::Call::ExecSync`], cut to so many bytes.
pub fn output(answer: Answer, bytes: usize) -> Result<Output, Error> {
    let Answer::Output(output) = answer else {
        return malformed();
    };
    let cut = |text: String| {
        let mut text = text.into_bytes();
        text.truncate(bytes);
        text
    };
    Ok(Output {
        exit_code: output.exit_code,
        stdout: cut(output.stdout),
        stderr: cut(output.stderr),
    })
}

/// The command of a call.
pub fn exec(exec: &Exec<'_>) -> sim::Exec {
    sim::Exec {
        container: exec.container.to_owned(),
        command: exec.command.to_vec(),
        timeout: exec.timeout,
    }
}

/// The pull of a call. Registries of the simulation know users only: a token is that of a user without a name.
pub fn pull(pull: &Pull<'_>) -> sim::Pull {
    let login = |auth: Auth<'_>| {
        let (username, password) = match auth {
            Auth::Basic { username, password } => (username, password),
            Auth::Identity(token) | Auth::Registry(token) => ("", token),
        };
        sim::Login {
            username: username.to_owned(),
            password: password.to_owned(),
        }
    };
    sim::Pull {
        image: pull.image.to_owned(),
        login: pull.auth.map(login),
    }
}

fn container(one: sim::Container) -> Container {
    Container {
        id: one.id,
        name: one.name,
        attempt: one.attempt,
        state: match one.state {
            sim::ContainerState::Created => State::Created,
            sim::ContainerState::Running => State::Running,
            sim::ContainerState::Exited => State::Exited,
        },
        created: one.created,
        labels: one.labels,
        annotations: one.annotations,
    }
}
