//! What PostgreSQL or the way to it refused, without what it quotes: a DETAIL may hold a whole row, with its secrets.

use deadpool_postgres::PoolError;
use deadpool_postgres::TimeoutType;
use std::error::Error as _;
use std::fmt::Display;
use std::sync::Arc;
use store::{Cause, StoreError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why a statement failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    text: String,
    /// PostgreSQL's code, if it is PostgreSQL's answer.
    code: Option<SqlState>,
    constraint: Option<String>,
    /// Whether the connection is gone, or none was made.
    lost: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Some(answer) = error.as_db_error() else {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let lost = error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>());
            return Self { text: format!("{error}{cause}"), code: None, constraint: None, lost };
        };
        let code = answer.code().clone();
        let lost = is_server_going(&code);
        let constraint = answer.constraint().map(str::to_owned);
        Self { text: format!("{} ({})", answer.message(), code.code()), code: Some(code), constraint, lost }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        let plain = |text: &str| Self { text: text.to_owned(), code: None, constraint: None, lost: true };
        match error {
            // Whatever the reason: there is no connection. A wrong password is one that can be changed meanwhile.
            PoolError::Backend(error) => Self { lost: true, ..Self::from(error) },
            PoolError::Timeout(TimeoutType::Wait) => {
                Self { lost: false, ..plain("no connection became free in time") }
            }
            PoolError::Timeout(_) => Self::silent(),
            _ => plain("the connections are closed"),
        }
    }
}

/// Whether the server ends this connection, or takes none yet.
fn is_server_going(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW].contains(code)
        || code.code().starts_with("08")
}

impl Failure {
    /// The transaction has ended already.
    pub fn ended() -> Self {
        Self { text: "the transaction has ended".to_owned(), code: None, constraint: None, lost: false }
    }

    /// No connection was made in the time that it may take.
    pub fn silent() -> Self {
        let text = "no connection was made in time".to_owned();
        Self { text, code: None, constraint: None, lost: true }
    }

    /// One of the connection, without PostgreSQL's answer.
    #[cfg(test)]
    pub fn lost() -> Self {
        Self { text: "lost".to_owned(), code: None, constraint: None, lost: true }
    }

    /// PostgreSQL's answer with this code.
    #[cfg(test)]
    pub fn answer(code: SqlState) -> Self {
        let lost = is_server_going(&code);
        Self { text: code.code().to_owned(), code: Some(code), constraint: None, lost }
    }

    /// The failure that an error of the store has as its cause.
    pub fn of(error: &StoreError) -> Option<&Self> {
        match error {
            StoreError::Failed { source: Some(cause), .. } => cause.downcast_ref(),
            _ => None,
        }
    }

    /// Whether the connection is gone, or none was made.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether PostgreSQL undid the transaction because of others that ran at the same time.
    pub fn is_conflict(&self) -> bool {
        let conflicts = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        self.code.as_ref().is_some_and(|code| conflicts.contains(code))
    }

    /// Whether the statement took longer than it may.
    pub fn is_timeout(&self) -> bool {
        self.code == Some(SqlState::QUERY_CANCELED)
    }

    /// Whether the row belongs to one that is not there.
    pub fn is_orphan(&self) -> bool {
        self.code == Some(SqlState::FOREIGN_KEY_VIOLATION)
    }

    /// The index in which a value is already.
    pub fn duplicate_in(&self) -> Option<&str> {
        self.constraint.as_deref().filter(|_| self.code == Some(SqlState::UNIQUE_VIOLATION))
    }

    /// The same, which says what failed.
    pub fn during(self, doing: impl Display) -> Self {
        Self { text: format!("{doing}: {}", self.text), ..self }
    }

    /// As an error of the store, which was `doing` something.
    pub fn while_doing(self, doing: impl Display) -> StoreError {
        let source: Cause = Arc::new(self);
        StoreError::Failed { doing: doing.to_string(), source: Some(source) }
    }
}

/// A failure while doing `what`.
pub fn failed<E: Into<Failure>>(what: impl Display) -> impl FnOnce(E) -> StoreError {
    move |error| error.into().while_doing(what)
}
