//! The metrics of a controller, and what is measured for them.

use crate::census::Census;
use crate::counts::Counts;
use crate::metered_directory::MeteredDirectory;
use crate::metered_executor::MeteredExecutor;
use crate::metered_passes::MeteredPasses;
use crate::metered_store::MeteredStore;
use crate::process::Process;
use crate::requests;
use crate::text::Text;
use axum::Router;
use boot::BootDirectory;
use conductor::{Executor, Observer};
use std::sync::Arc;
use store::{Clock, Members, Store};
use tokio_util::sync::CancellationToken;

/// Media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of this controller. Clones are the same.
#[derive(Clone)]
pub struct Metrics {
    counts: Arc<Counts>,
    census: Arc<Census>,
    process: Arc<Process>,
    clock: Arc<dyn Clock>,
    members: Members,
}

impl Metrics {
    /// Those of the controller of these members, which starts now.
    pub fn new(clock: Arc<dyn Clock>, members: Members) -> Self {
        Self {
            counts: Arc::new(Counts::new()),
            census: Arc::default(),
            process: Arc::new(Process::starting()),
            clock,
            members,
        }
    }

    /// The store, measured.
    pub fn store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(MeteredStore { store, counts: self.counts.clone() })
    }

    /// The executor, measured.
    pub fn executor(&self, executor: Arc<dyn Executor>) -> Arc<dyn Executor> {
        Arc::new(MeteredExecutor { executor, counts: self.counts.clone() })
    }

    /// What measures a conductor.
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(MeteredPasses(self.counts.clone()))
    }

    /// The directory, measured.
    pub fn directory(&self, directory: Arc<dyn BootDirectory>) -> Arc<dyn BootDirectory> {
        Arc::new(MeteredDirectory { directory, counts: self.counts.clone() })
    }

    /// The API's router, measured.
    pub fn router(&self, router: Router) -> Router {
        requests::measured(router, self.counts.clone())
    }

    /// Follow the nodes of the store until `stop`. The store is read directly: these reads are no load of users.
    pub async fn follow(&self, store: Arc<dyn Store>, stop: CancellationToken) {
        self.census.follow(store, stop).await;
    }

    /// All of it, of media type [`CONTENT_TYPE`]. Reads nothing from the store.
    pub fn text(&self) -> String {
        let mut text = Text::default();
        self.census.write(&mut text, self.clock.now());
        self.counts.write(&mut text);
        let help = "Controllers that share the store and are alive.";
        text.gauge("anneal_conductors_alive", help, self.members.alive().len());
        self.process.write(&mut text);
        text.into_string()
    }
}
