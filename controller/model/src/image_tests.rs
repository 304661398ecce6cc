use super::*;
use crate::time::Timestamp;

const SHA: &str = "d3abad4080be9a88d34baa01be43afc84f4720c2c262cea679e6da8c4673f0c3";

fn node(info: Value) -> Node {
    let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    if let Value::Object(info) = info {
        node.instance_info = info;
    }
    node
}

/// A complete request with these fields changed; `null` takes one away.
fn with(changes: Value) -> Node {
    let mut node = node(json!({
        "image_source": "http://10.77.0.1:8080/cloud.raw", "image_os_hash_algo": "sha256", "image_os_hash_value": SHA,
    }));
    for (name, value) in changes.as_object().cloned().unwrap_or_default() {
        if value.is_null() {
            node.instance_info.remove(&name);
        } else {
            node.instance_info.insert(name, value);
        }
    }
    node
}

fn refusal(node: &Node) -> String {
    ImageRequest::of(node).expect_err("refused").to_string()
}

/// transcripts/deploy_validation.txt of the real Ironic, with its node's UUID.
#[test]
fn what_ironic_rejects_is_rejected_in_its_words() {
    let id = Uuid::nil();
    let no_checksum = format!(
        "image_source's \"image_checksum\", or \"image_os_hash_algo\" and \"image_os_hash_value\" must be provided in \
         instance_info for node {id}"
    );
    for (given, wanted) in [
        (
            json!({"image_source": null}),
            format!(
                "Node {id} failed to validate deploy image info. Some parameters were missing. Missing are: \
                 ['instance_info.image_source']"
            ),
        ),
        (json!({"image_os_hash_algo": null, "image_os_hash_value": null}), no_checksum.clone()),
        (json!({"image_os_hash_value": null}), no_checksum.clone()),
        (json!({"image_os_hash_algo": null}), no_checksum.clone()),
        (json!({"image_os_hash_algo": null, "image_checksum": SHA}), no_checksum),
        (
            json!({"image_source": "ftp://10.77.0.1/x"}),
            "Validation of image href ftp://10.77.0.1/x failed, reason: Image download protocol ftp is not supported."
                .into(),
        ),
        (
            json!({"image_download_source": "ftp"}),
            "Invalid value for image_download_source: \"ftp\". Valid values are swift, http or local.".into(),
        ),
        (
            json!({"capabilities": {"boot_mode": "efi"}}),
            "The parameter 'boot_mode' from instance_info['capabilities'] has an invalid value: 'efi'. Acceptable values \
             are: bios, uefi."
                .into(),
        ),
        (
            json!({"capabilities": "boot_mode:uefi"}),
            format!(
                "Error parsing capabilities from Node {id} instance_info field. A dictionary or a \"jsonified\" \
                 dictionary is expected."
            ),
        ),
        (
            json!({"capabilities": {"disk_label": "mbr"}}),
            "The parameter 'disk_label' from instance_info['capabilities'] has an invalid value: 'mbr'. Acceptable values \
             are: msdos, gpt."
                .into(),
        ),
        (
            json!({"root_device": {"nosuch": "1"}}),
            format!(
                "Failed to validate the root device hints {{\"nosuch\":\"1\"}} (from the node's instance_info) for node \
                 {id}: The hints \"nosuch\" are invalid. Valid hints are: \"size, model, wwn, serial, vendor, \
                 wwn_with_extension, wwn_vendor_extension, name, rotational, hctl, by_path\""
            ),
        ),
    ] {
        assert_eq!(refusal(&with(given.clone())), wanted, "{given}");
    }
}

/// Ironic accepts these, and the deployment fails, or means something else, after the node was booted.
#[test]
fn what_could_only_fail_later_is_rejected_before_the_node_is_touched() {
    for (given, wanted) in [
        (json!({"image_source": "foo"}), "it is no URL"),
        (json!({"image_source": 5}), "instance_info['image_source'] is not a string"),
        (json!({"image_source": "smb://host/image"}), "Image download protocol smb is not supported"),
        (json!({"image_type": "whole disk"}), "image_type 'whole disk' is not supported"),
        (json!({"image_type": "partition"}), "use a whole-disk image"),
        (json!({"kernel": "http://x/k", "ramdisk": "http://x/r"}), "use a whole-disk image"),
        (json!({"image_disk_format": "vmdk"}), "image_disk_format 'vmdk' is not supported"),
        (json!({"image_download_source": "swift"}), "use http"),
        (json!({"image_os_hash_algo": "sha1"}), "image_os_hash_algo 'sha1' is not supported"),
        (json!({"image_os_hash_algo": "sha512"}), "no sha512 digest: 128 hexadecimal digits"),
        (
            json!({"image_os_hash_algo": null, "image_os_hash_value": null,
                "image_checksum": "d41d8cd98f00b204e9800998ecf8427e"}),
            "an MD5 digest",
        ),
        (
            json!({"image_os_hash_algo": null, "image_os_hash_value": null, "image_checksum": "x"}),
            "neither a SHA-256 nor a SHA-512 digest",
        ),
        (json!({"capabilities": {"secure_boot": "true"}}), "secure_boot is not supported"),
        (json!({"root_device": "/dev/sda"}), "they are not an object"),
        (json!({"configdrive": [{"meta_data": {}}]}), "an ISO image (gzipped, in base64) nor its URL"),
    ] {
        let text = refusal(&with(given.clone()));
        assert!(text.contains(wanted), "{given}: {text}");
    }
}

#[test]
fn an_image_is_sent_as_ironic_sends_it() {
    let node = with(json!({"image_disk_format": "raw"}));
    let request = ImageRequest::of(&node).unwrap();
    assert_eq!(
        request.as_sent(&node),
        json!({
            "id": "cloud.raw", "urls": ["http://10.77.0.1:8080/cloud.raw"], "disk_format": "raw",
            "container_format": null, "stream_raw_images": true, "os_hash_algo": "sha256", "os_hash_value": SHA,
            "node_uuid": Uuid::nil(),
        })
    );
    let node = with(json!({"image_os_hash_algo": null, "image_os_hash_value": null,
        "image_checksum": "https://10.77.0.1/SHA256SUMS", "image_source": "https://10.77.0.1/a/cloud.qcow2?sig=1"}));
    let sent = ImageRequest::of(&node).unwrap().as_sent(&node);
    assert_eq!(
        (&sent["id"], &sent["checksum"]),
        (&json!("cloud.qcow2"), &json!("https://10.77.0.1/SHA256SUMS"))
    );
    assert_eq!(sent["urls"], json!(["https://10.77.0.1/a/cloud.qcow2?sig=1"]));
}

#[test]
fn the_instances_boot_mode_wins_over_the_nodes() {
    let of = |node: &Node| ImageRequest::of(node).unwrap().boot_mode();
    let mut node = with(json!({}));
    assert_eq!(of(&node), None);
    node.properties.insert("capabilities".into(), json!("cpu_vt:true,boot_mode:bios"));
    assert_eq!(of(&node), Some(BootMode::Bios));
    node.instance_info.insert("capabilities".into(), json!("{\"boot_mode\": \"uefi\"}"));
    assert_eq!(of(&node), Some(BootMode::Uefi));
}

#[test]
fn secrets_of_a_url_are_masked_wherever_it_is_quoted() {
    for (url, shown) in [
        ("http://10.0.0.1/cloud.raw", "http://10.0.0.1/cloud.raw"),
        ("https://user:hunter2@images/x.raw", "https://******@images/x.raw"),
        ("https://images/x.raw?X-Amz-Signature=hunter2", "https://images/x.raw?******"),
        ("https://u:p@images?hunter2#a", "https://******@images?******"),
        ("https://images#hunter2", "https://images?******"),
        ("hunter2", "hunter2"),
    ] {
        assert_eq!(masked_url(url), shown);
    }
    let secret = "https://user:hunter2@images/x.raw?sig=hunter2";
    let request = ImageRequest::of(&with(json!({"image_source": secret}))).unwrap();
    let text = request.masked(&format!("GET {secret} ended with 404, {secret}"));
    assert!(!text.contains("hunter2") && text.contains("images/x.raw"), "{text}");
    assert!(!format!("{request:?}").contains("hunter2"));
    let refused = refusal(&with(json!({"image_source": "ftp://user:hunter2@images/x"})));
    assert!(!refused.contains("hunter2"), "{refused}");
}
