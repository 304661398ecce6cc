//! Lets the drivers of network cards ask for their firmware: many do so only when their interface comes up, and the interfaces that the
//! ramdisk does not use stay down.

use agent_protocol::inventory::Interface;
use ramdisk_init::netlink;
use std::path::Path;

/// The flag IFF_UP of linux/if.h.
const UP: u32 = 1;

/// Brings each of these interfaces that is down up for a moment. What its driver asked for is in the kernel's log. No frame is waited
/// for; it is taken down again, so that it takes no address from the network that it hangs on.
pub fn request(class: &Path, interfaces: &[Interface]) {
    for name in interfaces.iter().map(|interface| interface.name.as_str()) {
        if !is_down(class, name) {
            continue;
        }
        let moment = netlink::index_of(name)
            .and_then(|index| netlink::link_up(index).and_then(|()| netlink::link_down(index)));
        if let Err(error) = moment {
            tracing::warn!(interface = name, %error, "cannot be brought up");
        }
    }
}

/// By `/sys/class/net/NAME/flags`; an interface that has none is let be.
fn is_down(class: &Path, name: &str) -> bool {
    let text = std::fs::read_to_string(class.join(name).join("flags")).unwrap_or_default();
    let flags = u32::from_str_radix(text.trim().trim_start_matches("0x"), 16);
    flags.is_ok_and(|flags| flags & UP == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_interface_without_the_flag_is_down() {
        let class = tempfile::tempdir().expect("tempdir");
        for (name, flags, down) in [
            ("a", Some("0x1003\n"), false),
            ("b", Some("0x1002\n"), true),
            ("c", Some("?\n"), false),
            ("d", None, false),
        ] {
            if let Some(flags) = flags {
                std::fs::create_dir(class.path().join(name)).expect("directory");
                std::fs::write(class.path().join(name).join("flags"), flags).expect("flags");
            }
            assert_eq!(is_down(class.path(), name), down, "{name}");
        }
    }
}
