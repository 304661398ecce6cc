//! Which nodes a command is for: those that are named, or all that a filter selects.

use crate::client::Client;
use crate::failure::Failure;
use crate::question::Question;
use clap::Args;

/// Filters of the API that `--where` takes. `include_children` is none of them: it selects no node.
pub const FILTERS: [&str; 19] = [
    "associated",
    "chassis_uuid",
    "conductor",
    "conductor_group",
    "description_contains",
    "driver",
    "fault",
    "instance_name",
    "instance_uuid",
    "lessee",
    "maintenance",
    "owner",
    "parent_node",
    "project",
    "provision_state",
    "resource_class",
    "retired",
    "shard",
    "sharded",
];

/// The option `--where`.
#[derive(Debug, Clone, Default, Args)]
pub struct Filter {
    /// All nodes that have these values, separated by commas: provision_state=available,owner=x. Others that can be named:
    /// associated, chassis_uuid, conductor, conductor_group, description_contains, driver, fault, instance_name, instance_uuid,
    /// lessee, maintenance, parent_node, project, resource_class, retired, shard, sharded.
    #[arg(id = "where", long = "where", value_name = "FIELD=VALUE,…", value_delimiter = ',', value_parser = condition)]
    conditions: Vec<Condition>,
}

/// A value that a node must have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    field: &'static str,
    value: String,
}

/// Reads `field=value`. A field that the API does not filter by would select every node, and so would an empty value.
fn condition(text: &str) -> Result<Condition, String> {
    let (name, value) = text.split_once('=').ok_or("write field=value")?;
    let field = FILTERS.into_iter().find(|field| *field == name);
    let field = field.ok_or_else(|| format!("{name:?} is none of {}", FILTERS.join(", ")))?;
    if value.is_empty() {
        return Err(format!("{name} has no value"));
    }
    Ok(Condition { field, value: value.to_owned() })
}

impl Filter {
    /// Whether it was given.
    pub fn is_given(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// The arguments of a list of nodes.
    ///
    /// # Errors
    /// A field is given twice: a server would read one of the two.
    pub fn query(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut query: Vec<(&'static str, String)> = Vec::new();
        for Condition { field, value } in &self.conditions {
            if query.iter().any(|(earlier, _)| earlier == field) {
                return Err(Failure::Usage(format!("--where: {field} is given twice")));
            }
            query.push((field, value.clone()));
        }
        Ok(query)
    }
}

/// Nodes that a command changes.
#[derive(Debug, Clone, Args)]
pub struct Nodes {
    /// Names or UUIDs.
    #[arg(value_name = "NODE", required_unless_present = "where", conflicts_with = "where")]
    names: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// Of many nodes at most so many at a time, from 1 to 100; with --wait, each of them until its end.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    at_once: u8,
    #[command(flatten)]
    question: Question,
}

/// A node of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What requests name it by: its UUID, where it was selected.
    pub ident: String,
    /// What people know it by.
    pub label: String,
}

impl Nodes {
    /// The only node, if one alone is named.
    pub fn only(&self) -> Option<&str> {
        match &self.names[..] {
            [name] => Some(name),
            _ => None,
        }
    }

    /// How many at a time.
    pub fn at_once(&self) -> u8 {
        self.at_once
    }

    /// All of them, in the order of the command line or of the API.
    pub async fn selected(&self, client: &Client) -> Result<Vec<Target>, Failure> {
        let mut selected = Vec::new();
        if self.filter.is_given() {
            let mut query = self.filter.query()?;
            query.push(("fields", "uuid,name".to_owned()));
            for node in client.get_all(&["nodes"], &query, "nodes").await? {
                let uuid = node["uuid"].as_str().unwrap_or_default().to_owned();
                let label = node["name"].as_str().unwrap_or(&uuid).to_owned();
                selected.push(Target { ident: uuid, label });
            }
        }
        for name in &self.names {
            let node = Target { ident: name.clone(), label: name.clone() };
            if !selected.contains(&node) {
                selected.push(node);
            }
        }
        Ok(selected)
    }

    /// Asks before something that cannot be taken back is done to many nodes.
    ///
    /// # Errors
    /// It is not to be done.
    pub fn ask(&self, selected: &[Target], what: &str) -> Result<(), Failure> {
        const SHOWN: usize = 20;
        let mut labels: Vec<&str> = selected.iter().take(SHOWN).map(|node| node.label.as_str()).collect();
        let more = format!("and {} more", selected.len().saturating_sub(SHOWN));
        labels.extend((selected.len() > SHOWN).then_some(more.as_str()));
        let nodes = if selected.len() == 1 { "node" } else { "nodes" };
        self.question.ask(selected.len(), &format!("{nodes} ({}): {what}", labels.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(words: &[&str]) -> Result<Vec<(&'static str, String)>, String> {
        let conditions = words.iter().map(|word| condition(word)).collect::<Result<_, _>>()?;
        Filter { conditions }.query().map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_filter_that_would_select_every_node_is_refused() {
        let both = query(&["provision_state=clean failed", "owner=x=y"]).unwrap();
        assert_eq!(both, [("provision_state", "clean failed".to_owned()), ("owner", "x=y".to_owned())]);
        for (bad, why) in [
            (&["owner="][..], "owner has no value"),
            (&["owner"], "write field=value"),
            (&["name=n1"], "\"name\" is none of associated"),
            (&["include_children=true"], "is none of"),
            (&["owner=x", "owner=y"], "owner is given twice"),
        ] {
            let error = query(bad).unwrap_err();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
    }
}
