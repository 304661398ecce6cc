//! Why the store refuses or fails.

use crate::event_cursor::EventCursor;
use model::ResourceKind;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such thing.
    #[error("{what} {ident} could not be found.")]
    NotFound {
        /// What was looked for.
        what: Noun,
        /// The identifier it was looked for by.
        ident: String,
    },
    /// A unique value is taken.
    #[error("{what} {value:?} already exists")]
    Duplicate {
        /// Which value must be unique.
        what: Unique,
        /// The value.
        value: String,
    },
    /// Another write changed this node or resource since it was read, or the lease was lost.
    #[error("{0} was changed meanwhile")]
    Stale(Uuid),
    /// Larger than the store accepts.
    #[error("{what} of node {node} has {bytes} bytes, more than {most}")]
    TooLarge {
        /// `The inventory`.
        what: &'static str,
        /// The node.
        node: Uuid,
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// What came behind a cursor of the log of events is not kept any more, or the cursor is none of this log.
    #[error("the events behind this cursor are not kept any more; they begin behind {oldest}")]
    CursorGone {
        /// Behind it is all that is kept.
        oldest: EventCursor,
    },
    /// A list would have to look at more than the database reads in its time limit.
    #[error("the list was not found within {0:?}")]
    TooSlow(Duration),
    /// The database failed. Logs show [`StoreError::chain`].
    #[error("store: {doing}")]
    Failed {
        /// What failed, or what the store was doing.
        doing: String,
        /// The cause.
        source: Option<Cause>,
    },
}

/// The cause of a failure; shared, because a failed commit fails every call in it.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// What the store keeps. Its text is Ironic's word for it in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    /// A node.
    Node,
    /// A resource of a kind.
    Resource(ResourceKind),
    /// A bundle of a hardware manager.
    Bundle,
    /// An erasure certificate.
    Certificate,
    /// A machine that no node is known for.
    DiscoveredMachine,
}

impl fmt::Display for Noun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "Node",
            Self::Resource(kind) => kind.noun(),
            Self::Bundle => "Bundle",
            Self::Certificate => "Certificate",
            Self::DiscoveredMachine => "Discovered machine",
        })
    }
}

/// A value that no two of a kind may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unique {
    /// UUID of a node.
    NodeUuid,
    /// Name of a node.
    NodeName,
    /// `instance_uuid` of a node.
    InstanceUuid,
    /// UUID of a resource, within its kind.
    ResourceUuid,
    /// Name of a resource, within its kind.
    ResourceName,
    /// [`model::Resource::key`], within its kind.
    ResourceKey,
}

impl fmt::Display for Unique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NodeUuid => "node uuid",
            Self::NodeName => "node name",
            Self::InstanceUuid => "instance uuid",
            Self::ResourceUuid => "resource uuid",
            Self::ResourceName => "resource name",
            Self::ResourceKey => "resource key",
        })
    }
}

impl From<ResourceKind> for Noun {
    fn from(kind: ResourceKind) -> Self {
        Self::Resource(kind)
    }
}

impl StoreError {
    /// `what` with the identifier `ident` does not exist.
    pub fn not_found(what: impl Into<Noun>, ident: impl ToString) -> Self {
        Self::NotFound { what: what.into(), ident: ident.to_string() }
    }

    /// `value` already belongs to another row.
    pub fn duplicate(what: Unique, value: impl ToString) -> Self {
        Self::Duplicate { what, value: value.to_string() }
    }

    /// For a write of `node` with what belongs to it: `Stale` for that node, if a resource is gone or was written since.
    pub fn stale_for(self, node: Uuid) -> Self {
        match self {
            Self::Stale(_) | Self::NotFound { what: Noun::Resource(_), .. } => Self::Stale(node),
            other => other,
        }
    }

    /// A failure without another error as its cause.
    pub fn failed(doing: impl Into<String>) -> Self {
        Self::Failed { doing: doing.into(), source: None }
    }

    /// `cause` made the store fail while `doing`.
    pub fn caused(doing: impl Into<String>, cause: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed { doing: doing.into(), source: Some(Arc::new(cause)) }
    }

    /// The error and its causes in one line, for logs.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

/// Result of a store call.
pub type Result<T> = std::result::Result<T, StoreError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_its_causes_once() {
        let error = StoreError::caused("reading node", std::io::Error::other("disk I/O error"));
        assert_eq!(error.to_string(), "store: reading node");
        assert_eq!(error.chain(), "store: reading node: disk I/O error");
        assert_eq!(StoreError::failed("closed").chain(), "store: closed");
    }

    /// These texts are in answers of the API.
    #[test]
    fn texts() {
        let missing = StoreError::not_found(ResourceKind::DeployTemplate, "x");
        assert_eq!(missing.to_string(), "Deploy template x could not be found.");
        assert_eq!(StoreError::not_found(Noun::Node, "x").to_string(), "Node x could not be found.");
        let taken = StoreError::duplicate(Unique::ResourceKey, "a");
        assert_eq!(taken.to_string(), r#"resource key "a" already exists"#);
    }
}
