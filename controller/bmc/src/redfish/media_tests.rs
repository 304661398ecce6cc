use super::*;

#[test]
fn only_what_the_service_names_is_sent() {
    let names = |extras: &Extras| extras.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(body("https://x/y.iso", &Extras::new()), json!({"Image": "https://x/y.iso"}));
    let protocol = extra(TRANSFER_PROTOCOL, None).into_iter().collect();
    assert_eq!(
        body("https://x/y", &protocol),
        json!({"Image": "https://x/y", "TransferProtocolType": "HTTPS"})
    );
    let allowed = ["CIFS".to_owned(), "NFS".to_owned()];
    assert_eq!(extra(TRANSFER_PROTOCOL, Some(&allowed)), None, "not the protocol of a URL");
    assert_eq!(extra("Password", None), None, "nothing unknown");
    let drive = json!({"Inserted": false, "Image": null});
    assert_eq!(names(&properties(&drive)), ["Inserted"]);
}

#[test]
fn an_error_says_what_is_missing_in_any_form() {
    let names = |error: Value, sent: Value| -> Vec<&'static str> {
        demanded(&error, &sent).into_iter().map(|(name, _)| name).collect()
    };
    let sent = json!({"Image": "http://x"});
    let args = json!({"error": {"@Message.ExtendedInfo": [{"MessageArgs": ["InsertMedia", "TransferProtocolType"]}]}});
    assert_eq!(names(args, sent.clone()), [TRANSFER_PROTOCOL]);
    let text = json!({"error": {"message": "property UserName and Password are missing"}});
    assert_eq!(names(text, sent.clone()), ["UserName", "Password"]);
    assert!(
        names(json!({"error": {"message": "Inserted is not allowed"}}), json!({"Inserted": true})).is_empty()
    );
    assert!(names(json!({"error": {}}), sent).is_empty());
}
