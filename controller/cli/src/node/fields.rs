//! The fields that `anneal node create` and `anneal node set` write.

use crate::failure::Failure;
use crate::values::{Pair, driver_info, object, pair};
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
    /// Erase the node before it becomes available; the controller's setting when it was never given.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    automated_clean: Option<bool>,
}

impl Fields {
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
        ];
        let objects = [
            ("driver_info", driver_info(&self.driver_info)?),
            ("properties", object("--property", &self.property)?),
            ("extra", object("--extra", &self.extra)?),
        ];
        let interface = |pair: &Pair| (format!("{}_interface", pair.key), pair.value.clone().into());
        let mut given = Vec::new();
        given.extend(texts.into_iter().filter_map(|(name, text)| Some((name.into(), text.clone()?.into()))));
        given.extend(objects.into_iter().map(|(name, object)| (name.into(), object.into())));
        given
            .retain(|(_, value): &(String, Value)| value.as_object().is_none_or(|object| !object.is_empty()));
        given.extend(self.interface.iter().map(interface));
        given.extend(self.automated_clean.map(|clean| ("automated_clean".into(), clean.into())));
        Ok(given)
    }
}
