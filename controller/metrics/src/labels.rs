//! Words of requests, machines and agents become words of this program, or `other`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What no list here names.
pub const OTHER: &str = "other";
/// The method of an erase that removes metadata alone.
pub const METADATA: &str = "metadata";

/// What a machine that asks is to boot, as the label has it.
pub const ANSWERS: [&str; 5] = ["ramdisk", "instance", "wait", "local_disk", "unknown"];
/// How a hello was answered.
pub const HELLOS: [&str; 4] = ["heard", "not_awaited", "too_many", "failed"];
/// How a call ended, as its label has it.
pub const OUTCOMES: [&str; 3] = ["ok", "failed", "unreachable"];
/// Steps of this program's agent and drivers, and those of `direct`. A step of a vendor's hardware manager is `other`.
const STEPS: [&str; 23] = [
    "bios.apply_configuration",
    "bios.apply_configuration_in_band",
    "bios.factory_reset",
    "deploy.boot_instance",
    "deploy.clear_tpm",
    "deploy.deploy",
    "deploy.erase_devices",
    "deploy.erase_devices_express",
    "deploy.erase_devices_metadata",
    "deploy.erase_pstore",
    "deploy.prepare_instance_boot",
    "deploy.tear_down_agent",
    "deploy.verify_firmware",
    "deploy.verify_properties",
    "deploy.write_image",
    "management.fake_fail",
    "management.fake_reset",
    "management.fake_slow",
    "raid.apply_configuration",
    "raid.create_configuration",
    "raid.delete_configuration",
    "vendor.log_passthrough",
    "vendor.trigger_servicewait",
];

/// Methods of an erase, as `docs/erase.md` names them, and what removes metadata alone.
const METHODS: [&str; 23] = [
    "ata-sanitize-block",
    "ata-sanitize-crypto",
    "ata-sanitize-overwrite",
    "ata-secure-erase",
    "ata-secure-erase-enhanced",
    "discard",
    "emmc-sanitize",
    "nvme-format-crypto",
    "nvme-format-user-data",
    "nvme-sanitize-block",
    "nvme-sanitize-crypto",
    "nvme-sanitize-overwrite",
    "opal-psid-revert",
    "overwrite-pattern",
    "overwrite-random",
    "overwrite-zeroes",
    "scsi-format-unit",
    "scsi-sanitize-block",
    "scsi-sanitize-crypto",
    "scsi-sanitize-overwrite",
    "secure-discard",
    "zero-out",
    METADATA,
];

/// Faults of nodes.
const FAULTS: [&str; 4] = ["clean failure", "power failure", "rescue abort failure", "service failure"];

const HTTP_METHODS: [&str; 6] = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"];

/// Status codes of answers of the API.
const STATUSES: [(u16, &str); 27] = [
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (204, "204"),
    (206, "206"),
    (300, "300"),
    (304, "304"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (406, "406"),
    (408, "408"),
    (409, "409"),
    (412, "412"),
    (413, "413"),
    (415, "415"),
    (416, "416"),
    (422, "422"),
    (429, "429"),
    (500, "500"),
    (501, "501"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
    (507, "507"),
];

/// The word of `known` that this is.
fn one_of(known: &[&'static str], word: &str) -> &'static str {
    known.iter().find(|known| **known == word).copied().unwrap_or(OTHER)
}

/// A step: `deploy.erase_devices`.
pub fn step(label: &str) -> &'static str {
    one_of(&STEPS, label)
}

/// A method of an erase.
pub fn method(word: &str) -> &'static str {
    one_of(&METHODS, word)
}

/// A fault of a node.
pub fn fault(word: &str) -> &'static str {
    one_of(&FAULTS, word)
}

/// A driver.
pub fn driver(name: &str) -> &'static str {
    one_of(bmc::DRIVERS, name)
}

/// The method of a request.
pub fn http_method(method: &str) -> &'static str {
    one_of(&HTTP_METHODS, method)
}

/// The status of an answer.
pub fn status(code: u16) -> &'static str {
    STATUSES.iter().find(|(known, _)| *known == code).map_or(OTHER, |(_, word)| word)
}

/// The row of the API that a request was for, as its table has it: `/v1/nodes/{ident}`. A path that no row has is `other`.
pub fn route(path: &str) -> &'static str {
    static ROUTES: LazyLock<BTreeMap<&'static str, &'static str>> =
        LazyLock::new(|| api::endpoints().into_iter().map(|row| (row.path, row.path)).collect());
    ROUTES.get(path).copied().unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::method::Method;
    use std::collections::BTreeSet;

    #[test]
    fn the_methods_are_those_of_the_agent() {
        let agent = Method::ALL.into_iter().map(Method::as_str);
        let here = METHODS.into_iter().filter(|word| *word != METADATA);
        assert_eq!(here.collect::<BTreeSet<_>>(), agent.collect());
    }

    #[test]
    fn a_word_that_is_not_ours_is_other() {
        assert_eq!(step("deploy.erase_devices"), "deploy.erase_devices");
        assert_eq!(step("vendor-node-17.secret"), OTHER);
        assert_eq!(route("/v1/nodes/{ident}"), "/v1/nodes/{ident}");
        assert_eq!(route("/v1/nodes/node-17"), OTHER);
        assert_eq!((status(200), status(299), http_method("BREW")), ("200", OTHER, OTHER));
        assert_eq!(
            (driver("redfish"), driver("x"), fault("x"), method("x")),
            ("redfish", OTHER, OTHER, OTHER)
        );
    }
}
