//! The nodes that problem someone, with the reason in a sentence and the commands that lead out of it.

use super::counts::Counts;
use crate::call::Call;
use crate::error::ApiError;
use crate::format::{at, text};
use crate::nodes::why::{NodeReason, advice, reasons};
use model::phase::Phase;
use model::{Node, ProvisionState, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{FieldValue, NodeField, NodeFilter, NodePage, NodeQuery};

/// Most nodes that are named.
const MOST: usize = 100;
/// A node is overdue when no controller has looked at it for so long after it was due.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a node needs someone. A node has the first that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    /// Something failed.
    Failed,
    /// A step holds it until a user lets it go on.
    Held,
    /// A controller was to look at it and did not.
    Overdue,
    /// It is in maintenance.
    Maintenance,
}

impl Problem {
    const ALL: [Self; 4] = [Self::Failed, Self::Held, Self::Overdue, Self::Maintenance];

    /// The word on the wire.
    fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Held => "held",
            Self::Overdue => "overdue",
            Self::Maintenance => "maintenance",
        }
    }

    /// Which nodes may have it.
    fn filter(self, now: Timestamp) -> NodeFilter {
        let mut filter = NodeFilter::default();
        match self {
            Self::Failed | Self::Held => {
                let states = self.states().into_iter().map(|state| state.as_str().to_owned());
                filter.one_of.push((NodeField::ProvisionState, states.collect()));
            }
            Self::Overdue => filter.due_before = Some(overdue_before(now)),
            Self::Maintenance => filter.equal.push((NodeField::Maintenance, FieldValue::Bool(true))),
        }
        filter
    }

    /// The states that have it.
    fn states(self) -> Vec<ProvisionState> {
        let phase = match self {
            Self::Failed => Phase::Failed,
            Self::Held => Phase::Held,
            Self::Overdue | Self::Maintenance => return Vec::new(),
        };
        ProvisionState::ALL.into_iter().filter(|state| state.phase() == phase).collect()
    }

    /// The reason in a sentence, without a full stop, and since when it holds, where that is stored.
    fn reason(self, found: &NodeReason) -> (String, Option<Timestamp>) {
        let NodeReason { node, why, .. } = found;
        let because =
            |reason: &Option<String>| reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        match self {
            Self::Failed => {
                let what = why.awaits.text.trim_start_matches("a user: ");
                (format!("{what}{}", because(&node.last_error)), why.awaits.since)
            }
            Self::Held => (format!("it waits for {}", why.awaits.text), why.awaits.since),
            Self::Overdue => {
                let driver = found.conductor.as_deref();
                let who =
                    driver.map_or("no controller drives it".to_owned(), |name| format!("{name} drives it"));
                (format!("no controller has looked at it since it was due; {who}"), node.next_wake_at)
            }
            Self::Maintenance => match &node.fault {
                Some(fault) => {
                    (format!("in maintenance after a {fault}{}", because(&node.maintenance_reason)), None)
                }
                None => (format!("in maintenance{}", because(&node.maintenance_reason)), None),
            },
        }
    }
}

/// What was due before this is overdue.
fn overdue_before(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(PATIENCE.as_micros()).unwrap_or(i64::MAX)))
}

/// The member `needs`.
pub async fn read(call: &Call, counts: &Counts) -> Result<Value, ApiError> {
    let now = call.now();
    let (mut found, mut known, mut more) = (Vec::new(), BTreeSet::new(), false);
    let mut overdue = 0;
    for problem in Problem::ALL {
        // What a node has already is read again, and is not named twice.
        let limit = MOST + known.len();
        let query = NodeQuery {
            time_limit: call.app.settings.list_time_limit,
            ..NodeQuery::first(limit, problem.filter(now))
        };
        let page: NodePage = call.app.store.node_page(query).await?;
        more |= page.more;
        let nodes: Vec<Node> =
            page.nodes.into_iter().filter(|node| problem != Problem::Overdue || awaits(node)).collect();
        if problem == Problem::Overdue {
            overdue = nodes.len();
        }
        found.extend(nodes.into_iter().filter(|node| known.insert(node.uuid)).map(|node| (problem, node)));
    }
    more |= found.len() > MOST;
    found.truncate(MOST);
    let (needs, nodes): (Vec<Problem>, Vec<Node>) = found.into_iter().unzip();
    let found = reasons(call, nodes).await?;
    let nodes: Vec<Value> =
        needs.into_iter().zip(&found).map(|(problem, node)| view(problem, node)).collect();
    let counted = json!({
        "failed": counts.in_states(&Problem::Failed.states()),
        "held": counts.in_states(&Problem::Held.states()),
        "overdue": overdue,
        "maintenance": counts.maintenance,
    });
    Ok(json!({"counts": counted, "nodes": nodes, "more": more}))
}

/// Whether something is to be done about a node: others are looked at now and then to learn their power.
fn awaits(node: &Node) -> bool {
    node.target_power_state.is_some() || !node.provision_state.phase().is_at_rest()
}

fn view(problem: Problem, found: &NodeReason) -> Value {
    let NodeReason { node, why, .. } = found;
    let (reason, since) = problem.reason(found);
    json!({
        "uuid": node.uuid,
        "name": text(node.name.as_deref()),
        "kind": problem.as_str(),
        "provision_state": node.provision_state.as_str(),
        "maintenance": node.maintenance,
        "since": at(since),
        "reason": reason,
        "help": why.help.text,
        "commands": why.help.commands.iter().map(|one| advice(node, one)).collect::<Vec<_>>(),
    })
}
