//! Paths that are not there before their version, whatever the method: Ironic answers 404 where it would answer 405 later.

use crate::endpoint::Endpoint;
use crate::microversion::Version;

/// The part of a node that a path names, or a whole resource. Of all others the method decides first.
const HIDDEN: [&str; 11] = [
    "/v1/nodes/{ident}/allocation",
    "/v1/nodes/{ident}/bios",
    "/v1/nodes/{ident}/children",
    "/v1/nodes/{ident}/firmware",
    "/v1/nodes/{ident}/history",
    "/v1/nodes/{ident}/inventory",
    "/v1/nodes/{ident}/portgroups",
    "/v1/nodes/{ident}/vifs",
    "/v1/nodes/{ident}/vmedia",
    "/v1/portgroups",
    "/v1/volume",
];

/// The paths, each with the version since which it is there.
#[derive(Debug, Clone)]
pub struct HiddenPaths(Vec<(&'static str, u16)>);

impl HiddenPaths {
    /// As the rows of the table say.
    pub fn of(endpoints: &[Endpoint]) -> Self {
        let since = |path: &'static str| {
            let rows = endpoints.iter().filter(|row| row.path == path);
            rows.map(|row| row.since).min().map(|since| (path, since))
        };
        Self(HIDDEN.into_iter().filter_map(since).collect())
    }

    /// Whether `path` is, or is below, one that is not there yet.
    pub fn hide(&self, path: &str, version: Version) -> bool {
        let is = |hidden: &str| {
            let mut parts = path.split('/');
            hidden.split('/').all(|wanted| {
                parts.next().is_some_and(|part| part == wanted || (wanted == "{ident}" && !part.is_empty()))
            })
        };
        self.0.iter().any(|(hidden, since)| !version.has(*since) && is(hidden))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_the_table_and_hidden_with_what_is_below() {
        let paths = HiddenPaths::of(&crate::endpoints());
        assert_eq!(paths.0.len(), HIDDEN.len());
        for (path, minor, hidden) in [
            ("/v1/nodes/n/vmedia", 88, true),
            ("/v1/nodes/n/vmedia", 89, false),
            ("/v1/nodes/n/portgroups/detail", 23, true),
            ("/v1/nodes/n/portgroups", 24, false),
            ("/v1/nodes/n", 1, false),
            ("/v1/nodes/n/states", 1, false),
            ("/v1/portgroups/x", 22, true),
        ] {
            assert_eq!(paths.hide(path, Version(minor)), hidden, "{path} at 1.{minor}");
        }
    }
}
