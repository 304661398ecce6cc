//! The fields that `anneal node create` and `anneal node set` write.

use crate::failure::Failure;
use crate::values::{Pair, json_object, object, pair, secret_object};
use clap::{ArgAction, Args};
use serde_json::Value;

/// Fields of a node; those that are not given stay as they are.
#[derive(Debug, Args)]
pub struct Fields {
    /// Name, unique.
    #[arg(long)]
    name: Option<String>,
    /// How to reach the BMC. `KEY=@FILE` reads the value from a file, `KEY=-` asks for it.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    driver_info: Vec<Pair>,
    /// What hardware it is.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    property: Vec<Pair>,
    /// Free data.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    extra: Vec<Pair>,
    /// What is to run on it.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    instance_info: Vec<Pair>,
    /// Which implementation of an interface the node uses, for example deploy=direct; a new node uses the driver's
    /// default otherwise.
    #[arg(long, value_name = "INTERFACE=NAME", value_parser = pair)]
    interface: Vec<Pair>,
    /// Scheduling class.
    #[arg(long)]
    resource_class: Option<String>,
    /// What it is for.
    #[arg(long)]
    description: Option<String>,
    /// The project whose node it is: its users see it.
    #[arg(long, value_name = "PROJECT")]
    owner: Option<String>,
    /// The project that has it for now: its users see most of it.
    #[arg(long, value_name = "PROJECT")]
    lessee: Option<String>,
    /// The instance that has the node.
    #[arg(long, value_name = "UUID")]
    instance_uuid: Option<String>,
    /// What the instance is called.
    #[arg(long, value_name = "NAME")]
    instance_name: Option<String>,
    /// The chassis it is in.
    #[arg(long, value_name = "UUID")]
    chassis: Option<String>,
    /// The node it is a part of.
    #[arg(long, value_name = "NODE")]
    parent_node: Option<String>,
    /// The shard it is in: clients that share the nodes each ask for one.
    #[arg(long, value_name = "NAME")]
    shard: Option<String>,
    /// The group of controllers that drive it.
    #[arg(long, value_name = "NAME")]
    conductor_group: Option<String>,
    /// Network of its ramdisk, a JSON object with links, networks and services: a file, `-` for standard input, or the JSON
    /// itself.
    #[arg(long, value_name = "FILE|-|JSON")]
    network_data: Option<String>,
    /// Never switch the node off, but reset it.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    disable_power_off: Option<bool>,
    /// Erase the node before it becomes available; the controller's setting when it was never given.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    automated_clean: Option<bool>,
}

impl Fields {
    /// The network of the ramdisk, a whole object.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn network_data(&self) -> Result<Option<Value>, Failure> {
        self.network_data.as_ref().map(|source| json_object("--network-data", source)).transpose()
    }

    /// The given fields with their names in the API. An object holds only the given keys.
    ///
    /// # Errors
    /// A value cannot be read, or a key is given twice.
    pub fn given(&self) -> Result<Vec<(String, Value)>, Failure> {
        let texts = [
            ("name", &self.name),
            ("resource_class", &self.resource_class),
            ("description", &self.description),
            ("owner", &self.owner),
            ("lessee", &self.lessee),
            ("instance_uuid", &self.instance_uuid),
            ("instance_name", &self.instance_name),
            ("chassis_uuid", &self.chassis),
            ("parent_node", &self.parent_node),
            ("shard", &self.shard),
            ("conductor_group", &self.conductor_group),
        ];
        let switches =
            [("automated_clean", self.automated_clean), ("disable_power_off", self.disable_power_off)];
        let objects = [
            ("driver_info", secret_object("--driver-info", &self.driver_info)?),
            ("properties", object("--property", &self.property)?),
            ("extra", object("--extra", &self.extra)?),
            ("instance_info", object("--instance-info", &self.instance_info)?),
        ];
        let interface = |pair: &Pair| (format!("{}_interface", pair.key), pair.value.clone().into());
        let mut given = Vec::new();
        given.extend(texts.into_iter().filter_map(|(name, text)| Some((name.into(), text.clone()?.into()))));
        given.extend(objects.into_iter().map(|(name, object)| (name.into(), object.into())));
        given
            .retain(|(_, value): &(String, Value)| value.as_object().is_none_or(|object| !object.is_empty()));
        given.extend(self.interface.iter().map(interface));
        given.extend(switches.into_iter().filter_map(|(name, on)| Some((name.into(), on?.into()))));
        Ok(given)
    }
}
