//! What an operator does with the bundles of a controller.

use super::offline;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, bytes, cell, fields, print, show, table};
use bundle::Trust;
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;

const PATH: [&str; 2] = ["anneal", "bundles"];

/// `anneal bundle add`
pub async fn add(client: &Client, format: Format, path: &Path, scope: Option<String>) -> Result<(), Failure> {
    // Whose it is the controller says; whether it is whole is seen before it is sent.
    let found = offline::judge(path, &Trust::Digest)?;
    let mut query = vec![("digest", found.digest)];
    query.extend(scope.map(|scope| ("scope", scope)));
    let added = client.upload(&PATH, &query, path).await?;
    show(format, &added, |added| {
        let replaced = match &added["replaced"] {
            Value::Null => String::new(),
            old => format!(" in the place of {}", cell(&old["version"])),
        };
        format!(
            "added {} {} for {}{replaced}: nodes have it from their next boot\n",
            cell(&added["name"]),
            cell(&added["version"]),
            cell(&added["scope"])
        )
    })
}

/// `anneal bundle list`
pub async fn list(client: &Client, format: Format, node: Option<String>) -> Result<(), Failure> {
    let query: Vec<_> = node.into_iter().map(|node| ("node", node)).collect();
    let bundles = client.get_all(&PATH, &query, "bundles").await?;
    show(format, &bundles.into(), listing)
}

fn listing(bundles: &Value) -> String {
    let row = |bundle: &Value| {
        vec![
            cell(&bundle["name"]),
            cell(&bundle["version"]),
            cell(&bundle["scope"]),
            short(&cell(&bundle["digest"])).to_owned(),
            bundle["size"].as_u64().map_or_else(|| "-".to_owned(), bytes),
            cell(&bundle["signed_by"]),
        ]
    };
    let rows: Vec<_> = bundles.as_array().into_iter().flatten().map(row).collect();
    table(&["NAME", "VERSION", "SCOPE", "DIGEST", "SIZE", "SIGNED BY"], &rows)
}

/// The first 12 digits of a digest: enough for people to distinguish bundles.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// `anneal bundle show`
pub async fn show_one(client: &Client, format: Format, digest: &str) -> Result<(), Failure> {
    let digest = whole(client, digest).await?;
    let bundle = client.get(&[PATH[0], PATH[1], &digest], &[]).await?;
    show(format, &bundle, |bundle| {
        let mut rows = Vec::new();
        for key in ["name", "version", "vendor", "digest", "size", "signed_by", "created_at"] {
            rows.push((key.to_owned(), cell(&bundle[key])));
        }
        let words = |list: &Value| {
            let words: Vec<_> = list.as_array().into_iter().flatten().map(cell).collect();
            words.join(" ")
        };
        rows.push(("scopes".to_owned(), words(&bundle["scopes"])));
        rows.push(("entry".to_owned(), words(&bundle["manifest"]["entry"])));
        rows.push(("grants".to_owned(), offline::granted(&bundle["manifest"]["grants"])));
        fields(&rows)
    })
}

/// `anneal bundle remove`
pub async fn remove(
    client: &Client,
    format: Format,
    digest: &str,
    scope: Option<String>,
) -> Result<(), Failure> {
    let digest = whole(client, digest).await?;
    let query: Vec<_> = scope.iter().map(|scope| ("scope", scope.clone())).collect();
    client.send(Method::DELETE, &[PATH[0], PATH[1], &digest], &query, None).await?;
    match format {
        Format::Json => show(format, &json!({"removed": digest, "scope": scope}), cell),
        Format::Table => {
            let from = scope.as_deref().unwrap_or("every scope");
            print(&format!("removed bundle {} from {from}", short(&digest)))
        }
    }
}

/// The one digest that begins so.
async fn whole(client: &Client, beginning: &str) -> Result<String, Failure> {
    if bundle::is_digest(beginning) {
        return Ok(beginning.to_owned());
    }
    let bundles = client.get_all(&PATH, &[], "bundles").await?;
    let digests = bundles.iter().filter_map(|bundle| bundle["digest"].as_str());
    let mut found: Vec<&str> = digests.filter(|digest| digest.starts_with(beginning)).collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [one] => Ok(one.to_owned()),
        [] => Err(Failure::Usage(format!("{beginning:?}: no bundle has a digest that begins so"))),
        _ => Err(Failure::Usage(format!("{beginning:?}: the digests of {} bundles begin so", found.len()))),
    }
}
