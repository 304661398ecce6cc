//! `anneal deploy-template …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, detail, show, table};
use crate::values::{Pair, object, pair, steps};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// Verbs of deploy templates.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a template: its steps run when an instance with the trait of its name is deployed.
    Create {
        /// Name, which is a trait: `CUSTOM_…` or one of the standard traits.
        name: String,
        /// Steps, a JSON list of {"interface", "step", "args", "priority"}: a file, `-` for standard input, or the
        /// JSON itself. Priority 0 switches a step off that would run by itself.
        #[arg(long, value_name = "FILE|-|JSON")]
        steps: String,
        /// UUID; made up when not given.
        #[arg(long)]
        uuid: Option<String>,
        /// Free data.
        #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
        extra: Vec<Pair>,
    },
    /// The templates.
    List,
    /// One template.
    Show {
        /// Name or UUID.
        template: String,
    },
    /// Remove a template.
    Delete {
        /// Name or UUID.
        template: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, steps: source, uuid, extra } => {
            let mut body = json!({"name": name, "steps": steps("--steps", &source)?});
            if let Some(uuid) = uuid {
                body["uuid"] = uuid.into();
            }
            if !extra.is_empty() {
                body["extra"] = object("--extra", &extra)?.into();
            }
            let made = client.send(Method::POST, &["deploy_templates"], &[], Some(body)).await?.body;
            show(format, &made, detail)
        }
        Command::List => {
            let query = [("detail", "true".to_owned())];
            let templates = client.get_all(&["deploy_templates"], &query, "deploy_templates").await?;
            show(format, &templates.into(), listing)
        }
        Command::Show { template } => {
            let template = client.get(&["deploy_templates", &template], &[]).await?;
            show(format, &template, detail)
        }
        Command::Delete { template } => {
            client.send(Method::DELETE, &["deploy_templates", &template], &[], None).await?;
            show(format, &json!({"deleted": template}), |_| format!("deleted deploy template {template}"))
        }
    }
}

fn listing(templates: &Value) -> String {
    let row = |template: &Value| {
        let step = |step: &Value| {
            format!("{}.{} ({})", cell(&step["interface"]), cell(&step["step"]), cell(&step["priority"]))
        };
        let steps: Vec<_> = template["steps"].as_array().into_iter().flatten().map(step).collect();
        vec![cell(&template["uuid"]), cell(&template["name"]), steps.join(", ")]
    };
    let rows: Vec<_> = templates.as_array().into_iter().flatten().map(row).collect();
    table(&["UUID", "NAME", "STEPS (PRIORITY)"], &rows)
}

#[cfg(test)]
mod tests {
    #[test]
    fn templates_in_a_table() {
        let templates = serde_json::json!([{"uuid": "u", "name": "CUSTOM_HT_ON", "steps": [
            {"interface": "bios", "step": "apply_configuration", "args": {"settings": []}, "priority": 150}]}]);
        assert_eq!(
            super::listing(&templates),
            "UUID  NAME          STEPS (PRIORITY)\nu     CUSTOM_HT_ON  bios.apply_configuration (150)\n"
        );
    }
}
