//! The URL or name of an image, as a BMC shows it: whose image it is, and what of it may be shown further.

use model::boot_medium;
use reqwest::Url;
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

/// A URL as services show it that hide users.
pub(super) fn without_user(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| userless(url).into())
}

fn userless(mut url: Url) -> Url {
    // Neither fails for a URL with a host; one without has no user.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url
}

/// An image as users may see it: without user and password, without what follows the path, which may be a token, and without the part of
/// a boot medium's name that cannot be guessed.
pub(super) fn shown(image: &str) -> String {
    let mut text = without_secrets(image);
    let file = text.rfind(['/', '\\']).map_or(0, |slash| slash + 1);
    if let Some(node) = boot_medium::node_of(&text[file..]) {
        text.truncate(file + boot_medium::mark(node).len());
        text.push_str("-***");
    }
    text
}

fn without_secrets(image: &str) -> String {
    if let Ok(url) = Url::parse(image) {
        let mut bare = userless(url.clone());
        bare.set_query(None);
        bare.set_fragment(None);
        return if bare == url { image.to_owned() } else { bare.into() };
    }
    // What is no URL may have a password that is not escaped.
    let (scheme, address) = image.split_at(address(image).map_or(0, |address| image.len() - address.len()));
    let bare = if scheme.is_empty() { address } else { address.rsplit('@').next().unwrap_or_default() };
    let path = bare.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}{path}")
}

/// What may be in no error of an image: its URL, and the name of a boot medium, which services also repeat alone.
pub(super) fn secrets(image: &str) -> impl Iterator<Item = &str> {
    let url = address(image).map(|_| image);
    let file = image.rsplit(['/', '\\']).next().filter(|file| boot_medium::node_of(file).is_some());
    url.into_iter().chain(file)
}

/// The same of the medium in a drive.
pub(super) fn secrets_of(drive: &Value) -> impl Iterator<Item = &str> {
    names(drive).flat_map(secrets)
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
        assert_eq!(without_user("http://me:secret@h/x.iso"), without_user("http://h/x.iso"));
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

    #[test]
    fn an_image_is_shown_without_what_opens_it() {
        let masked = "anneal-00000000-0000-0000-0000-000000000007-***";
        for (image, expected) in [
            ("http://h/x.iso", "http://h/x.iso"),
            ("http://h", "http://h"),
            ("http://me:hunter2@h/x.iso", "http://h/x.iso"),
            ("http://me@h:8/x.iso?token=hunter2#hunter2", "http://h:8/x.iso"),
            ("cifs://me:hunter2@h/share/x.iso", "cifs://h/share/x.iso"),
            ("http://me:hunt/er2?hunter2@h/x.iso?hunter2", "http://h/x.iso"),
            ("//me:hunter2@h/share/x.iso?hunter2", "//h/share/x.iso"),
            ("x@2.iso", "x@2.iso"),
            ("x.iso#hunter2", "x.iso"),
            ("", ""),
        ] {
            assert_eq!(shown(image), expected, "{image}");
        }
        assert_eq!(shown(MEDIUM), masked);
        assert_eq!(
            shown(&format!("http://h:8089/boot/media/{MEDIUM}")),
            format!("http://h:8089/boot/media/{masked}")
        );
        assert_eq!(shown("http://h/anneal-7.iso"), "http://h/anneal-7.iso");
    }

    #[test]
    fn secrets_are_whole_urls_and_names_of_boot_media() {
        let all = |image: &str| secrets(image).map(str::to_owned).collect::<Vec<_>>();
        assert!(all("None").is_empty() && all("x.iso").is_empty());
        assert_eq!(all("http://h/x.iso"), ["http://h/x.iso"]);
        assert_eq!(all(MEDIUM), [MEDIUM]);
        let url = format!("http://h/{MEDIUM}");
        assert_eq!(all(&url), [url.as_str(), MEDIUM]);
        let drive = json!({"Image": "http://h/x.iso", "ImageName": MEDIUM});
        assert_eq!(secrets_of(&drive).collect::<Vec<_>>(), ["http://h/x.iso", MEDIUM]);
    }
}
