//! Inspection by Redfish.
use serde_json::{Map, Value, json};

use super::Redfish;
use crate::BmcError;

pub(crate) async fn inspect(info: &Map<String, Value>) -> Result<Value, BmcError> {
    let redfish = Redfish::new(info)?;
    let _system = redfish.system("inspect the system").await?;
    Ok(json!({"inventory": {}, "plugin_data": {}}))
}
