//! Work on a few threads.

/// Runs `work` on so many threads at once. It takes what is to be done from state that the threads share.
///
/// # Errors
/// The first error of `work`, or a panic in it.
pub fn run(threads: u64, work: impl Fn() -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
    })
}
