use super::*;
use model::Timestamp;
use uuid::Uuid;

#[test]
fn the_boot_interface_says_how_the_firmware_boots_from_the_network() {
    let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    assert_eq!(network(&node), BootDevice::Pxe);
    for (interface, device) in [("ipxe", BootDevice::Pxe), ("http-ipxe", BootDevice::UefiHttp)] {
        node.interfaces.insert("boot_interface".to_owned(), interface.to_owned());
        assert_eq!(network(&node), device, "{interface}");
    }
}

#[test]
fn a_medium_is_taken_back_unless_the_way_of_the_node_or_more_than_ability_fails() {
    use ErrorKind::{Auth, Protocol, Timeout, Unsupported};
    use MediumKind::{HttpBoot, VirtualDrive};
    let table = [
        (Some(VirtualDrive), None, None, None),
        (Some(VirtualDrive), None, Some(Unsupported), None),
        (Some(VirtualDrive), None, Some(Auth), Some(Auth)),
        (Some(VirtualDrive), None, Some(Timeout), Some(Timeout)),
        (Some(VirtualDrive), Some(Unsupported), None, Some(Unsupported)),
        (Some(VirtualDrive), Some(Auth), Some(Unsupported), Some(Auth)),
        (Some(VirtualDrive), Some(Timeout), Some(Auth), Some(Timeout)),
        (Some(HttpBoot), None, None, None),
        (Some(HttpBoot), Some(Unsupported), None, None),
        (Some(HttpBoot), Some(Auth), None, Some(Auth)),
        (Some(HttpBoot), Some(Timeout), None, Some(Timeout)),
        (Some(HttpBoot), None, Some(Unsupported), Some(Unsupported)),
        (Some(HttpBoot), Some(Unsupported), Some(Auth), Some(Auth)),
        (Some(HttpBoot), Some(Auth), Some(Timeout), Some(Timeout)),
        (None, None, None, None),
        (None, Some(Unsupported), None, None),
        (None, None, Some(Unsupported), None),
        (None, Some(Unsupported), Some(Unsupported), None),
        (None, Some(Unsupported), Some(Auth), Some(Auth)),
        (None, Some(Auth), Some(Unsupported), Some(Auth)),
        (None, Some(Timeout), Some(Unsupported), Some(Timeout)),
        (None, None, Some(Protocol), Some(Protocol)),
    ];
    for (way, drive, url, expected) in table {
        let ended = |kind: Option<ErrorKind>| {
            kind.map_or(Ok(()), |kind| Err(BmcError::new(kind, "", "eject the boot medium", "no")))
        };
        let found = taken_back(way, ended(drive), ended(url)).err();
        assert_eq!(found.map(|error| error.kind()), expected, "{way:?}: {drive:?}, {url:?}");
    }
}
