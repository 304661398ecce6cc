//! `anneal node set` and `anneal node unset`: a JSON patch (RFC 6902) of the node, and the RAID configuration that is
//! wanted, which has a request of its own.

use super::fields::Fields;
use super::list::detail;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, show};
use crate::values::{Pair, object, pair, raid};
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

/// Fields to set.
#[derive(Debug, Args)]
pub struct Set {
    /// Name or UUID.
    pub node: String,
    /// New driver.
    #[arg(long)]
    driver: Option<String>,
    #[command(flatten)]
    fields: Fields,
    /// What is to run on it.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    instance_info: Vec<Pair>,
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
    /// Name or UUID.
    pub node: String,
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
    /// Let the node enter service again; the reason goes as well.
    #[arg(long)]
    retired: bool,
    /// Allow it to be deleted and rebuilt; the reason goes as well.
    #[arg(long)]
    protected: bool,
}

/// RFC 6901: `~` and `/` of a key are written `~0` and `~1`.
fn pointer(field: &str, key: &str) -> String {
    format!("/{field}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn add(path: String, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
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
        let instance_info = object("--instance-info", &self.instance_info)?;
        given.push(("instance_info".into(), instance_info.into()));
        let mut patch = Vec::new();
        for (field, value) in given {
            match value {
                Value::Object(keys) => {
                    patch.extend(keys.into_iter().map(|(key, value)| add(pointer(&field, &key), value)));
                }
                value => patch.push(add(format!("/{field}"), value)),
            }
        }
        let marks = [
            ("retired", self.retired, &self.retired_reason),
            ("protected", self.protected, &self.protected_reason),
        ];
        for (field, set, reason) in marks {
            if set {
                patch.push(add(format!("/{field}"), true.into()));
            }
            patch
                .extend(reason.as_ref().map(|reason| add(format!("/{field}_reason"), reason.clone().into())));
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
        let remove = |path: String| json!({"op": "remove", "path": path});
        let whole = [
            ("name", self.name),
            ("resource_class", self.resource_class),
            ("description", self.description),
            ("owner", self.owner),
            ("lessee", self.lessee),
            ("automated_clean", self.automated_clean),
        ];
        patch.extend(whole.iter().filter(|(_, given)| *given).map(|(field, _)| remove(format!("/{field}"))));
        patch.extend(self.interface.iter().map(|interface| remove(format!("/{interface}_interface"))));
        let keys = [
            ("driver_info", &self.driver_info),
            ("properties", &self.property),
            ("extra", &self.extra),
            ("instance_info", &self.instance_info),
        ];
        for (field, keys) in keys {
            patch.extend(keys.iter().map(|key| remove(pointer(field, key))));
        }
        // Ironic stores null for a removed mark; false is what is meant, and clears the reason too.
        let marks = [("retired", self.retired), ("protected", self.protected)];
        patch.extend(
            marks.iter().filter(|(_, given)| *given).map(|(field, _)| add(format!("/{field}"), false.into())),
        );
        patch
    }
}

/// Sends the RAID configuration and the patch, whichever is there.
pub async fn run(
    client: &Client,
    format: Format,
    node: &str,
    patch: Vec<Value>,
    raid: Option<Value>,
) -> Result<(), Failure> {
    if patch.is_empty() && raid.is_none() {
        return Err(Failure::Usage("nothing to change: name at least one field (see --help)".to_owned()));
    }
    if raid.is_some() {
        client.send(Method::PUT, &["nodes", node, "states", "raid"], &[], raid).await?;
    }
    let node = match patch.is_empty() {
        true => client.get(&["nodes", node], &[]).await?,
        false => client.send(Method::PATCH, &["nodes", node], &[], Some(patch.into())).await?.body,
    };
    show(format, &node, detail)
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
            patch("unset n --name --lessee --interface raid --extra x~y --retired"),
            json!([
                {"op": "remove", "path": "/name"},
                {"op": "remove", "path": "/lessee"},
                {"op": "remove", "path": "/raid_interface"},
                {"op": "remove", "path": "/extra/x~0y"},
                {"op": "add", "path": "/retired", "value": false},
            ])
        );
        assert_eq!(patch("set n"), json!([]));
    }
}
