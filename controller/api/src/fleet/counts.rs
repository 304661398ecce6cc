//! How many nodes there are of each kind.

use crate::call::Call;
use crate::error::ApiError;
use model::conductors::driver_of;
use model::{ConductorReport, ProvisionState};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use store::{FieldValue, NodeField};
use uuid::Uuid;

/// Most values of one field that are counted by name.
const MOST: usize = 200;

/// The counts.
pub struct Counts {
    /// All nodes.
    pub nodes: usize,
    /// Those in maintenance.
    pub maintenance: usize,
    /// Those that are retired.
    pub retired: usize,
    /// By state, owner, resource class and conductor, the largest first.
    pub view: Value,
    /// How many nodes of each field are in none of these.
    pub others: Value,
    states: BTreeMap<FieldValue, usize>,
}

/// Count them.
pub async fn read(call: &Call) -> Result<Counts, ApiError> {
    let of = async |field: NodeField| one(call, field).await;
    let states = of(NodeField::ProvisionState).await?;
    let nodes = states.values().sum();
    let flagged = |counts: BTreeMap<FieldValue, usize>| {
        counts.get(&FieldValue::Bool(true)).copied().unwrap_or_default()
    };
    let maintenance = flagged(of(NodeField::Maintenance).await?);
    let retired = flagged(of(NodeField::Retired).await?);
    let (mut view, mut others) = (Map::new(), Map::new());
    let fields = [
        ("provision_state", states.clone()),
        ("owner", of(NodeField::Owner).await?),
        ("resource_class", of(NodeField::ResourceClass).await?),
        ("conductor", by_conductor(call, nodes).await?),
    ];
    for (name, counts) in fields {
        let (shown, rest) = largest(counts);
        view.insert(name.to_owned(), shown);
        others.insert(name.to_owned(), rest.into());
    }
    Ok(Counts { nodes, maintenance, retired, view: view.into(), others: others.into(), states })
}

impl Counts {
    /// How many nodes are in one of these states.
    pub fn in_states(&self, states: &[ProvisionState]) -> usize {
        states.iter().filter_map(|state| self.states.get(&FieldValue::from(state.as_str()))).sum()
    }
}

/// How many nodes have each value of a field.
async fn one(call: &Call, field: NodeField) -> Result<BTreeMap<FieldValue, usize>, ApiError> {
    let counts = call.app.store.count_nodes(&[field], call.identity.project()).await?;
    let first = |(values, count): (Vec<FieldValue>, usize)| {
        (values.into_iter().next().unwrap_or(FieldValue::Null), count)
    };
    Ok(counts.into_iter().map(first).collect())
}

/// How many nodes each controller drives; of none: null.
async fn by_conductor(call: &Call, nodes: usize) -> Result<BTreeMap<FieldValue, usize>, ApiError> {
    let alive = call.app.members.alive();
    if alive.is_empty() {
        return Ok(BTreeMap::from([(call.app.members.own().into(), nodes)]));
    }
    // The controller that drives a node is computed from its group and its UUID; with one controller in each group the group is enough.
    let groups = one(call, NodeField::ConductorGroup).await?;
    let mut counts = BTreeMap::new();
    let mut add = |driver: Option<&str>, count| {
        *counts.entry(driver.map_or(FieldValue::Null, FieldValue::from)).or_default() += count;
    };
    if groups.keys().all(|group| eligible(group, &alive) < 2) {
        for (group, count) in &groups {
            add(driver_of(Uuid::nil(), name(group), &alive), *count);
        }
        return Ok(counts);
    }
    let fields = [NodeField::ConductorGroup, NodeField::Uuid];
    for (values, count) in call.app.store.count_nodes(&fields, call.identity.project()).await? {
        if let [group, FieldValue::Text(uuid)] = &values[..] {
            add(driver_of(Uuid::parse_str(uuid).unwrap_or_default(), name(group), &alive), count);
        }
    }
    Ok(counts)
}

/// How many controllers could drive the nodes of a group: its own, or else those of no group.
fn eligible(group: &FieldValue, alive: &[ConductorReport]) -> usize {
    let of_group = |wanted: Option<&str>| alive.iter().filter(|one| one.group.as_deref() == wanted).count();
    match of_group(Some(name(group))) {
        0 => of_group(None),
        own => own,
    }
}

fn name(group: &FieldValue) -> &str {
    match group {
        FieldValue::Text(group) => group,
        _ => "",
    }
}

/// The most frequent values, and how many nodes have others.
fn largest(counts: BTreeMap<FieldValue, usize>) -> (Value, usize) {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let others = counts.iter().skip(MOST).map(|(_, count)| count).sum();
    let shown = counts.into_iter().take(MOST).map(|(value, count)| {
        let value = match value {
            FieldValue::Text(text) => Value::String(text),
            _ => Value::Null,
        };
        json!({"value": value, "count": count})
    });
    (shown.collect(), others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_shown_and_the_rest_is_counted() {
        let counts =
            (0..MOST + 3).map(|number| (format!("c{number:04}").as_str().into(), number + 1)).collect();
        let (shown, others) = largest(counts);
        assert_eq!(shown.as_array().unwrap().len(), MOST);
        assert_eq!(shown[0], json!({"value": "c0202", "count": 203}));
        assert_eq!(others, 1 + 2 + 3);
    }
}
