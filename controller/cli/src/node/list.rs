//! `anneal node list` and `anneal node show`.

use super::selection::Filter;
use crate::client::Client;
use crate::collection::chosen;
use crate::failure::Failure;
use crate::output::{Format, cell, fields as rows_of, printable, show, table};
use clap::Args;
use serde_json::Value;

const COLUMNS: &str =
    "uuid,name,power_state,provision_state,anneal_basis,target_provision_state,maintenance,driver";

/// Shown first by `show`, in this order; the others follow by name.
const FIRST: [&str; 18] = [
    "uuid",
    "name",
    "driver",
    "provision_state",
    "target_provision_state",
    "power_state",
    "target_power_state",
    "last_error",
    "maintenance",
    "maintenance_reason",
    "fault",
    "retired",
    "retired_reason",
    "clean_step",
    "deploy_step",
    "service_step",
    "driver_info",
    "properties",
];

/// Which nodes, and what of them.
#[derive(Debug, Args)]
pub struct Filters {
    /// Only nodes in this state, for example `available` or `clean failed`.
    #[arg(long, value_name = "STATE")]
    provision_state: Option<String>,
    /// Only nodes in maintenance.
    #[arg(long, conflicts_with = "no_maintenance")]
    maintenance: bool,
    /// Only nodes not in maintenance.
    #[arg(long)]
    no_maintenance: bool,
    /// Only retired nodes.
    #[arg(long, conflicts_with = "no_retired")]
    retired: bool,
    /// Only nodes that are not retired.
    #[arg(long)]
    no_retired: bool,
    /// Only nodes of this driver.
    #[arg(long)]
    driver: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// These fields instead of the usual ones, separated by commas.
    #[arg(long, value_delimiter = ',')]
    fields: Vec<String>,
}

impl Filters {
    fn query(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let fields = if self.fields.is_empty() { COLUMNS.to_owned() } else { self.fields.join(",") };
        let mut query = vec![("fields", fields)];
        let mut flag = |name, yes: bool, no: bool| {
            if yes || no {
                query.push((name, yes.to_string()));
            }
        };
        flag("maintenance", self.maintenance, self.no_maintenance);
        flag("retired", self.retired, self.no_retired);
        query.extend(self.provision_state.clone().map(|state| ("provision_state", state)));
        query.extend(self.driver.clone().map(|driver| ("driver", driver)));
        for condition in self.filter.query()? {
            if query.iter().any(|(earlier, _)| *earlier == condition.0) {
                return Err(Failure::Usage(format!(
                    "--where: {} has an option, which is given, too",
                    condition.0
                )));
            }
            query.push(condition);
        }
        Ok(query)
    }
}

/// Lists.
pub async fn run(client: &Client, format: Format, filters: &Filters) -> Result<(), Failure> {
    let nodes: Value = client.get_all(&["nodes"], &filters.query()?, "nodes").await?.into();
    if filters.fields.is_empty() {
        show(format, &nodes, listing)
    } else {
        show(format, &nodes, |nodes| chosen(nodes, &filters.fields))
    }
}

/// Shows one node.
pub async fn run_show(client: &Client, format: Format, node: &str, fields: &[String]) -> Result<(), Failure> {
    let query = if fields.is_empty() { vec![] } else { vec![("fields", fields.join(","))] };
    let node = client.get(&["nodes", node], &query).await?;
    show(format, &node, detail)
}

fn listing(nodes: &Value) -> String {
    let row = |node: &Value| COLUMNS.split(',').map(|key| cell(&node[key])).collect();
    let rows: Vec<Vec<String>> = nodes.as_array().into_iter().flatten().map(row).collect();
    table(&["UUID", "NAME", "POWER", "PROVISION", "BASIS", "TARGET", "MAINTENANCE", "DRIVER"], &rows)
}

/// A node, field by field: what matters first, what is empty left out.
pub fn detail(node: &Value) -> String {
    let Some(map) = node.as_object() else { return String::new() };
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    let is_link =
        |value: &Value| value.as_array().is_some_and(|list| list.iter().any(|one| one.get("href").is_some()));
    let mut rows: Vec<(String, String)> = Vec::new();
    let rest = map.keys().map(String::as_str).filter(|key| !FIRST.contains(key));
    for key in FIRST.into_iter().filter(|key| map.contains_key(*key)).chain(rest) {
        let value = &map[key];
        if is_link(value) || (empty(value) && !matches!(key, "name" | "power_state")) {
            continue;
        }
        rows.push((key.to_owned(), if empty(value) { "-".to_owned() } else { cell(value) }));
        if let Some(basis) = basis(node).filter(|_| key == "provision_state") {
            rows.push(("basis".to_owned(), basis));
        }
    }
    rows_of(&rows)
}

/// What an available node was made available on.
fn basis(node: &Value) -> Option<String> {
    let basis = node.pointer("/driver_internal_info/anneal/basis")?;
    let (kind, by) = (basis["kind"].as_str()?, &basis["by"]);
    let certificates = basis["certificates"].as_array().into_iter().flatten().map(cell);
    let by = by["user"].as_str().or(by["address"].as_str()).map(|by| format!("by {by}"));
    let reason = basis["reason"].as_str().map(printable);
    let more: Vec<String> = reason.into_iter().chain(by).chain(certificates).collect();
    Some(if more.is_empty() { kind.to_owned() } else { format!("{kind}: {}", more.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nodes_in_a_table() {
        let nodes = json!([
            {"uuid": "u1", "name": "n1", "power_state": "power on", "provision_state": "clean wait",
             "anneal_basis": null, "target_provision_state": "available", "maintenance": false,
             "driver": "redfish"},
            {"uuid": "u2", "name": null, "power_state": null, "provision_state": "available",
             "anneal_basis": "not-cleaned", "target_provision_state": null, "maintenance": true, "driver": "ipmi"},
        ]);
        assert_eq!(
            listing(&nodes),
            "UUID  NAME  POWER     PROVISION   BASIS        TARGET     MAINTENANCE  DRIVER\n\
             u1    n1    power on  clean wait  -            available  false        redfish\n\
             u2    -     -         available   not-cleaned  -          true         ipmi\n"
        );
        assert_eq!(
            chosen(&nodes, &["name".into(), "provision_state".into()]),
            "NAME  PROVISION_STATE\nn1    clean wait\n-     available\n"
        );
    }

    #[test]
    fn the_basis_of_an_available_node() {
        let of = |wire: Value| basis(&json!({"driver_internal_info": {"anneal": {"basis": wire}}}));
        for (wire, shown) in [
            (json!({"kind": "not-cleaned"}), "not-cleaned"),
            (json!({"kind": "erased", "certificates": ["c1", "c2"]}), "erased: c1, c2"),
            (
                json!({"kind": "override", "reason": "shredded", "by": {"user": "eve"}}),
                "override: shredded, by eve",
            ),
            (json!({"kind": "override", "reason": "a\u{1b}b"}), "override: a\u{fffd}b"),
        ] {
            assert_eq!(of(wire).as_deref(), Some(shown));
        }
        assert_eq!(basis(&json!({"driver_internal_info": {}})), None);
    }

    #[test]
    fn a_node_field_by_field() {
        let node = json!({
            "extra": {}, "driver_info": {"redfish_password": "******"}, "name": null, "uuid": "u1",
            "automated_clean": true, "provision_state": "enroll", "last_error": null,
            "links": [{"href": "http://x", "rel": "self"}]
        });
        assert_eq!(
            detail(&node),
            "uuid             u1\n\
             name             -\n\
             provision_state  enroll\n\
             driver_info      {\"redfish_password\":\"******\"}\n\
             automated_clean  true\n"
        );
    }
}
