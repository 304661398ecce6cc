//! `docs/compatibility.md` is made here from the router's own rows and from the list of what Ironic serves.
//! `ANNEAL_WRITE_DOCS=1 cargo test -p api --test main compatibility` writes it anew.

use api::endpoint::{Endpoint, Serves, UNSERVED};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

const IRONIC: &str = include_str!("fixtures/ironic_endpoints.txt");
const FILE: &str = "../../docs/compatibility.md";

const HEAD: &str = "\
# Every endpoint of Ironic, and what becomes of it here

Made from the router by `ANNEAL_WRITE_DOCS=1 cargo test -p api --test main compatibility`; a test fails while it is stale. The
list of Ironic's endpoints is that of its API reference (39.0.0). Commands of agents: `docs/compatibility-agent.md`.
What each endpoint takes and answers: `docs/openapi.json` (OpenAPI 3.1), which a controller serves at `/v1/anneal/openapi`.

- **served**: does what Ironic's does, in every microversion from 1.1 to 1.115.
- **as noop**: answers as Ironic does when the interface behind it is a `noop`.
- **kept**: stores and answers as Ironic does, and does nothing to a machine, for the reason that is given.
- **not served**: answers 404, for the reason that is given.
- **own**: Ironic has no such thing; no client of Ironic meets it.

Ironic's first paths are served as well: `/v1/nodes/states?node_ident=NODE` and `/v1/nodes/states/NODE` for
`/v1/nodes/NODE/states`, and so for `states/…`, `management/boot_device`, `maintenance` and `vendor_passthru`.

What a BMC is asked for is asked while the client waits: what it refuses is the answer (400; 503 when it does not answer),
where Ironic answers 202 and reports it later in `last_error`. Only `vmedia` is answered 204 in any case, with the failure in
`last_error`, and an allocation is `allocating` in the answer to its creation, whatever became of it. `boot_mode` and `secure_boot` are in force from the next start
on; nothing is rebooted for them. `bios` shows what the BMC reports now, `firmware` what the last inspection found. The BMC
itself fetches the image of `vmedia`, from the URL that is given; the image is shown without user, password and query, and a boot
medium without the part of its name that opens it. A request that reaches for the hardware is refused (409)
while a conductor works on the node.

A `network_data` may have services of type `ntp` next to `dns`, which Ironic refuses ([booting](boot.md#the-time)). The `bond_mode`
of LACP may be `802.3ad` or `802.1ad`: Ironic up to 25.0, except 24.1.3 and later ones of that line, takes only the second, which is a
mistake of its schema, and later ones only the first. It is stored and shown as it was given.

Kept are also these fields: of a node `network_data`, `instance_name`, `conductor_group`, `shard` and the
interfaces of which a driver has one implementation that does nothing (`console`, `network`, `storage`); of a port
`local_link_connection`, `physical_network`, `is_smartnic` and `portgroup_uuid`.

## Clients

These programs of others were run against a controller, without a change to them. All but what is marked with `soak` is part of
`cargo xtask test`.

| client | version | what it does in the tests |
|---|---|---|
| `openstack baremetal` | python-openstackclient 10.5.0, python-ironicclient 6.3.0 | every verb, each resource, users and roles; a node with an agent |
| openstacksdk | openstacksdk 4.22.0 | a node's life; `soak --part clients`: its own functional tests for bare metal, 96 passed, 0 failed, 0 skipped |
| gophercloud | Debian 12 | what Metal3's baremetal-operator asks, in its order |
| Nova's driver for bare metal | nova 34.0.0 | an instance from its birth to its end, with power, rescue and release |
| Ansible's collection `openstack.cloud` | ansible 12.3.0, ansible-core 2.19.14, openstacksdk 4.7.1 | [its page](ansible.md); `soak --part clients`: each of its modules for bare metal |
| metalsmith | metalsmith 2.5.0 | a node is reserved, deployed, shown and released |
| Bifrost's inventory | bifrost 21.1.0 | nodes with their states and ports |
| sushy-tools' emulator over Ironic | sushy-tools 2.2.0 | power, boot device, memory and ports by Redfish |
| schemathesis | schemathesis 4.32.5 | requests made from `docs/openapi.json` |

No provider of Terraform was run. What users of these programs meet, here as with Ironic: Bifrost's inventory needs a
[`clouds.yaml`](rights.md#clients), since it ends with an error of its own where `OS_ENDPOINT` is set; the emulator keeps what it
has read of a node, so that it shows a new power state only after a restart.

## Endpoints

| method | path | since | policy | | what it does, or why not |
|---|---|---|---|---|---|
";

/// `/v1/nodes/{ident}` → `/v1/nodes/{}`.
fn nameless(path: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for letter in path.chars() {
        match letter {
            '{' => {
                inside = true;
                plain.push_str("{}");
            }
            '}' => inside = false,
            letter if !inside => plain.push(letter),
            _ => {}
        }
    }
    plain
}

fn key(endpoint: &Endpoint) -> (String, String) {
    (nameless(endpoint.path), endpoint.method.to_string())
}

fn ironic() -> BTreeSet<(String, String)> {
    let rows = IRONIC.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let (method, path) = line.split_once(' ').expect("method and path");
        // Of a path like `…/{name}@{component}` the router makes one name.
        (path.replace("{}@{}", "{}"), method.to_owned())
    })
    .collect()
}

fn document() -> String {
    let mut rows = BTreeMap::new();
    for endpoint in api::endpoints() {
        let (how, why) = match endpoint.serves {
            Serves::Fully => ("served", String::new()),
            Serves::Noop(why) => ("as noop", format!(": {why}")),
            Serves::Kept(why) => ("kept", format!(": {why}")),
            Serves::Own => ("own", String::new()),
        };
        let line = format!(
            "| {} | `{}` | 1.{} | `{}` | {how} | {}{why} |",
            endpoint.method, endpoint.path, endpoint.since, endpoint.policy, endpoint.about
        );
        rows.insert(key(&endpoint), line);
    }
    for (method, path, why) in UNSERVED {
        let line = format!("| {method} | `{path}` | | | not served | {why} |");
        rows.insert((nameless(path), (*method).to_owned()), line);
    }
    let mut text = HEAD.to_owned();
    for line in rows.values() {
        writeln!(text, "{line}").expect("a string");
    }
    text
}

#[test]
fn the_table_of_endpoints_is_the_routers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let made = document();
    if std::env::var_os("ANNEAL_WRITE_DOCS").is_some() {
        std::fs::write(&path, &made).expect("docs/compatibility.md");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/compatibility.md is stale: ANNEAL_WRITE_DOCS=1 cargo test -p api --test main compatibility"
    );
}

#[test]
fn every_endpoint_of_ironic_is_served_or_has_its_reason() {
    let ironic = ironic();
    let mut ours = BTreeMap::new();
    for endpoint in api::endpoints() {
        assert!(ours.insert(key(&endpoint), endpoint.serves).is_none(), "twice: {:?}", key(&endpoint));
    }
    let unserved: BTreeSet<_> =
        UNSERVED.iter().map(|(method, path, _)| (nameless(path), (*method).to_owned())).collect();
    for row in &ironic {
        assert!(
            ours.contains_key(row) != unserved.contains(row),
            "{row:?}: served, or unserved with a reason"
        );
    }
    for (row, serves) in &ours {
        assert_eq!(ironic.contains(row), *serves != Serves::Own, "{row:?} is {serves:?}");
    }
    assert!(unserved.is_subset(&ironic), "a reason for what Ironic does not serve either");
}
