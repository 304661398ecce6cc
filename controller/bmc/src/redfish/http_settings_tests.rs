use super::*;

const OURS: &str = "http://192.0.2.1:8089/boot/media/anneal-7-x.iso";

fn bios(attributes: Value, pending: Value) -> Bios {
    let pending = pending.as_object().cloned();
    Bios { path: "/b".to_owned(), body: json!({ "Attributes": attributes }), pending }
}

fn dell(changes: Value) -> Value {
    let mut settings = json!({
        "HttpDev1EnDis": "Enabled", "HttpDev1DhcpEnDis": "Enabled", "HttpDev1TlsMode": "None", "HttpDev1Uri": "",
        "HttpDev2EnDis": "Disabled", "HttpDev2DhcpEnDis": "Enabled", "HttpDev2TlsMode": "None", "HttpDev2Uri": "",
    });
    settings.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    settings
}

fn chosen(bios: &Bios) -> Result<&'static str, String> {
    bios.choose("anneal-7").map(|setting| setting.url)
}

#[test]
fn the_first_device_that_boots_from_a_url_and_is_free_gets_it() {
    assert_eq!(chosen(&bios(dell(json!({})), json!(null))), Ok("HttpDev1Uri"));
    assert_eq!(chosen(&bios(dell(json!({"HttpDev1Uri": OURS})), json!({}))), Ok("HttpDev1Uri"));
    let second = dell(json!({"HttpDev1Uri": "http://192.0.2.9/other.efi", "HttpDev2EnDis": "Enabled"}));
    assert_eq!(chosen(&bios(second, json!({}))), Ok("HttpDev2Uri"));
    let hpe = json!({"UrlBootFile": "", "HttpSupport": "Auto", "Dhcpv4": "Enabled"});
    assert_eq!(chosen(&bios(hpe, json!(null))), Ok("UrlBootFile"));
    assert_eq!(chosen(&bios(json!({"UrlBootFile": ""}), json!(null))), Ok("UrlBootFile"));
}

#[test]
fn a_foreign_url_stays_and_what_has_to_be_set_is_named() {
    let why =
        chosen(&bios(dell(json!({"HttpDev1Uri": "http://192.0.2.9/secret.efi"})), json!({}))).unwrap_err();
    assert!(why.contains("HttpDev1Uri holds a URL that is not Anneal's"), "{why}");
    assert!(why.contains("HttpDev2EnDis is 'Disabled' and has to be Enabled"), "{why}");
    assert!(!why.contains("secret"), "{why}");
    // What waits for the next boot counts.
    let why = chosen(&bios(dell(json!({})), json!({"HttpDev1TlsMode": "OneWay"}))).unwrap_err();
    assert!(why.contains("HttpDev1TlsMode is 'OneWay' and has to be None"), "{why}");
    let none = chosen(&bios(json!({"BootMode": "Uefi"}), json!(null))).unwrap_err();
    assert!(none.contains("neither Boot.HttpBootUri nor a BIOS setting"), "{none}");
}

#[test]
fn urls_of_this_node_are_emptied_and_no_others() {
    let emptied = |bios: &Bios| bios.ours("anneal-7").into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let both = dell(json!({"HttpDev1Uri": OURS, "HttpDev2Uri": OURS.replace("anneal-7", "anneal-8")}));
    assert_eq!(emptied(&bios(both.clone(), json!(null))), ["HttpDev1Uri"]);
    assert!(emptied(&bios(both, json!({"HttpDev1Uri": ""}))).is_empty(), "it is taken back already");
    assert_eq!(emptied(&bios(dell(json!({})), json!({"HttpDev1Uri": OURS}))), ["HttpDev1Uri"]);
}
