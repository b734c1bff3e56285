//! A command from its beginning to its end.

/// Runs a command on this thread.
pub fn to_end<T>(body: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(body)
}
