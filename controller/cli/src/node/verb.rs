//! The verbs of the provision state machine, sent as they are: what may follow what, the controller knows.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, show};
use crate::values::{indirect, steps};
use crate::view::{FOLLOWED, NodeView};
use crate::wait::{Goal, WaitOption, status_line, until};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

/// A node, and whether to wait for the end.
#[derive(Debug, Args)]
pub struct Of {
    /// Name or UUID.
    node: String,
    #[command(flatten)]
    wait: WaitOption,
}

/// A verb.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Take the node under management: its BMC is checked. Also the way out of a failed cleaning.
    Manage(Of),
    /// Make the node available: it is erased first, unless automated cleaning is switched off.
    Provide(Of),
    /// Run the given clean steps on a manageable node.
    Clean {
        #[command(flatten)]
        of: Of,
        /// Steps, a JSON list of {"interface", "step", "args"}: a file, `-` for standard input, or the JSON itself.
        #[arg(long, value_name = "FILE|-|JSON", allow_hyphen_values = true)]
        clean_steps: String,
    },
    /// Stop what is under way; a step that cannot be stopped ends first.
    Abort(Of),
    /// Learn what hardware it is.
    Inspect(Of),
    /// Deploy the node.
    #[command(alias = "active")]
    Deploy(Of),
    /// Deploy the node again.
    Rebuild(Of),
    /// Take the node out of use; it is cleaned.
    #[command(alias = "deleted")]
    Undeploy(Of),
    /// Boot the rescue ramdisk.
    Rescue {
        #[command(flatten)]
        of: Of,
        /// Password for it: `@FILE` reads it from a file, `-` asks for it.
        #[arg(long, default_value = "-", allow_hyphen_values = true)]
        rescue_password: String,
    },
    /// Leave the rescue ramdisk.
    Unrescue(Of),
    /// Take over a node that is in use already.
    Adopt(Of),
    /// Run steps on a node in use.
    Service {
        #[command(flatten)]
        of: Of,
        /// Steps, as with clean.
        #[arg(long, value_name = "FILE|-|JSON", allow_hyphen_values = true)]
        service_steps: String,
    },
    /// Go on after a hold.
    Unhold(Of),
}

impl Verb {
    /// The request's body and what `--wait` waits for; `None`: for the target the node then names.
    fn request(self) -> Result<(Of, Value, Option<Goal>), Failure> {
        let to = |state: &str| Some(Goal::State(state.to_owned()));
        let plain = |of, target: &str, goal| Ok((of, json!({"target": target}), goal));
        match self {
            Self::Manage(of) => plain(of, "manage", to("manageable")),
            Self::Provide(of) => plain(of, "provide", to("available")),
            Self::Abort(of) => plain(of, "abort", Some(Goal::Rest)),
            Self::Inspect(of) => plain(of, "inspect", to("manageable")),
            Self::Deploy(of) => plain(of, "active", to("active")),
            Self::Rebuild(of) => plain(of, "rebuild", to("active")),
            Self::Undeploy(of) => plain(of, "deleted", to("available")),
            Self::Unrescue(of) => plain(of, "unrescue", to("active")),
            Self::Adopt(of) => plain(of, "adopt", to("active")),
            Self::Unhold(of) => plain(of, "unhold", None),
            Self::Clean { of, clean_steps } => {
                let steps = steps("--clean-steps", &clean_steps)?;
                Ok((of, json!({"target": "clean", "clean_steps": steps}), to("manageable")))
            }
            Self::Service { of, service_steps } => {
                let steps = steps("--service-steps", &service_steps)?;
                Ok((of, json!({"target": "service", "service_steps": steps}), to("active")))
            }
            Self::Rescue { of, rescue_password } => {
                let password = indirect("--rescue-password", &rescue_password)?;
                Ok((of, json!({"target": "rescue", "rescue_password": password}), to("rescue")))
            }
        }
    }
}

/// Sends the verb and, if asked to, waits for its end.
pub async fn run(client: &Client, format: Format, verb: Verb) -> Result<(), Failure> {
    let (of, body, goal) = verb.request()?;
    let node = of.node.as_str();
    client.send(Method::PUT, &["nodes", node, "states", "provision"], &[], Some(body)).await?;
    let seen = client.get(&["nodes", node], &[("fields", FOLLOWED.to_owned())]).await?;
    let end = match of.wait.limit() {
        None => seen,
        Some(limit) => {
            let named = NodeView::of(&seen).target_provision_state.map(Goal::State);
            until(client, node, &goal.or(named).unwrap_or(Goal::Rest), limit).await?
        }
    };
    show(format, &end, |node| status_line(&NodeView::of(node)))
}
