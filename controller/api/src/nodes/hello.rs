//! Whether the hello that a deployment asks for can come: judged before anything changes.

use crate::app::App;
use crate::nodes::validation;
use model::Node;
use model::hello::{self, HelloError};
use model::image::{CONFIGDRIVE, DIRECT};
use serde_json::Value;

/// Whether a deployment of the node can await the hello that its `instance_info` asks for, with the configuration drive of the
/// request, or else the stored one.
pub fn check(app: &App, node: &Node, given: Option<&Value>) -> Result<(), HelloError> {
    if hello::seconds(&node.instance_info)?.is_none() {
        return Ok(());
    }
    if validation::interface(app, node, "deploy") != Some(DIRECT) {
        let why = "only the deploy interface direct writes the configuration drive that asks for it";
        return Err(HelloError::because(why));
    }
    if app.settings.hello_url.is_empty() {
        let why = "this controller serves no boot HTTP ([boot] enabled), at which an instance says it";
        return Err(HelloError::because(why));
    }
    hello::check_drive(given.or(node.instance_info.get(CONFIGDRIVE)))
}
