//! Signals: the first asks for a graceful stop, the second ends the process.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A receiver that turns true on SIGTERM or SIGINT. A second signal exits at once with code 1.
pub fn on_signal() -> std::io::Result<watch::Receiver<bool>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                biased;
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
        };
        next().await;
        tracing::info!("stopping; a second signal ends at once");
        if sender.send(true).is_err() {
            return;
        }
        next().await;
        std::process::exit(1);
    });
    Ok(receiver)
}

/// Resolves when the receiver turns true, or its sender is gone.
pub async fn stopped(mut receiver: watch::Receiver<bool>) {
    // An error means that nobody can ask for a stop any more, which only happens at the end.
    let _ = receiver.wait_for(|stop| *stop).await;
}
