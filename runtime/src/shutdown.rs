//! Signals: the first requests a graceful stop, the second ends the process.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A receiver that becomes true on SIGTERM or SIGINT. A second signal exits at once with code 1.
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

/// Resolves when the receiver is true or its sender is dropped.
pub async fn stopped(mut receiver: watch::Receiver<bool>) {
    // An error means that the sender is dropped, which happens only when the process ends.
    let _ = receiver.wait_for(|stop| *stop).await;
}
