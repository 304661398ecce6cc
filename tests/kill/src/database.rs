//! Where the controllers store: each run has a database of its own.

use postgres_server::Server;
use std::sync::Arc;

/// Of which kind it is.
#[derive(Debug, Clone)]
pub enum Database {
    /// A file in the directory of the run.
    Sqlite,
    /// One of this server's.
    Postgres(Arc<Server>),
}

impl Database {
    /// An empty one.
    pub fn own(&self) -> OwnDatabase {
        OwnDatabase(match self {
            Self::Sqlite => None,
            Self::Postgres(server) => Some((server.clone(), server.create())),
        })
    }
}

/// The database of one run, removed at its end; none: a file.
pub struct OwnDatabase(Option<(Arc<Server>, String)>);

impl OwnDatabase {
    /// What the configuration of a controller says of it.
    pub fn settings(&self) -> String {
        match &self.0 {
            None => String::new(),
            Some((server, name)) => format!("[database]\nurl = {:?}\n", server.url(name)),
        }
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.0 {
            server.remove(name);
        }
    }
}
