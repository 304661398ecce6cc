//! The URL or name of an image, as a BMC shows it: whose image it is.

use serde_json::Value;

/// What a drive calls its medium.
fn names(drive: &Value) -> impl Iterator<Item = &str> {
    let texts = ["Image", "ImageName"].into_iter().filter_map(|key| drive.get(key).and_then(Value::as_str));
    texts.filter(|name| !name.is_empty())
}

/// Whether the medium in a drive has this mark in its URL or name; `None`: the service names neither.
pub(super) fn is_marked(drive: &Value, mark: &str) -> Option<bool> {
    let mut names = names(drive).peekable();
    names.peek()?;
    Some(names.any(|name| name.contains(mark)))
}

/// Whether a drive shows the whole address of an image that is not at this URL. The address of the URL may be cut off.
pub(super) fn names_another(drive: &Value, url: &str) -> bool {
    let own = address(url).unwrap_or(url);
    names(drive).filter_map(address).any(|named| !own.starts_with(named.trim_end_matches(['.', '…', '*'])))
}

/// The part of a URL from its host on; `None`: it is a name, or a path on the BMC. Some services show the URL of a share as a path.
fn address(name: &str) -> Option<&str> {
    let url = name.split_once("://").map(|(_, address)| address);
    url.or_else(|| name.strip_prefix("//")).or_else(|| name.strip_prefix(r"\\"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MEDIUM: &str = "anneal-00000000-0000-0000-0000-000000000007-0123456789abcdef.iso";

    #[test]
    fn a_medium_is_ours_by_its_url_or_its_name() {
        let marked = |drive: Value| is_marked(&drive, "anneal-7");
        assert_eq!(marked(json!({"Image": "http://h/boot/media/anneal-7-a.iso"})), Some(true));
        assert_eq!(marked(json!({"Image": "", "ImageName": "anneal-7-a.iso"})), Some(true));
        assert_eq!(marked(json!({"Image": "http://h/boot/media/anneal-8-a.iso"})), Some(false));
        assert_eq!(marked(json!({"Image": null, "ImageName": ""})), None);
    }

    #[test]
    fn a_whole_address_that_is_not_ours_is_another_and_a_part_of_ours_is_not() {
        let url = format!("http://192.0.2.1:8089/boot/media/{MEDIUM}");
        for (image, name, is_another) in [
            (url.as_str(), None, false),
            ("http://192.0.2.1:8089/boot/media/anneal-00000000-0000", None, false),
            ("http://192.0.2.1:8089/boot/me...", Some(MEDIUM), false),
            ("http://", Some("anneal-0000"), false),
            ("", Some("anneal-0000"), false),
            ("", Some("virtual.iso"), false),
            ("/dev/nbd0", Some("cdrom"), false),
            ("//192.0.2.1:8089/boot", None, false),
            ("http://192.0.2.1:8089/boot/media/anneal-00000000-0000-0000-0000-000000000008", None, true),
            ("http://192.0.2.9/other.iso", None, true),
            ("", Some("http://192.0.2.9/other.iso"), true),
            ("//192.0.2.9/share/other.iso", None, true),
            (r"\\192.0.2.9\share\other.iso", None, true),
        ] {
            let drive = json!({"Image": image, "ImageName": name});
            assert_eq!(names_another(&drive, &url), is_another, "{image}, {name:?}");
        }
    }
}
