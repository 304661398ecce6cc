//! What the verbs of a noun over a collection send, and what they print.

use super::arguments::{Command, FIELDS, Verb};
use super::{Collection, Field, Kind, Resource};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, detail, show, table};
use crate::patch;
use crate::values::{Pair, json_list, mac, object, secret_object, steps, text_object};
use clap::ArgMatches;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Does it.
pub async fn run<R: Resource>(client: &Client, format: Format, command: Command<R>) -> Result<(), Failure> {
    let collection = R::COLLECTION;
    match command.verb {
        Verb::List(given) => list(collection, client, format, &given).await,
        Verb::Show(ident) => show(format, &one(client, collection, &ident).await?, detail),
        Verb::Create(given) => {
            let given = read(collection, &given)?;
            let mut body = Map::new();
            for (field, value) in given {
                body.insert(field.name.to_owned(), value.found(client).await?);
            }
            let made = client.send(Method::POST, collection.path, &[], Some(body.into())).await?.body;
            show(format, &made, detail)
        }
        Verb::Set(ident, given) => {
            let given = read(collection, &given)?;
            let mut changes = Vec::new();
            for (field, value) in given {
                changes.extend(patch::sets(field.name, value.found(client).await?));
            }
            change(collection, client, format, &ident, changes).await
        }
        Verb::Unset(ident, given) => {
            let changes = removals(collection, &given);
            change(collection, client, format, &ident, changes).await
        }
        Verb::Delete(ident) => {
            let uuid = named(client, collection, &ident).await?;
            client.send(Method::DELETE, &of(collection, &uuid), &[], None).await?;
            show(format, &json!({"deleted": uuid}), |_| format!("deleted {} {ident}", collection.one))
        }
    }
}

/// One of a collection, by what names it.
async fn one(client: &Client, collection: &Collection, ident: &str) -> Result<Value, Failure> {
    let uuid = named(client, collection, ident).await?;
    client.get(&of(collection, &uuid), &[]).await
}

fn of<'a>(collection: &'a Collection, ident: &'a str) -> Vec<&'a str> {
    [collection.path, &[ident]].concat()
}

async fn list(
    collection: &'static Collection,
    client: &Client,
    format: Format,
    given: &ArgMatches,
) -> Result<(), Failure> {
    let fields: Vec<String> = given.get_many(FIELDS).into_iter().flatten().cloned().collect();
    let mut query = Vec::new();
    if fields.is_empty() {
        query.extend(collection.query.map(|(name, value)| (name, value.to_owned())));
    } else {
        query.push((FIELDS, fields.join(",")));
    }
    for (option, argument, _) in collection.filters {
        query.extend(given.get_one::<String>(option).map(|value| (*argument, value.clone())));
    }
    let found: Value = client.get_all(collection.path, &query, collection.list).await?.into();
    show(format, &found, |found| match fields.is_empty() {
        true => listing(collection, found),
        false => chosen(found, &fields),
    })
}

fn listing(collection: &Collection, found: &Value) -> String {
    let row =
        |one: &Value| collection.columns.iter().map(|column| (column.shown)(&one[column.key])).collect();
    let rows: Vec<Vec<String>> = found.as_array().into_iter().flatten().map(row).collect();
    let headings: Vec<&str> = collection.columns.iter().map(|column| column.heading).collect();
    table(&headings, &rows)
}

/// A table of these fields.
pub fn chosen(found: &Value, fields: &[String]) -> String {
    let headings: Vec<String> = fields.iter().map(|field| field.to_uppercase()).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let row = |one: &Value| fields.iter().map(|key| cell(&one[key])).collect();
    let rows: Vec<Vec<String>> = found.as_array().into_iter().flatten().map(row).collect();
    table(&headings, &rows)
}

async fn change(
    collection: &Collection,
    client: &Client,
    format: Format,
    ident: &str,
    changes: Vec<Value>,
) -> Result<(), Failure> {
    patch::not_empty(&changes)?;
    let uuid = named(client, collection, ident).await?;
    let changed = client.send(Method::PATCH, &of(collection, &uuid), &[], Some(changes.into())).await?.body;
    show(format, &changed, detail)
}

/// What the API takes for a name: the UUID, where a MAC address was given.
async fn named(client: &Client, collection: &Collection, ident: &str) -> Result<String, Failure> {
    let Some(address) = mac(ident).ok().filter(|_| collection.has_address) else {
        return Ok(ident.to_owned());
    };
    let query = [("address", address), (FIELDS, "uuid".to_owned())];
    let found = client.get_all(collection.path, &query, collection.list).await?;
    match found.first().and_then(|one| one["uuid"].as_str()) {
        Some(uuid) => Ok(uuid.to_owned()),
        None => {
            let message = format!("No {} has the MAC address {ident}.", collection.one);
            Err(Failure::Refused { status: 404, message })
        }
    }
}

/// A value as it was given.
enum Given {
    /// The value.
    Value(Value),
    /// A name or UUID in a collection.
    Name(&'static str, String),
}

impl Given {
    /// The value, for which the controller is asked where a name was given.
    async fn found(self, client: &Client) -> Result<Value, Failure> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Name(collection, name) => {
                let mut found = client.get(&[collection, &name], &[(FIELDS, "uuid".to_owned())]).await?;
                Ok(found["uuid"].take())
            }
        }
    }
}

/// The given fields. All that can be wrong without the controller is found here, before anything is sent.
fn read(collection: &Collection, given: &ArgMatches) -> Result<Vec<(&'static Field, Given)>, Failure> {
    let is_given = |field: &&Field| given.try_contains_id(field.option).unwrap_or(false);
    collection.fields().filter(is_given).map(|field| Ok((field, value(field, given)?))).collect()
}

fn value(field: &Field, given: &ArgMatches) -> Result<Given, Failure> {
    let id = field.option;
    let option = format!("--{id}");
    let text = || given.get_one::<String>(id).cloned().unwrap_or_default();
    let pairs = || given.get_many::<Pair>(id).into_iter().flatten().cloned().collect::<Vec<_>>();
    Ok(Given::Value(match field.kind {
        Kind::Text | Kind::Address => text().into(),
        Kind::Boolean => given.get_one::<bool>(id).copied().into(),
        Kind::Integer => given.get_one::<i64>(id).copied().into(),
        Kind::Object => object(&option, &pairs())?.into(),
        Kind::TextObject => text_object(&option, &pairs())?.into(),
        Kind::SecretObject => secret_object(&option, &pairs())?.into(),
        Kind::Texts => given.get_many::<String>(id).into_iter().flatten().cloned().collect(),
        Kind::Steps => steps(&option, &text())?,
        Kind::List => json_list(&option, &text())?,
        Kind::Reference(collection) => return Ok(Given::Name(collection, text())),
    }))
}

/// The patch that removes what is named.
fn removals(collection: &Collection, given: &ArgMatches) -> Vec<Value> {
    let mut changes = Vec::new();
    for field in collection.fields() {
        if field.kind.is_object() {
            let keys = given.try_get_many::<String>(field.option).ok().flatten().into_iter().flatten();
            changes.extend(keys.map(|key| patch::remove(&patch::pointer(field.name, key))));
        } else if given.try_get_one::<bool>(field.option).ok().flatten() == Some(&true) {
            changes.push(patch::remove(&format!("/{}", field.name)));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploy_template::DeployTemplate;
    use crate::port::Port;

    #[test]
    fn lists_in_tables() {
        let ports =
            json!([{"uuid": "p", "address": "52:54:00:aa:bb:01", "node_uuid": "n", "pxe_enabled": true}]);
        assert_eq!(
            listing(Port::COLLECTION, &ports),
            "UUID  ADDRESS            NODE  PXE\np     52:54:00:aa:bb:01  n     true\n"
        );
        let templates = json!([{"uuid": "u", "name": "CUSTOM_HT_ON", "steps": [
            {"interface": "bios", "step": "apply_configuration", "args": {"settings": []}, "priority": 150}]}]);
        assert_eq!(
            listing(DeployTemplate::COLLECTION, &templates),
            "UUID  NAME          STEPS (PRIORITY)\nu     CUSTOM_HT_ON  bios.apply_configuration (150)\n"
        );
        assert_eq!(chosen(&ports, &["uuid".to_owned()]), "UUID\np\n");
    }
}
