use super::*;
use crate::kind::RunKind;
use crate::node::Node;
use crate::request::accept_hello;
use crate::run::{Cursor, Run};

fn info(value: Value) -> Map<String, Value> {
    Map::from_iter([(WAIT_FOR_HELLO.to_owned(), value)])
}

#[test]
fn a_nonce_is_new_each_time_and_not_shown() {
    let [first, second] = [json!(true), json!(60)].map(|value| Hello::wanted(&info(value)).unwrap());
    assert_ne!(first.nonce, second.nonce);
    assert_eq!(first.nonce.expose().len(), 64);
    assert!(!format!("{first:?}").contains(first.nonce.expose()));
    assert_eq!((first.limit_s, second.limit()), (1800, Duration::from_secs(60)));
    // The store encrypts what is called a secret.
    let stored = serde_json::to_value(&first).unwrap();
    assert_eq!(stored["secret_nonce"], first.nonce.expose());
    let forgotten: Hello = serde_json::from_value(json!({"limit_s": 60})).unwrap();
    assert!(forgotten.nonce.expose().is_empty(), "as after anneal-controller forget-secrets");
    assert!(forgotten.vendor_data("http://192.0.2.1").is_err());
}

#[test]
fn seconds_are_a_number_or_a_boolean_also_as_text() {
    for (value, expected) in [
        (json!(null), None),
        (json!(false), None),
        (json!("False"), None),
        (json!(true), Some(1800)),
        (json!("true"), Some(1800)),
        (json!(10), Some(10)),
        (json!("86400"), Some(86_400)),
    ] {
        assert_eq!(seconds(&info(value.clone())), Ok(expected), "{value}");
    }
    assert_eq!(seconds(&Map::new()), Ok(None));
    for bad in [json!(9), json!(86_401), json!(-1), json!(60.5), json!("soon"), json!(""), json!([60])] {
        let why = seconds(&info(bad.clone())).unwrap_err().to_string();
        assert!(why.contains(WAIT_FOR_HELLO) && why.contains("10 to 86400"), "{bad}: {why}");
        // Fails closed where the value was not checked.
        assert_eq!(Hello::wanted(&info(bad)).unwrap().limit_s, 1800);
    }
}

#[test]
fn cloud_init_is_asked_to_request_the_url_and_to_send_nothing_else() {
    let hello = Hello::wanted(&info(json!(600))).unwrap();
    let data = hello.vendor_data("http://192.0.2.1:8089").unwrap();
    let (first, rest) = data["cloud-init"].as_str().unwrap().split_once('\n').unwrap();
    assert_eq!(first, "#cloud-config");
    let url = format!("http://192.0.2.1:8089/hello/{}", hello.nonce.expose());
    let expected = json!({"phone_home": {"url": url, "post": [], "tries": 200}});
    assert_eq!(serde_json::from_str::<Value>(rest).unwrap(), expected);
    assert!(hello.vendor_data("").is_err());
}

#[test]
fn a_drive_that_cannot_take_it_is_refused_without_its_content() {
    for (drive, says) in [
        (json!("aXNv"), "ready-made ISO image"),
        (json!("https://hunter2@drives/x"), "is a URL"),
        (
            json!({"user_data": "#cloud-config\nphone_home: {url: hunter2}"}),
            "user_data of the configdrive has",
        ),
        (json!({"user_data": {"phone_home": {"url": "hunter2"}}}), "user_data of the configdrive has"),
        (json!({"vendor_data": {"cloud-init": "#cloud-config\nphone_home: {}"}}), "vendor_data of the"),
        (json!({"user_data": "#cloud-config\nvendor_data: {enabled: false}"}), "what becomes of vendor data"),
    ] {
        let why = check_drive(Some(&drive)).unwrap_err().to_string();
        assert!(why.contains(says) && why.contains(WAIT_FOR_HELLO) && !why.contains("hunter2"), "{why}");
    }
    let with_user_data = |text: &str| json!({"user_data": text, "vendor_data": {"x": 1}});
    for drive in [
        None,
        Some(Value::Null),
        Some(json!("")),
        Some(json!({})),
        Some(with_user_data("#!/bin/sh\necho vendor_data:")),
        Some(with_user_data("#cloud-config\nruncmd: [date]\n")),
    ] {
        assert_eq!(check_drive(drive.as_ref()), Ok(()), "{drive:?}");
    }
}

#[test]
fn a_hello_is_heard_once_and_only_while_it_is_awaited() {
    let mut node = Node::enrolled(Uuid::new_v4(), "redfish", Timestamp(0));
    let hello = Hello::wanted(&info(json!(60)));
    let mut run = Run { hello: hello.clone(), ..Run::new(RunKind::Deploy, Timestamp(0)) };
    run.cursor = Cursor::AwaitHello { command_id: "c".into(), since: Timestamp(1) };
    node.run = Some(run.clone());
    let (after, _) = accept_hello(&node, Timestamp(7)).unwrap();
    assert_eq!(after.run.as_ref().unwrap().hello.as_ref().unwrap().heard_at, Some(Timestamp(7)));
    assert_eq!(after.next_wake_at, Some(Timestamp(7)));
    assert_eq!(accept_hello(&after, Timestamp(8)), None, "a second one");
    for cursor in [Cursor::NextStep, Cursor::AwaitAgent, Cursor::Done] {
        node.run = Some(Run { cursor, ..run.clone() });
        assert_eq!(accept_hello(&node, Timestamp(7)), None);
    }
    node.run = Some(Run { hello: None, ..run });
    assert_eq!(accept_hello(&node, Timestamp(7)), None);
}
