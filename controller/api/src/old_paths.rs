//! Ironic's first paths, which clients of the standard library still use: the node stands behind the resource
//! (`/v1/nodes/states/console/NODE`) or in the query (`/v1/nodes/states?node_ident=NODE`). They become the paths of the table
//! of endpoints before anything looks at them, so that the guard judges what the handler will do.

use axum::http::Uri;
use axum::http::uri::PathAndQuery;

/// The argument that names the node.
const IDENT: &str = "node_ident";

/// What stands before the node; no node can have such a name. Longer paths come first.
const RESOURCES: [&str; 13] = [
    "states/console",
    "states/power",
    "states/provision",
    "states/raid",
    "states/boot_mode",
    "states/secure_boot",
    "states",
    "management/boot_device/supported",
    "management/boot_device",
    "management/inject_nmi",
    "maintenance",
    "vendor_passthru/methods",
    "vendor_passthru",
];

/// `/v1/nodes/NODE/states` for `/v1/nodes/states?node_ident=NODE`; `None` for every other path.
pub fn modern(uri: &Uri) -> Option<Uri> {
    let rest = uri.path().strip_prefix("/v1/nodes/")?;
    let (resource, behind) = RESOURCES.iter().find_map(|resource| {
        let behind = rest.strip_prefix(resource)?;
        if behind.is_empty() {
            Some((resource, None))
        } else {
            Some((resource, Some(behind.strip_prefix('/')?)))
        }
    })?;
    let (mut ident, mut query) = (behind.map(str::to_owned), Vec::new());
    for pair in uri.query().into_iter().flat_map(|query| query.split('&')) {
        match pair.split_once('=').filter(|(name, _)| *name == IDENT) {
            // In a query these may stand for themselves.
            Some((_, value)) if ident.is_none() => {
                ident = Some(value.replace('/', "%2F").replace('?', "%3F"))
            }
            _ => query.push(pair),
        }
    }
    let ident = ident.filter(|ident| !ident.is_empty() && !ident.contains('/'))?;
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("/v1/nodes/{ident}/{resource}{query}")).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_paths_become_those_of_the_table() {
        let modern = |text: &str| modern(&text.parse().unwrap()).map(|uri| uri.to_string());
        for (old, new) in [
            ("/v1/nodes/states?node_ident=n", "/v1/nodes/n/states"),
            ("/v1/nodes/states/n", "/v1/nodes/n/states"),
            ("/v1/nodes/states/console/n", "/v1/nodes/n/states/console"),
            ("/v1/nodes/states/console?enabled=true&node_ident=n", "/v1/nodes/n/states/console?enabled=true"),
            ("/v1/nodes/management/boot_device?node_ident=n", "/v1/nodes/n/management/boot_device"),
            (
                "/v1/nodes/management/boot_device/supported?node_ident=n",
                "/v1/nodes/n/management/boot_device/supported",
            ),
            ("/v1/nodes/maintenance?node_ident=n&reason=x", "/v1/nodes/n/maintenance?reason=x"),
            ("/v1/nodes/states?node_ident=a/b?c", "/v1/nodes/a%2Fb%3Fc/states"),
        ] {
            assert_eq!(modern(old).as_deref(), Some(new), "{old}");
        }
        for other in [
            "/v1/nodes/states",
            "/v1/nodes/states?node_ident=",
            "/v1/nodes/states/a/b",
            "/v1/nodes/statesman",
            "/v1/nodes/n/states?node_ident=m",
            "/v1/nodes/validate?node=n",
            "/v1/nodes",
        ] {
            assert_eq!(modern(other), None, "{other}");
        }
    }
}
