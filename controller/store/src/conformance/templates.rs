//! Deploy templates: names, versions, order.

use super::{assert_duplicate, assert_not_found, assert_stale, at, object, rung};
use crate::{Noun, Store, StoreError, Unique};
use model::DeployTemplate;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

fn template(name: &str, created: i64) -> DeployTemplate {
    let steps = json!([
        {"interface": "bios", "step": "apply", "args": {"settings": [1, null]}, "priority": 150},
        {"interface": "deploy", "step": "erase", "args": {}, "priority": 0},
    ]);
    DeployTemplate {
        uuid: Uuid::new_v4(),
        name: name.to_owned(),
        version: 0,
        steps: serde_json::from_value(steps).unwrap(),
        description: Some("what for".to_owned()),
        extra: object(json!({"k": {"deep": [true]}})),
        created_at: at(created),
        updated_at: None,
    }
}

pub async fn templates_come_and_go<S: Store>(store: Arc<S>) {
    assert_eq!(store.templates().await.unwrap(), []);
    let mut made = Vec::new();
    for (name, created) in [("CUSTOM_C", 3), ("CUSTOM_A", 1), ("CUSTOM_B", 1)] {
        let mut new = template(name, created);
        let stored = store.create_template(new.clone()).await.unwrap();
        new.version = 1;
        assert_eq!(stored, new);
        for ident in [name.to_owned(), new.uuid.to_string(), new.uuid.to_string().to_uppercase()] {
            assert_eq!(store.template(&ident).await.unwrap(), new, "{ident}");
        }
        made.push(new);
    }
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let named = store.templates_named(&names(&["CUSTOM_C", "nosuch", "CUSTOM_A", "%"])).await.unwrap();
    assert_eq!(named, [made[1].clone(), made[0].clone()], "by name");
    assert_eq!(store.templates_named(&[]).await.unwrap(), []);
    made.sort_by_key(|template| (template.created_at, template.uuid));
    assert_eq!(store.templates().await.unwrap(), made);

    let mut changed = made[0].clone();
    changed.name = "CUSTOM_NEW".to_owned();
    changed.steps.pop();
    changed.updated_at = Some(at(9));
    let stored = store.update_template(changed.clone()).await.unwrap();
    changed.version = 2;
    assert_eq!(stored, changed);
    assert_eq!(store.template("CUSTOM_NEW").await.unwrap(), changed);
    let old = made[0].name.clone();
    assert_not_found(store.template(&old).await, Noun::DeployTemplate, old);

    store.delete_template(changed.uuid).await.unwrap();
    assert_not_found(store.delete_template(changed.uuid).await, Noun::DeployTemplate, changed.uuid);
    assert_not_found(store.update_template(changed.clone()).await, Noun::DeployTemplate, changed.uuid);
    assert_eq!(store.templates().await.unwrap(), made[1..]);
}

pub async fn unique_names<S: Store>(store: Arc<S>) {
    let first = store.create_template(template("CUSTOM_A", 1)).await.unwrap();
    let second = store.create_template(template("CUSTOM_B", 2)).await.unwrap();
    assert_duplicate(store.create_template(first.clone()).await, Unique::DeployTemplateUuid, first.uuid);
    let taken = template("CUSTOM_A", 3);
    assert_duplicate(store.create_template(taken).await, Unique::DeployTemplateName, "CUSTOM_A");
    let renamed = DeployTemplate { name: "CUSTOM_A".to_owned(), ..second.clone() };
    assert_duplicate(store.update_template(renamed).await, Unique::DeployTemplateName, "CUSTOM_A");
    assert_eq!(store.templates().await.unwrap(), [first.clone(), second], "what was refused was not stored");
    store.update_template(first.clone()).await.expect("it may keep its own name");
    store.delete_template(first.uuid).await.unwrap();
    store.create_template(template("CUSTOM_A", 4)).await.expect("a name given up is free");
}

pub async fn a_stale_template_write_changes_nothing<S: Store>(store: Arc<S>) {
    let read = store.create_template(template("CUSTOM_A", 1)).await.unwrap();
    let stored = store.update_template(read.clone()).await.unwrap();
    for version in [0, 1, 3, u64::MAX] {
        let late = DeployTemplate { version, description: None, ..read.clone() };
        assert_stale(store.update_template(late).await, read.uuid);
    }
    assert_eq!(store.templates().await.unwrap(), [stored]);
}

pub async fn of_two_templates_of_one_name_one_wins<S: Store + 'static>(store: Arc<S>) {
    for round in 0..10 {
        let create = || {
            let (store, new) = (store.clone(), template(&format!("CUSTOM_{round}"), round));
            tokio::spawn(async move { store.create_template(new).await })
        };
        let (a, b) = (create(), create());
        match (a.await.unwrap(), b.await.unwrap()) {
            (Ok(_), Err(StoreError::Duplicate { .. })) | (Err(StoreError::Duplicate { .. }), Ok(_)) => {}
            other => panic!("exactly one of two templates gets the name, got {other:?}"),
        }
    }
    assert_eq!(store.templates().await.unwrap().len(), 10);
}

pub async fn templates_ring_nothing<S: Store>(store: Arc<S>) {
    let mut ears = store.bell().listen();
    let made = store.create_template(template("CUSTOM_A", 1)).await.unwrap();
    let made = store.update_template(made).await.unwrap();
    store.delete_template(made.uuid).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::new());
}
