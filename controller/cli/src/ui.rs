//! `anneal ui`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show};
use reqwest::Method;
use serde_json::{Value, json};

/// Print a link that opens the web page and logs a browser on the controller's machine in.
pub async fn run(client: &Client, format: Format) -> Result<(), Failure> {
    let path = ["anneal", "session", "links"];
    let link = client.send(Method::POST, &path, &[], Some(json!({}))).await?.body;
    if matches!(format, Format::Table) {
        eprintln!("{}", advice(&link));
    }
    show(format, &link, |link| cell(&link["url"]))
}

/// How long the link is good; not among what is printed, so that a browser can be given that: `xdg-open "$(anneal ui)"`.
fn advice(link: &Value) -> &'static str {
    match link["expires_at"].is_null() {
        true => "This controller asks for no login. Open in a browser on its machine:",
        false => "Open within a minute, in a browser on the controller's machine; it is good once:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_ends_says_so() {
        assert!(advice(&json!({"url": "u", "expires_at": "t"})).contains("once"));
        assert!(advice(&json!({"url": "u", "expires_at": null})).contains("no login"));
    }
}
