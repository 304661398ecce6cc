//! Which image a node is to get.

use image_source::{ChecksumSource, ImageUrl};
use model::Node;
use model::image::ImageRequest;
use std::fmt;
use std::path::PathBuf;
use uuid::Uuid;

/// Where an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file of the controller, as the path in the URL.
    File(PathBuf),
    /// On a mirror.
    Http(ImageUrl),
}

impl Origin {
    /// From a URL.
    ///
    /// # Errors
    /// Why it is none of an image. The text contains no part of the URL.
    pub fn parse(url: &str) -> Result<Self, String> {
        let Some(rest) = strip_scheme(url) else { return url.parse().map(Origin::Http) };
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        if !path.starts_with('/') {
            return Err("a file:// URL has no host: file:///directory/name".to_owned());
        }
        if path.contains(['?', '#', '%', '\0']) {
            return Err("the path of a file:// URL must not contain ?, # or %".to_owned());
        }
        Ok(Origin::File(path.into()))
    }
}

fn strip_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    scheme.eq_ignore_ascii_case("file").then_some(rest)
}

/// Without secrets.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path) => write!(f, "file://{}", path.display()),
            Origin::Http(url) => write!(f, "{url}"),
        }
    }
}

/// The image of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The node.
    pub node: Uuid,
    /// Where the image is.
    pub origin: Origin,
    /// What it must be.
    pub checksum: ChecksumSource,
}

impl Wanted {
    /// What the node's `instance_info` asks for.
    ///
    /// # Errors
    /// It asks for no image that can be deployed.
    pub fn of(node: &Node) -> Result<Self, String> {
        let request = ImageRequest::of(node).map_err(|error| error.to_string())?;
        let origin = Origin::parse(request.source()).map_err(|why| format!("image_source: {why}"))?;
        let (algorithm, value) = request.digest();
        let checksum = match algorithm {
            Some(_) => ChecksumSource::of(algorithm, Some(value), None, false),
            None => ChecksumSource::of(None, None, Some(value), false),
        };
        let checksum = checksum.map_err(|why| format!("image_checksum: {why}"))?;
        Ok(Self { node: node.uuid, origin, checksum })
    }

    /// The name that a list of digests calls it by.
    pub(crate) fn base_name(&self) -> String {
        match &self.origin {
            Origin::File(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
            Origin::Http(url) => Some(url.base_name().to_owned()),
        }
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_files_have_no_host_and_mean_what_they_say() {
        let file = |path: &str| Ok(Origin::File(path.into()));
        assert_eq!(Origin::parse("file:///srv/a.raw"), file("/srv/a.raw"));
        assert_eq!(Origin::parse("FILE://localhost/srv/a.raw"), file("/srv/a.raw"));
        for bad in
            ["file://host/a", "file://a", "file:///a%2e%2e/b", "file:///a?b", "file:///a#b", "ftp://h/secret"]
        {
            let problem = Origin::parse(bad).unwrap_err();
            assert!(!problem.contains("secret"), "{problem}");
        }
    }
}
