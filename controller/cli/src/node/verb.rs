//! The verbs of the provision state machine, sent as they are: what may follow what, the controller knows.

use super::batch::{Act, each};
use super::deployment::Deployment;
use super::instance_info::{InstanceInfo, RESCUE_KEYS};
use super::request::{Of, Request};
use crate::client::Client;
use crate::failure::Failure;
use crate::first_boot::all_public_keys;
use crate::output::Format;
use crate::values::{indirect, steps};
use crate::view::NodeView;
use crate::wait::{WaitTarget, status_line, until};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// How steps are given.
const STEPS: &str = "FILE|-|JSON";
/// The option that names a runbook, and the field of the request.
const RUNBOOK: &str = "runbook";

/// What verbs that run steps have in common, besides the steps.
#[derive(Debug, Args)]
pub struct Prepared {
    #[command(flatten)]
    of: Of,
    /// The steps of this runbook: name or UUID.
    #[arg(long)]
    runbook: Option<String>,
    /// Do not boot the ramdisk: no step may need it.
    #[arg(long)]
    disable_ramdisk: bool,
}

/// A verb.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Take the node under management: its BMC is checked. Also the way out of a failed cleaning.
    #[command(visible_alias = "manageable")]
    Manage(Of),
    /// Make the node available: it is erased first, unless automated cleaning is switched off.
    Provide(Of),
    /// Run the given clean steps on a manageable node.
    Clean {
        #[command(flatten)]
        prepared: Prepared,
        /// Steps, a JSON list of {"interface", "step", "args"}: a file, `-` for standard input, or the JSON itself.
        #[arg(long, value_name = STEPS, required_unless_present = RUNBOOK, conflicts_with = RUNBOOK)]
        clean_steps: Option<String>,
    },
    /// Stop what is under way; a step that cannot be stopped ends first.
    Abort(Of),
    /// Learn what hardware it is.
    Inspect(Of),
    /// Deploy the node: write an image to its disk and start it from there.
    #[command(visible_alias = "active")]
    Deploy(Deployment),
    /// Deploy the node again.
    Rebuild(Deployment),
    /// Take the node out of use; it is cleaned. The controller goes on knowing it.
    #[command(visible_alias = "deleted")]
    Undeploy(Of),
    /// Boot the rescue ramdisk.
    Rescue {
        #[command(flatten)]
        of: Of,
        /// Password for it. Without this option, or with `-`, it is asked for without echo (where standard input is no
        /// terminal, one line of it is read); `@FILE` reads it from a file, `@@…` means `@…`. Others can see what
        /// stands on a command line.
        #[arg(
            long,
            value_name = "PASSWORD|@FILE|-",
            default_value = "-",
            hide_default_value = true,
            allow_hyphen_values = true
        )]
        rescue_password: String,
        /// Public SSH keys that may log in, besides the password, one on a line; may be repeated. They become part of the
        /// node's instance_info; without this option those that are there already may log in.
        #[arg(long, value_name = "FILE")]
        ssh_key: Vec<PathBuf>,
    },
    /// Leave the rescue ramdisk.
    Unrescue(Of),
    /// Take over a node that is in use already.
    Adopt(Of),
    /// Run the given service steps on a node in use.
    Service {
        #[command(flatten)]
        prepared: Prepared,
        /// Steps, as with clean.
        #[arg(long, value_name = STEPS, required_unless_present = RUNBOOK, conflicts_with = RUNBOOK)]
        service_steps: Option<String>,
    },
    /// Go on after a hold.
    Unhold(Of),
    /// Make a node available whose cleaning failed, without cleaning it.
    ///
    /// For administrators. The disks may hold anything, nothing certifies them, and the history keeps the reason.
    Override {
        #[command(flatten)]
        of: Of,
        /// Why this is right; kept in the node's history.
        #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        reason: String,
    },
}

impl Verb {
    /// What it costs nodes that it is sent to by mistake.
    fn risk(&self) -> Option<&'static str> {
        Some(match self {
            Self::Manage(_) | Self::Inspect(_) | Self::Adopt(_) | Self::Abort(_) | Self::Unhold(_) => {
                return None;
            }
            Self::Provide(_) => "automated cleaning erases their disks",
            Self::Clean { .. } => "the steps may erase their disks",
            Self::Deploy(_) | Self::Rebuild(_) => "their disks are overwritten",
            Self::Undeploy(_) => "their instances end, and automated cleaning erases their disks",
            Self::Override { .. } => "they enter service with what is on their disks",
            Self::Rescue { .. } | Self::Unrescue(_) | Self::Service { .. } => {
                "their instances are interrupted"
            }
        })
    }

    fn request(self) -> Result<Request, Failure> {
        let to = |of, body, state: &str| Request {
            of,
            body,
            goal: Some(WaitTarget::State(state.to_owned())),
            secret: None,
            instance_info: None,
        };
        Ok(match self {
            Self::Manage(of) => to(of, json!({"target": "manage"}), "manageable"),
            Self::Provide(of) => to(of, json!({"target": "provide"}), "available"),
            Self::Inspect(of) => to(of, json!({"target": "inspect"}), "manageable"),
            // The older spellings, which every version of the API understands.
            Self::Deploy(deployment) => deployment.request("active")?,
            Self::Rebuild(deployment) => deployment.request("rebuild")?,
            Self::Undeploy(of) => to(of, json!({"target": "deleted"}), "available"),
            Self::Unrescue(of) => to(of, json!({"target": "unrescue"}), "active"),
            Self::Adopt(of) => to(of, json!({"target": "adopt"}), "active"),
            Self::Clean { prepared, clean_steps } => {
                let body = prepared.body("clean", clean_steps)?;
                to(prepared.of, body, "manageable")
            }
            Self::Service { prepared, service_steps } => {
                let body = prepared.body("service", service_steps)?;
                to(prepared.of, body, "active")
            }
            Self::Override { of, reason } => {
                to(of, json!({"target": "available", "reason": reason}), "available")
            }
            Self::Abort(of) => {
                Request { goal: Some(WaitTarget::Rest), ..to(of, json!({"target": "abort"}), "") }
            }
            Self::Unhold(of) => Request { goal: None, ..to(of, json!({"target": "unhold"}), "") },
            Self::Rescue { of, rescue_password, ssh_key } => {
                let password = indirect("--rescue-password", &rescue_password)?;
                if password.is_empty() {
                    return Err(Failure::Usage("--rescue-password: the password is empty".to_owned()));
                }
                let body = json!({"target": "rescue", "rescue_password": password});
                let instance_info = keys_of_rescue(&ssh_key)?;
                Request { secret: Some(password), instance_info, ..to(of, body, "rescue") }
            }
        })
    }
}

/// The keys that may log in, if files with some are given.
fn keys_of_rescue(files: &[PathBuf]) -> Result<Option<InstanceInfo>, Failure> {
    let keys = all_public_keys(files)?;
    let fields = || Map::from_iter([(RESCUE_KEYS.to_owned(), json!(keys))]);
    Ok((!keys.is_empty()).then(|| InstanceInfo { keys: &[RESCUE_KEYS], fields: fields() }))
}

impl Prepared {
    /// The request: the steps that are given, or those of the runbook.
    fn body(&self, target: &str, given: Option<String>) -> Result<Value, Failure> {
        let mut body = json!({"target": target});
        if let Some(source) = given {
            body[format!("{target}_steps")] = steps(&format!("--{target}-steps"), &source)?;
        }
        if let Some(runbook) = &self.runbook {
            body[RUNBOOK] = runbook.as_str().into();
        }
        // Only sent when it says something: older servers do not know it.
        if self.disable_ramdisk {
            body["disable_ramdisk"] = true.into();
        }
        Ok(body)
    }
}

/// Sends the verb and, if asked to, waits for its end.
pub async fn run(client: &Client, format: Format, verb: Verb) -> Result<(), Failure> {
    let risk = verb.risk();
    let request = verb.request()?;
    let success = if request.of.wait.limit().is_some() { "done" } else { "accepted" };
    let view = |node: &Value| status_line(&NodeView::of(node));
    let one = async |node: &str| request.send(client, node).await;
    each(client, format, &request.of.nodes, &Act { risk, success }, view, one).await
}

impl Request {
    /// Sends it to a node, and returns the node as it is then, or at its end.
    async fn send(&self, client: &Client, node: &str) -> Result<Value, Failure> {
        if let Some(part) = &self.instance_info {
            part.set(client, node).await?;
        }
        let path = ["nodes", node, "states", "provision"];
        let sent = client.send(Method::PUT, &path, &[], Some(self.body.clone())).await;
        sent.map_err(|failure| match &self.secret {
            Some(secret) => failure.without(secret),
            None => failure,
        })?;
        let seen = client.get(&["nodes", node], &[]).await?;
        let Some(limit) = self.of.wait.limit() else { return Ok(seen) };
        let named = NodeView::of(&seen).target_provision_state.map(WaitTarget::State);
        until(client, node, &self.goal.clone().or(named).unwrap_or(WaitTarget::Rest), limit).await
    }
}
