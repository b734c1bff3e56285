//! Several managers behind one address.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a Service does: gives each new connection to the next of the managers. It listens on loopback until the
/// process ends.
pub struct Balancer {
    port: u16,
    managers: Arc<Mutex<Vec<u16>>>,
}

impl Balancer {
    /// Listens, with no manager yet: a connection then ends, as that to a Service without endpoints.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let managers = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&managers);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let manager = next(&known).and_then(|port| TcpStream::connect(("127.0.0.1", port)).ok());
                if let Some(manager) = manager {
                    // A connection that has ended already needs nothing.
                    let _ended = copy_both_ways(client, manager);
                }
            }
        });
        Ok(Self { port, managers })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A manager that listens on this port of loopback is called from now on.
    pub fn add(&self, port: u16) {
        locked(&self.managers).push(port);
    }

    /// It is not called any more.
    pub fn remove(&self, port: u16) {
        locked(&self.managers).retain(|other| *other != port);
    }
}

/// The manager whose turn it is.
fn next(managers: &Mutex<Vec<u16>>) -> Option<u16> {
    let mut managers = locked(managers);
    let next = managers.first().copied()?;
    managers.rotate_left(1);
    Some(next)
}

fn locked(managers: &Mutex<Vec<u16>>) -> MutexGuard<'_, Vec<u16>> {
    managers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn copy_both_ways(client: TcpStream, manager: TcpStream) -> io::Result<()> {
    for (mut from, mut to) in [(client.try_clone()?, manager.try_clone()?), (manager, client)] {
        std::thread::spawn(move || {
            // It ends when either side does.
            let _ended = io::copy(&mut from, &mut to);
            let _closed = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}
