use super::*;
use bmc::{BootMode, Builtin};
use model::Timestamp;
use model::boot::{Boot, BootNonce};
use model::boot_medium::MediumFormat;
use store::SystemClock;
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

/// Remembers what it is asked for, and refuses media and URLs where it is to.
#[derive(Default)]
struct Recording {
    refuses: bool,
    asked: Mutex<Vec<String>>,
}

impl Recording {
    fn ask(&self, what: String, refused: bool) -> Result<(), BmcError> {
        self.asked.lock().unwrap().push(what);
        if refused {
            Err(BmcError::new(ErrorKind::Protocol, "", "insert the boot medium", "no"))
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl Bmc for Recording {
    async fn power_state(&self) -> Result<PowerState, BmcError> {
        Ok(PowerState::Off)
    }

    async fn set_power(&self, power: PowerTarget) -> Result<(), BmcError> {
        self.ask(format!("power {}", power.as_str()), false)
    }

    async fn boot_device(&self) -> Result<BootSetting, BmcError> {
        Ok(BootSetting::default())
    }

    async fn set_boot_device(
        &self,
        device: BootDevice,
        persistent: bool,
        _mode: Option<BootMode>,
    ) -> Result<(), BmcError> {
        self.ask(format!("boot {device}, persistent: {persistent}"), false)
    }

    async fn verify(&self) -> Result<(), BmcError> {
        Ok(())
    }

    async fn insert_boot_medium(&self, url: &str, mark: &str) -> Result<(), BmcError> {
        assert!(url.contains(mark));
        self.ask(format!("insert {url}"), self.refuses)
    }

    async fn set_http_boot(&self, url: &str, mark: &str) -> Result<(), BmcError> {
        assert!(url.contains(mark));
        self.ask(format!("URL {url}"), self.refuses)
    }

    fn supported_boot_devices(&self) -> &'static [BootDevice] {
        &[]
    }
}

/// Serves the medium of every node.
struct Media;

impl BootMedia for Media {
    fn url(&self, node: &Node, nonce: &BootNonce) -> Result<String, String> {
        let name = boot_medium::file_name(node.uuid, nonce, MediumFormat::Image);
        Ok(format!("http://h/{name}"))
    }
}

#[tokio::test]
async fn a_node_boots_from_a_medium_that_was_inserted_and_from_no_other() {
    let agents = AgentClient::new(Duration::from_secs(1));
    let executor = LiveExecutor::new(
        Arc::new(Builtin::default()),
        agents,
        Arc::new(SystemClock::default()),
        Settings::default(),
    )
    .inserting(Arc::new(Media));
    let boot = Boot::fresh();
    let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    let url = Media.url(&node, &boot.nonce).unwrap();
    let contact = Contact { boot: Some(boot), ..Contact::default() };
    let (insert, from_cd) = (format!("insert {url}"), "boot cdrom, persistent: false".to_owned());
    for (interface, refuses, asked) in [
        (boot_medium::VIRTUAL_MEDIA, false, vec![insert.clone(), from_cd]),
        (boot_medium::VIRTUAL_MEDIA, true, vec![insert]),
        (boot_medium::HTTP_BOOT, false, vec![format!("URL {url}")]),
        (boot_medium::HTTP_BOOT, true, vec![format!("URL {url}")]),
        (boot_medium::IPXE, true, vec![]),
    ] {
        node.interfaces.insert("boot_interface".to_owned(), interface.to_owned());
        let bmc = Recording { refuses, ..Recording::default() };
        let inserted = executor.insert_medium(&bmc, &node, &contact).await;
        assert_eq!(inserted.is_err(), refuses, "{interface}");
        assert_eq!(*bmc.asked.lock().unwrap(), asked, "{interface}");
    }
    // Without a nonce there is no medium.
    node.interfaces.insert("boot_interface".to_owned(), boot_medium::VIRTUAL_MEDIA.to_owned());
    let bmc = Recording::default();
    executor.insert_medium(&bmc, &node, &Contact::default()).await.unwrap_err();
    assert!(bmc.asked.lock().unwrap().is_empty());
}
