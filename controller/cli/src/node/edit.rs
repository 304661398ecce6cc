//! `anneal node set` and `anneal node unset`: a JSON patch (RFC 6902) of the node, and the RAID configuration that is
//! wanted, which has a request of its own.

use super::batch::{Act, each};
use super::fields::Fields;
use super::list::detail;
use super::selection::Nodes;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::Format;
use crate::patch::{add, not_empty, pointer, remove, sets};
use crate::values::raid;
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

/// Fields to set.
#[derive(Debug, Args)]
pub struct Set {
    #[command(flatten)]
    pub nodes: Nodes,
    /// New driver.
    #[arg(long)]
    driver: Option<String>,
    #[command(flatten)]
    fields: Fields,
    /// RAID volumes to make, as JSON or a file with it; `-` reads standard input. `raid.create_configuration` makes them.
    #[arg(long, value_name = "FILE")]
    target_raid_config: Option<String>,
    /// Keep the node from entering service again.
    #[arg(long)]
    retired: bool,
    /// Why.
    #[arg(long, value_name = "TEXT", requires = "retired")]
    retired_reason: Option<String>,
    /// Refuse to delete or rebuild the node.
    #[arg(long)]
    protected: bool,
    /// Why.
    #[arg(long, value_name = "TEXT", requires = "protected")]
    protected_reason: Option<String>,
}

/// Fields to remove.
#[derive(Debug, Args)]
pub struct Unset {
    #[command(flatten)]
    pub nodes: Nodes,
    /// The name.
    #[arg(long)]
    name: bool,
    /// A key of driver_info; may be repeated.
    #[arg(long, value_name = "KEY")]
    driver_info: Vec<String>,
    /// A key of properties; may be repeated.
    #[arg(long, value_name = "KEY")]
    property: Vec<String>,
    /// A key of extra; may be repeated.
    #[arg(long, value_name = "KEY")]
    extra: Vec<String>,
    /// A key of instance_info; may be repeated.
    #[arg(long, value_name = "KEY")]
    instance_info: Vec<String>,
    /// The implementation of an interface: the driver's default holds again; may be repeated.
    #[arg(long, value_name = "INTERFACE")]
    interface: Vec<String>,
    /// The RAID volumes to make.
    #[arg(long)]
    target_raid_config: bool,
    /// The scheduling class.
    #[arg(long)]
    resource_class: bool,
    /// The description.
    #[arg(long)]
    description: bool,
    /// The project whose node it is.
    #[arg(long)]
    owner: bool,
    /// The project that has it for now.
    #[arg(long)]
    lessee: bool,
    /// The switch of this node: the controller's setting holds again.
    #[arg(long)]
    automated_clean: bool,
    /// The instance that has the node.
    #[arg(long)]
    instance_uuid: bool,
    /// What the instance is called.
    #[arg(long)]
    instance_name: bool,
    /// The chassis it is in.
    #[arg(long)]
    chassis: bool,
    /// The node it is a part of.
    #[arg(long)]
    parent_node: bool,
    /// The shard it is in.
    #[arg(long)]
    shard: bool,
    /// The group of controllers that drive it: those without a group do.
    #[arg(long)]
    conductor_group: bool,
    /// Network of its ramdisk: DHCP again.
    #[arg(long)]
    network_data: bool,
    /// Whether the node is never switched off: it is again.
    #[arg(long)]
    disable_power_off: bool,
    /// Let the node enter service again; the reason goes as well.
    #[arg(long)]
    retired: bool,
    /// Allow it to be deleted and rebuilt; the reason goes as well.
    #[arg(long)]
    protected: bool,
}

impl Set {
    /// What is wanted of the node's RAID.
    pub fn raid(&self) -> Result<Option<Value>, Failure> {
        self.target_raid_config.as_ref().map(|source| raid("--target-raid-config", source)).transpose()
    }

    /// The patch.
    pub fn patch(&self) -> Result<Vec<Value>, Failure> {
        let mut given = self.fields.given()?;
        given.extend(self.driver.clone().map(|driver| ("driver".into(), driver.into())));
        let mut patch: Vec<Value> =
            given.into_iter().flat_map(|(field, value)| sets(&field, value)).collect();
        // The whole of it: half of one network and half of another make none.
        patch.extend(self.fields.network_data()?.map(|data| add("/network_data", data)));
        let marks = [
            ("retired", self.retired, &self.retired_reason),
            ("protected", self.protected, &self.protected_reason),
        ];
        for (field, set, reason) in marks {
            if set {
                patch.push(add(&format!("/{field}"), true.into()));
            }
            let reason = reason.clone().map(Value::from);
            patch.extend(reason.map(|reason| add(&format!("/{field}_reason"), reason)));
        }
        Ok(patch)
    }
}

impl Unset {
    /// An empty configuration takes an earlier one away.
    pub fn raid(&self) -> Option<Value> {
        self.target_raid_config.then(|| json!({}))
    }

    /// The patch.
    pub fn patch(&self) -> Vec<Value> {
        let mut patch = Vec::new();
        let whole = [
            ("name", self.name),
            ("resource_class", self.resource_class),
            ("description", self.description),
            ("owner", self.owner),
            ("lessee", self.lessee),
            ("automated_clean", self.automated_clean),
            ("instance_uuid", self.instance_uuid),
            ("instance_name", self.instance_name),
            ("chassis_uuid", self.chassis),
            ("parent_node", self.parent_node),
            ("shard", self.shard),
            ("conductor_group", self.conductor_group),
            ("network_data", self.network_data),
            ("disable_power_off", self.disable_power_off),
        ];
        patch.extend(whole.iter().filter(|(_, given)| *given).map(|(field, _)| remove(&format!("/{field}"))));
        patch.extend(self.interface.iter().map(|interface| remove(&format!("/{interface}_interface"))));
        let keys = [
            ("driver_info", &self.driver_info),
            ("properties", &self.property),
            ("extra", &self.extra),
            ("instance_info", &self.instance_info),
        ];
        for (field, keys) in keys {
            patch.extend(keys.iter().map(|key| remove(&pointer(field, key))));
        }
        // Ironic stores null for a removed mark; false is what is meant, and clears the reason too.
        let marks = [("retired", self.retired), ("protected", self.protected)];
        patch.extend(
            marks
                .iter()
                .filter(|(_, given)| *given)
                .map(|(field, _)| add(&format!("/{field}"), false.into())),
        );
        patch
    }
}

/// Sends the RAID configuration and the patch, whichever is there.
pub async fn run(
    client: &Client,
    format: Format,
    nodes: &Nodes,
    patch: Vec<Value>,
    raid: Option<Value>,
) -> Result<(), Failure> {
    if raid.is_none() {
        not_empty(&patch)?;
    }
    let one = async |node: &str| {
        if raid.is_some() {
            client.send(Method::PUT, &["nodes", node, "states", "raid"], &[], raid.clone()).await?;
        }
        match patch.is_empty() {
            true => client.get(&["nodes", node], &[]).await,
            false => {
                Ok(client.send(Method::PATCH, &["nodes", node], &[], Some(patch.clone().into())).await?.body)
            }
        }
    };
    each(client, format, nodes, &Act::CHANGE, detail, one).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    enum Edit {
        Set(Box<Set>),
        Unset(Unset),
    }

    fn patch(line: &str) -> Value {
        match Edit::parse_from(std::iter::once("test").chain(line.split(' '))) {
            Edit::Set(set) => set.patch().unwrap().into(),
            Edit::Unset(unset) => unset.patch().into(),
        }
    }

    #[test]
    fn patches() {
        assert_eq!(
            patch(
                "set n --owner p --driver-info a/b=1 --interface deploy=direct --retired --retired-reason old --automated-clean false"
            ),
            json!([
                {"op": "add", "path": "/owner", "value": "p"},
                {"op": "add", "path": "/driver_info/a~1b", "value": 1},
                {"op": "add", "path": "/deploy_interface", "value": "direct"},
                {"op": "add", "path": "/automated_clean", "value": false},
                {"op": "add", "path": "/retired", "value": true},
                {"op": "add", "path": "/retired_reason", "value": "old"},
            ])
        );
        assert_eq!(
            patch(
                r#"set n --shard s1 --chassis c --network-data {"links":[]} --instance-info a=1 --disable-power-off true"#
            ),
            json!([
                {"op": "add", "path": "/chassis_uuid", "value": "c"},
                {"op": "add", "path": "/shard", "value": "s1"},
                {"op": "add", "path": "/instance_info/a", "value": 1},
                {"op": "add", "path": "/disable_power_off", "value": true},
                {"op": "add", "path": "/network_data", "value": {"links": []}},
            ])
        );
        assert_eq!(
            patch("unset n --name --lessee --shard --interface raid --extra x~y --retired"),
            json!([
                {"op": "remove", "path": "/name"},
                {"op": "remove", "path": "/lessee"},
                {"op": "remove", "path": "/shard"},
                {"op": "remove", "path": "/raid_interface"},
                {"op": "remove", "path": "/extra/x~0y"},
                {"op": "add", "path": "/retired", "value": false},
            ])
        );
        assert_eq!(patch("set n"), json!([]));
    }
}
