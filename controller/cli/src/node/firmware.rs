//! How a node starts, its BIOS settings, and the versions of its firmware.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use clap::{Args, ValueEnum};
use reqwest::Method;
use serde_json::{Value, json};

/// A node, and how it is to start.
#[derive(Debug, Args)]
pub struct BootMode {
    /// Name or UUID.
    node: String,
    /// By which firmware.
    mode: Mode,
}

/// By which firmware a node starts.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// The older one.
    Bios,
    /// The newer one.
    Uefi,
}

/// A node, and its secure boot.
#[derive(Debug, Args)]
pub struct SecureBoot {
    /// Name or UUID.
    node: String,
    /// On or off.
    state: OnOff,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnOff {
    /// On.
    On,
    /// Off.
    Off,
}

/// `anneal node boot-mode`
pub async fn set_boot_mode(client: &Client, format: Format, command: BootMode) -> Result<(), Failure> {
    let target = match command.mode {
        Mode::Bios => "bios",
        Mode::Uefi => "uefi",
    };
    set(client, format, &command.node, "boot_mode", target.into()).await
}

/// `anneal node secure-boot`
pub async fn set_secure_boot(client: &Client, format: Format, command: SecureBoot) -> Result<(), Failure> {
    set(client, format, &command.node, "secure_boot", (command.state == OnOff::On).into()).await
}

async fn set(client: &Client, format: Format, node: &str, what: &str, target: Value) -> Result<(), Failure> {
    client.send(Method::PUT, &["nodes", node, "states", what], &[], Some(json!({"target": target}))).await?;
    let states = client.get(&["nodes", node, "states"], &[]).await?;
    show(format, &states, |states| {
        format!(
            "{node}: boot mode {}, secure boot {}",
            cell(&states["boot_mode"]),
            cell(&states["secure_boot"])
        )
    })
}

/// `anneal node bios`
pub async fn bios(client: &Client, format: Format, node: &str, setting: Option<&str>) -> Result<(), Failure> {
    let settings = match setting {
        None => client.get_all(&["nodes", node, "bios"], &[], "bios").await?,
        // The answer has the setting under its name.
        Some(setting) => vec![client.get(&["nodes", node, "bios", setting], &[]).await?[setting].take()],
    };
    show(format, &settings.into(), |settings| columns(settings, &["NAME", "VALUE"], &["name", "value"]))
}

/// `anneal node firmware`
pub async fn versions(client: &Client, format: Format, node: &str) -> Result<(), Failure> {
    let components = client.get_all(&["nodes", node, "firmware"], &[], "firmware").await?;
    show(format, &components.into(), |components| {
        let keys = ["component", "current_version", "vendor", "created_at"];
        columns(components, &["COMPONENT", "VERSION", "VENDOR", "SEEN"], &keys)
    })
}

fn columns(list: &Value, headings: &[&str], keys: &[&str]) -> String {
    let row = |one: &Value| keys.iter().map(|key| cell(&one[*key])).collect();
    let rows: Vec<Vec<String>> = list.as_array().into_iter().flatten().map(row).collect();
    table(headings, &rows)
}
