//! The threads of this process: an operator does not wait for the hostile clients in it.

use anyhow::{Context, Result};
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// What is added to the nice value of everybody but the operator.
const NICE: i32 = 10;

/// The runtime of everybody but the operator.
///
/// # Errors
/// When its threads cannot be started.
pub fn runtime() -> Result<Runtime> {
    let give_way = || {
        // Where it is refused, the operator's waits are only longer.
        let thread = Some(gettid());
        let _ = getpriority_process(thread).and_then(|nice| setpriority_process(thread, nice + NICE));
    };
    Ok(Builder::new_multi_thread().on_thread_start(give_way).enable_all().build()?)
}

/// Does `work` on a thread of its own, until it is dropped.
///
/// # Errors
/// That of `work`.
pub async fn apart(work: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
    let (mut ended, end) = oneshot::channel();
    std::thread::Builder::new().name("operator".to_owned()).spawn(move || {
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ended.send(Err(error.into()))),
        };
        let result = runtime.block_on(async {
            tokio::select! {
                result = work => Some(result),
                () = ended.closed() => None,
            }
        });
        if let Some(result) = result {
            let _ = ended.send(result);
        }
    })?;
    end.await.context("the operator's thread has ended")?
}
