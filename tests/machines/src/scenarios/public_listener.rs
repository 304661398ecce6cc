//! Off loopback no client is authenticated: what nodes can reach serves agents, over TLS, and no other client.

use anyhow::{Result, ensure};
use lab::controller::Controller;
use serde_json::json;

use crate::stage::{NODE, Stage, enrol};

pub const ABOUT: &str = "outside of loopback only agents are served, and only over TLS";

const MAC: &str = "52:54:00:a4:ea:11";

pub async fn story(stage: Stage) -> Result<()> {
    let site = stage.site("").await?;
    let controller = &site.controller;
    enrol(controller, NODE, "fake-hardware", json!({}), MAC).await?;
    let (url, pin) = controller.public()?;
    let other_pin = format!("sha256:{}", "0".repeat(64));

    for words in [
        &["node", "list"][..],
        &["node", "provide", NODE],
        &["node", "delete", NODE],
        &["driver", "list"],
        &["bundle", "list"],
    ] {
        let (code, output) = anneal(controller, &url, &pin, words).await?;
        ensure!(code == Some(1), "{words:?} ended with {code:?}: {output}");
        ensure!(
            output.contains("Only lookup, heartbeat, inspection, bundles and images of agents"),
            "{words:?}: {output}"
        );
    }
    ensure!(controller.node(NODE).await?["provision_state"] == "manageable", "something was changed");

    // Another certificate than the pinned one, and no TLS at all.
    let (code, output) = anneal(controller, &url, &other_pin, &["node", "list"]).await?;
    ensure!(code == Some(5), "a wrong pin: {code:?} {output}");
    let plain = reqwest::get(url.replace("https", "http")).await;
    ensure!(plain.is_err(), "plain HTTP is served outside of loopback");
    Ok(())
}

async fn anneal(
    controller: &Controller,
    url: &str,
    pin: &str,
    words: &[&str],
) -> Result<(Option<i32>, String)> {
    let mut command = controller.cli()?;
    let out = command.args(["--endpoint", url, "--pin", pin]).args(words).output().await?;
    Ok((out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned()))
}
