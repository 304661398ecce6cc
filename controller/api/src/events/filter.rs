//! Which events the caller gets.

use crate::auth::{Owners, policy};
use crate::call::Call;
use crate::error::ApiError;
use model::{EventKind, LoggedEvent};
use uuid::Uuid;

/// Rights to the event of a node are those to its history.
const POLICY: &str = "baremetal:node:history:get";

/// What the caller asked for.
pub struct Filter {
    node: Option<Uuid>,
    kinds: Option<Vec<EventKind>>,
}

impl Filter {
    /// From the query.
    ///
    /// # Errors
    /// 404: no such node. 400: no such type.
    pub async fn of(call: &Call) -> Result<Self, ApiError> {
        let node = match call.args.text("node") {
            None => None,
            Some(ident) => Some(node(call, ident).await?),
        };
        let kinds = call.args.list("type").map(|names| names.iter().map(|name| kind(name)).collect());
        Ok(Self { node, kinds: kinds.transpose()? })
    }

    /// Whether the caller gets an event. The store of a project's caller has left out those of nodes that the project does not see.
    pub fn lets_pass(&self, call: &Call, event: &LoggedEvent) -> bool {
        let owners = Owners { owner: event.owner.clone(), lessee: event.lessee.clone() };
        self.node.is_none_or(|node| event.node == Some(node))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.event.kind))
            && policy::may(POLICY, &call.identity, Some(&owners))
    }
}

/// The UUID of a node; of one that is gone if the text is a UUID.
async fn node(call: &Call, ident: &str) -> Result<Uuid, ApiError> {
    match call.shared_node(ident).await {
        Ok(node) => Ok(node.uuid),
        Err(error) if error.status == 404 => Uuid::parse_str(ident).map_err(|_| error),
        Err(error) => Err(error),
    }
}

fn kind(name: &str) -> Result<EventKind, ApiError> {
    let found = EventKind::ALL.into_iter().find(|kind| kind.as_str() == name);
    found.ok_or_else(|| {
        let known: Vec<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        ApiError::invalid(format!("Unknown type of events: {name}. Known are: {}", known.join(", ")))
    })
}
