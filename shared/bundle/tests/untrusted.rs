//! Untrusted files: every part is checked before it is used, and nothing panics.

use bundle::trailer::{TRAILER, Trailer};
use bundle::{Manifest, Rejected, Trust, hex, verify};
use proptest::prelude::*;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::io::Cursor;

const ANY: Trust = Trust::Keys { keys: Vec::new(), unsigned: true };

fn manifest(root: &[u8]) -> Value {
    json!({
        "format": 1, "name": "acme_raid", "version": "1.2.3", "vendor": "ACME",
        "entry": ["/bin/manager", "--serve"], "protocol_versions": [1],
        "grants": {"devices": [{"kind": "block", "match": {"model": "ACME *"}}], "network": false,
                   "scratch_mib": 8, "memory_mib": 64, "pids": 16},
        "root_sha256": hex(digest(&SHA256, root).as_ref()), "root_size": root.len(),
    })
}

fn file(root: &[u8], manifest: &Value) -> Vec<u8> {
    let text = manifest.to_string();
    let trailer = Trailer { manifest: text.len(), root: root.len() as u64 }.encode();
    [root, text.as_bytes(), &[0; 64], &trailer].concat()
}

fn judged(bytes: &[u8]) -> Result<bundle::Verified, Rejected> {
    verify(&mut Cursor::new(bytes), &ANY)
}

#[test]
fn a_sound_bundle_is_returned_whole() {
    let root = [7; 4096];
    let bytes = file(&root, &manifest(&root));
    let verified = judged(&bytes).unwrap();
    assert_eq!((verified.size, verified.signed_by), (bytes.len() as u64, None));
    assert_eq!(verified.digest, hex(digest(&SHA256, &bytes).as_ref()));
    assert_eq!(verified.manifest.grants.devices[0].properties["model"], "ACME *");
    // A newer builder may say more.
    let mut newer = manifest(&root);
    newer["licence"] = json!("X");
    newer["grants"]["gpu"] = json!(true);
    assert_eq!(judged(&file(&root, &newer)).unwrap().manifest, verified.manifest);
}

/// Exact bytes of the trailer: what is in the field stays readable.
#[test]
fn the_trailer_is_frozen() {
    let bytes = Trailer { manifest: 0x1234, root: 0x0056_7000 }.encode();
    assert_eq!(&bytes, b"ANNEALHWM1\0\0\x34\x12\0\0\x00\x70\x56\0\0\0\0\0");
}

#[test]
fn every_wrong_field_is_named() {
    let root = [7; 4096];
    let long = "x".repeat(5000);
    for (pointer, value, field) in [
        ("/format", json!(2), "format: 2 is not known"),
        ("/format", json!("1"), "format: "),
        ("/name", json!("Acme"), "name: "),
        ("/name", json!("a/../b"), "name: "),
        ("/name", json!("a".repeat(65)), "name: "),
        // What the protocol does not know as a name would be refused on the node.
        ("/name", json!("acme-raid"), "name: "),
        ("/name", json!("generic_hardware_manager"), "name: "),
        ("/name", json!("anneal_x"), "name: "),
        ("/name", json!(null), "name: is missing"),
        ("/version", json!(""), "version: "),
        ("/version", json!("1 2"), "version: "),
        ("/version", json!(1), "version: "),
        ("/vendor", json!("a\nb"), "vendor: "),
        ("/entry", json!([]), "entry: "),
        ("/entry", json!("/bin/x"), "entry: "),
        ("/entry", json!(["bin/x"]), "entry: "),
        ("/entry", json!(["/bin/../x"]), "entry: "),
        ("/entry", json!(["/bin//x"]), "entry: "),
        ("/entry", json!(["/bin/x", long]), "entry: "),
        ("/entry", json!(["/bin/x", "a\0b"]), "entry: "),
        ("/protocol_versions", json!([]), "protocol_versions: "),
        ("/protocol_versions", json!([0]), "protocol_versions: "),
        ("/grants", json!([]), "grants: "),
        ("/grants/network", json!("yes"), "grants.network: "),
        ("/grants/pids", json!(0), "grants.pids: 0 is not within 1 and 1024"),
        ("/grants/memory_mib", json!(1 << 20), "grants.memory_mib: "),
        ("/grants/scratch_mib", json!(-1), "grants.scratch_mib: "),
        ("/grants/devices", json!({}), "grants.devices: "),
        ("/grants/devices/0", json!(5), "grants.devices[0]: "),
        ("/grants/devices/0", json!({"kind": "block"}), "grants.devices[0].match: names nothing"),
        ("/grants/devices/0", json!({"kind": "block", "id": "/dev/sda"}), "grants.devices[0].id: "),
        ("/grants/devices/0/kind", json!("usb"), "grants.devices[0].kind: "),
        ("/grants/devices/0/match", json!({"slot": "1"}), "grants.devices[0].match.slot: "),
        ("/grants/devices/0/match", json!({"model": ""}), "grants.devices[0].match.model: "),
        ("/root_sha256", json!("0".repeat(64)), "root_sha256: is not that of the root"),
        ("/root_sha256", json!("0"), "root_sha256: "),
        ("/root_size", json!(8192), "root_size: 8192 is not the 4096 bytes"),
        ("/root_size", json!(4097), "root_size: "),
        ("/key_id", json!("x"), "key_id: "),
    ] {
        let mut wrong = manifest(&root);
        match wrong.pointer_mut(pointer) {
            Some(found) => *found = value.clone(),
            None => wrong[&pointer[1..]] = value.clone(),
        }
        let error = judged(&file(&root, &wrong)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("manifest: {field}")), "{pointer} {value}: {error}");
        assert!(error.len() < 500, "{error}");
    }
    assert!(Manifest::parse(b"[]").unwrap_err().to_string().contains("not an object"));
    assert!(Manifest::parse(&vec![b' '; (64 << 10) + 1]).unwrap_err().to_string().contains("longer"));
    // A name without a signature.
    let mut half = manifest(&root);
    half["key_id"] = json!("0123456789abcdef");
    assert!(matches!(judged(&file(&root, &half)), Err(Rejected::Halves)));
}

proptest! {
    /// One changed byte anywhere is found out, in whatever part of the file it is (the digest finds the rest: spaces of
    /// the manifest, its free texts).
    #[test]
    fn a_changed_byte_is_another_file(at in any::<prop::sample::Index>(), change in 1_u8..=255) {
        let root = [7; 4096];
        let bytes = file(&root, &manifest(&root));
        let honest = judged(&bytes).unwrap();
        let mut changed = bytes.clone();
        changed[at.index(bytes.len())] ^= change;
        if let Ok(other) = judged(&changed) {
            prop_assert_ne!(other.digest, honest.digest);
            prop_assert!(other.manifest_bytes != honest.manifest_bytes, "a change outside of the manifest");
        }
    }

    #[test]
    fn a_part_of_a_file_is_no_bundle(from in 0_usize..5000, length in 0_usize..5000) {
        let root = [7; 4096];
        let bytes = file(&root, &manifest(&root));
        let end = (from + length).min(bytes.len());
        let part = &bytes[from.min(end)..end];
        prop_assert!(part.len() == bytes.len() || judged(part).is_err());
    }

    #[test]
    fn any_trailer_ends_in_an_answer(mut bytes in any::<[u8; TRAILER]>(), magic: bool, size: u64) {
        if magic {
            bytes[..12].copy_from_slice(b"ANNEALHWM1\0\0");
        }
        if let Ok(trailer) = Trailer::decode(&bytes, size) {
            prop_assert_eq!(trailer.encode(), bytes);
            prop_assert_eq!(trailer.size(), size);
        }
    }

    #[test]
    fn any_bytes_end_in_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400), manifest in ".{0,200}") {
        let _ = judged(&bytes);
        let _ = Manifest::parse(manifest.as_bytes());
        let text = manifest.as_bytes();
        let trailer = Trailer { manifest: text.len(), root: 4096 }.encode();
        prop_assert!(judged(&[&[0; 4096][..], text, &[0; 64], &trailer].concat()).is_err());
    }
}
