//! The threads of the listeners of agents and of boot, which everybody on the nodes' network reaches. They have a lower
//! priority than those of operators and of the conductor: on a busy machine, requests without any right wait, and operators
//! do not wait behind them. docs/decisions/0032.

use anyhow::{Context, Result};
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};

/// What is added to the nice value of a thread: next to one of the operators it gets a tenth of a processor, and all of an
/// idle one.
const NICE: i32 = 10;
/// Threads for reads of the database and of files that are served.
const BLOCKING: usize = 16;

/// The runtime of these listeners.
pub fn start() -> Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("agents")
        .max_blocking_threads(BLOCKING)
        .on_thread_start(give_way)
        .enable_all()
        .build()
        .context("threads for agents")
}

/// Linux counts the nice value for each thread.
fn give_way() {
    let thread = Some(gettid());
    let set = getpriority_process(thread).and_then(|nice| setpriority_process(thread, nice + NICE));
    if let Err(error) = set {
        tracing::warn!(%error, "the threads that serve agents have the priority of all others");
    }
}

/// Open a socket there: its events are then waited for on those threads.
pub async fn bind(runtime: &Handle, address: std::net::SocketAddr) -> Result<TcpListener> {
    Ok(runtime.spawn(TcpListener::bind(address)).await??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_threads_give_way_to_all_others() {
        let runtime = start().unwrap();
        let nice = || getpriority_process(Some(gettid())).unwrap();
        let own = nice();
        let (worker, blocking) = runtime.block_on(async {
            let worker = tokio::spawn(async move { nice() }).await.unwrap();
            (worker, tokio::task::spawn_blocking(nice).await.unwrap())
        });
        let expected = (own + NICE).min(19);
        assert_eq!((worker, blocking, nice()), (expected, expected, own));
    }
}
