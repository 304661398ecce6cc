//! The tasks of the process. None of them ends while the process is not stopping; if one does, the process ends with
//! an error, so that its supervisor (systemd) starts it again.

use anyhow::{Error, Result, anyhow};
use std::collections::HashMap;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{Id, JoinError, JoinSet};

/// Everything that runs until the process stops.
#[derive(Default)]
pub struct Services {
    tasks: JoinSet<Result<()>>,
    names: HashMap<Id, String>,
}

impl Services {
    /// Run a service. Its name stands in the error if it ends.
    pub fn start(
        &mut self,
        name: impl Into<String>,
        service: impl Future<Output = Result<()>> + Send + 'static,
    ) {
        self.start_on(&Handle::current(), name, service);
    }

    /// Run a service on the threads of this runtime.
    pub fn start_on(
        &mut self,
        runtime: &Handle,
        name: impl Into<String>,
        service: impl Future<Output = Result<()>> + Send + 'static,
    ) {
        let task = self.tasks.spawn_on(service, runtime);
        self.names.insert(task.id(), name.into());
    }

    /// Wait until one of them ends, in whatever way: that is an error.
    pub async fn first_end(&mut self) -> Error {
        match self.tasks.join_next_with_id().await {
            Some(ended) => self.end(ended),
            None => anyhow!("no service was started"),
        }
    }

    /// Wait until the service of this name has ended; false if it does not in time.
    pub async fn drain(&mut self, name: &str, most: Duration) -> bool {
        let ended = async {
            while self.names.values().any(|known| known == name) {
                let Some(ended) = self.tasks.join_next_with_id().await else { return };
                let (id, failed) = match ended {
                    Ok((id, result)) => (id, result.err()),
                    Err(error) => (error.id(), Some(error.into())),
                };
                if let (Some(name), Some(error)) = (self.names.remove(&id), failed) {
                    tracing::error!("{name} failed while it was stopped: {error:#}");
                }
            }
        };
        tokio::time::timeout(most, ended).await.is_ok()
    }

    fn end(&mut self, ended: Result<(Id, Result<()>), JoinError>) -> Error {
        match ended {
            Ok((id, result)) => {
                let name = self.names.remove(&id).unwrap_or_default();
                match result {
                    Ok(()) => anyhow!("{name} ended although it was not stopped"),
                    Err(error) => error.context(format!("{name} failed")),
                }
            }
            Err(error) => {
                let name = self.names.remove(&error.id()).unwrap_or_default();
                Error::from(error).context(format!("{name} panicked"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::future::pending;

    async fn end_of(service: impl Future<Output = Result<()>> + Send + 'static) -> String {
        let mut services = Services::default();
        services.start("another", pending());
        services.start("the conductor", service);
        format!("{:#}", services.first_end().await)
    }

    #[tokio::test]
    async fn a_service_that_ends_in_any_way_is_an_error_that_names_it() {
        assert_eq!(end_of(async { Ok(()) }).await, "the conductor ended although it was not stopped");
        assert_eq!(end_of(async { bail!("no socket") }).await, "the conductor failed: no socket");
        let panicked = end_of(async { panic!("a defect") }).await;
        assert!(
            panicked.starts_with("the conductor panicked: ") && panicked.contains("a defect"),
            "{panicked}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_is_given_time_to_end_and_others_are_not_waited_for() {
        let mut services = Services::default();
        services.start("another", pending());
        services.start("the conductor", async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(())
        });
        assert!(!services.drain("the conductor", Duration::from_secs(9)).await);
        assert!(services.drain("the conductor", Duration::from_secs(9)).await);
        assert!(services.drain("the conductor", Duration::ZERO).await, "it has ended");
    }
}
