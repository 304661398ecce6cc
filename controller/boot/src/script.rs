//! The iPXE script of one node: pure text.

use crate::{BootAnswer, Mac};

/// A kernel command line that would break out of its line of the script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernel arguments of {mac} cannot be put into an iPXE script: {why}")]
pub struct ScriptError {
    mac: Mac,
    why: String,
}

/// Seconds between attempts when kernel or initramfs cannot be fetched.
const RETRY: u32 = 5;

/// An archive of the ramdisk; the kernel unpacks one after the other.
struct Archive {
    /// Its name in iPXE: short, since all of them stand on the kernel command line.
    name: String,
    /// Below `/boot/`.
    path: String,
}

/// Leaves network boot. UEFI goes to the next boot option only when the program fails: after success it
/// shows its menu. BIOS is sent to its first disk, and to its next boot device if that does not start.
const LOCAL_DISK: &str = "iseq ${platform} efi && exit 1 ||\nsanboot --no-describe --drive 0x80 || exit 1\n";

/// The script that does what `answer` says. `base_url` is that of the boot HTTP service, without a slash
/// at its end.
///
/// A ramdisk that cannot be fetched is tried again without limit, each time with a new script: the node must
/// not fall through to a disk that is to be erased, and the controller may have changed its mind.
///
/// # Errors
/// Kernel arguments that iPXE would not read as such.
pub fn script(base_url: &str, mac: Mac, answer: &BootAnswer) -> Result<String, ScriptError> {
    let lines = match answer {
        BootAnswer::Ramdisk { kernel_args, rescue, firmware } => {
            check(kernel_args).map_err(|why| ScriptError { mac, why })?;
            ramdisk(base_url, mac, kernel_args, &archives(*rescue, firmware))
        }
        BootAnswer::Instance { kernel, ramdisk, kernel_args } => {
            let checked =
                check(kernel_args).and_then(|()| check_url(kernel)).and_then(|()| check_url(ramdisk));
            checked.map_err(|why| ScriptError { mac, why })?;
            instance(base_url, mac, (kernel, ramdisk), kernel_args)
        }
        BootAnswer::Wait => format!(
            "echo Anneal: {mac} has to wait for its boot script, asking again in {RETRY} s\n:retry\n{}",
            again(base_url, mac)
        ),
        BootAnswer::LocalDisk => format!("echo Anneal: {mac} boots from its disk\n{LOCAL_DISK}"),
        BootAnswer::Unknown => format!("echo Anneal: no node has the MAC {mac}\n{LOCAL_DISK}"),
    };
    Ok(format!("#!ipxe\n{lines}"))
}

/// What the ramdisk consists of, besides its kernel: the initramfs, for a rescue its login, and add-on firmware.
fn archives(rescue: bool, firmware: &[String]) -> Vec<Archive> {
    let own = |name: &str| Archive { name: name.to_owned(), path: name.to_owned() };
    let rescue = rescue.then(|| own("rescue"));
    let add_ons = firmware.iter().zip(0..).map(|(file, number): (_, u32)| Archive {
        name: format!("fw{number}"),
        path: format!("firmware/{file}"),
    });
    std::iter::once(own("initramfs")).chain(rescue).chain(add_ons).collect()
}

/// Fetches the kernel and these archives, one behind the other, and starts them.
fn ramdisk(base_url: &str, mac: Mac, kernel_args: &str, archives: &[Archive]) -> String {
    let args = kernel_args.split_whitespace().collect::<Vec<_>>().join(" ");
    let bootif = mac.bootif();
    let each = |line: &dyn Fn(&Archive) -> String| archives.iter().map(line).collect::<String>();
    // The kernel's EFI stub loads what is named here, other firmware gives it all that iPXE holds.
    let named = each(&|Archive { name, .. }| format!("initrd={name} "));
    let fetched = each(&|Archive { name, path }| {
        format!("initrd --name {name} {base_url}/boot/{path}?mac={mac} || goto retry\n")
    });
    let freed = each(&|Archive { name, .. }| format!("imgfree {name} ||\n"));
    format!(
        "echo Anneal: starting the ramdisk on {mac}\n\
         kernel --name vmlinuz {base_url}/boot/vmlinuz?mac={mac} {named}{args} BOOTIF={bootif} || goto retry\n\
         {fetched}\
         boot || goto retry\n\
         :retry\n\
         echo Anneal: the ramdisk did not start, asking again in {RETRY} s\n\
         imgfree vmlinuz ||\n\
         {freed}{}",
        again(base_url, mac)
    )
}

/// Fetches the user's kernel and ramdisk, and starts them. There is nothing of ours in it: no nonce, no address of the API.
fn instance(base_url: &str, mac: Mac, (kernel, ramdisk): (&str, &str), kernel_args: &str) -> String {
    let args = kernel_args.split_whitespace().map(|word| format!(" {word}")).collect::<String>();
    format!(
        "echo Anneal: starting the kernel of the instance on {mac}\n\
         kernel --name kernel {kernel} initrd=ramdisk{args} || goto retry\n\
         initrd --name ramdisk {ramdisk} || goto retry\n\
         boot || goto retry\n\
         :retry\n\
         echo Anneal: the kernel of the instance did not start, asking again in {RETRY} s\n\
         imgfree kernel ||\n\
         imgfree ramdisk ||\n\
         {}",
        again(base_url, mac)
    )
}

/// After a pause asks for the script again. If nothing answers, it begins anew.
fn again(base_url: &str, mac: Mac) -> String {
    format!("sleep {RETRY}\nchain --replace --autofree {base_url}/boot/ipxe?mac={mac} || goto retry\n")
}

/// iPXE ends a command at `||`, `&&` and a line's end, and takes a word beginning with `#` as a comment.
fn check(args: &str) -> Result<(), String> {
    if args.chars().any(char::is_control) {
        return Err("they contain control characters".to_owned());
    }
    match args.split_whitespace().find(|word| word.starts_with('#') || matches!(*word, "||" | "&&")) {
        Some(word) => {
            Err(format!("the word '{}' means something to iPXE", word.chars().take(40).collect::<String>()))
        }
        None => Ok(()),
    }
}

/// One word of printable ASCII that iPXE does not expand.
fn check_url(url: &str) -> Result<(), String> {
    let is_plain = !url.is_empty() && url.bytes().all(|byte| byte.is_ascii_graphic()) && !url.contains("${");
    let is_word = check(url).is_ok();
    if is_plain && is_word { Ok(()) } else { Err("a URL is not one plain word".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac::new([0x52, 0x54, 0, 0xab, 0xcd, 1]);

    fn ramdisk(args: &str) -> Result<String, ScriptError> {
        booting(args, false)
    }

    fn booting(args: &str, rescue: bool) -> Result<String, ScriptError> {
        let answer = BootAnswer::Ramdisk { kernel_args: args.to_owned(), rescue, firmware: Vec::new() };
        script("http://10.9.0.1:8080", MAC, &answer)
    }

    #[test]
    fn golden_ramdisk() {
        let expected = "#!ipxe\n\
            echo Anneal: starting the ramdisk on 52:54:00:ab:cd:01\n\
            kernel --name vmlinuz http://10.9.0.1:8080/boot/vmlinuz?mac=52:54:00:ab:cd:01 initrd=initramfs ipa-api-url=https://10.9.0.1:6385 quiet BOOTIF=01-52-54-00-ab-cd-01 || goto retry\n\
            initrd --name initramfs http://10.9.0.1:8080/boot/initramfs?mac=52:54:00:ab:cd:01 || goto retry\n\
            boot || goto retry\n\
            :retry\n\
            echo Anneal: the ramdisk did not start, asking again in 5 s\n\
            imgfree vmlinuz ||\n\
            imgfree initramfs ||\n\
            sleep 5\n\
            chain --replace --autofree http://10.9.0.1:8080/boot/ipxe?mac=52:54:00:ab:cd:01 || goto retry\n";
        assert_eq!(ramdisk("ipa-api-url=https://10.9.0.1:6385  quiet").unwrap(), expected);
    }

    #[test]
    fn only_a_rescue_gets_the_second_archive() {
        let plain = ramdisk("quiet").unwrap();
        assert!(!plain.contains("rescue"), "{plain}");
        let fetch = "initrd --name initramfs http://10.9.0.1:8080/boot/initramfs?mac=52:54:00:ab:cd:01 || goto retry\n";
        let expected = plain
            .replace("initrd=initramfs ", "initrd=initramfs initrd=rescue ")
            .replace(fetch, &format!("{fetch}{}", fetch.replace("initramfs", "rescue")))
            .replace("imgfree initramfs ||\n", "imgfree initramfs ||\nimgfree rescue ||\n");
        assert_eq!(booting("quiet", true).unwrap(), expected);
    }

    #[test]
    fn firmware_is_fetched_behind_all_else_under_short_names() {
        let firmware = vec!["bnx2x.cpio.zst".to_owned(), "qed.cpio.zst".to_owned()];
        let answer = BootAnswer::Ramdisk { kernel_args: "quiet".to_owned(), rescue: true, firmware };
        let script = script("http://10.9.0.1:8080", MAC, &answer).unwrap();
        let mac = "52:54:00:ab:cd:01";
        assert!(
            script.contains(" initrd=initramfs initrd=rescue initrd=fw0 initrd=fw1 quiet BOOTIF="),
            "{script}"
        );
        let fetched = format!(
            "initrd --name rescue http://10.9.0.1:8080/boot/rescue?mac={mac} || goto retry\n\
             initrd --name fw0 http://10.9.0.1:8080/boot/firmware/bnx2x.cpio.zst?mac={mac} || goto retry\n\
             initrd --name fw1 http://10.9.0.1:8080/boot/firmware/qed.cpio.zst?mac={mac} || goto retry\n\
             boot || goto retry\n"
        );
        assert!(script.contains(&fetched), "{script}");
        assert!(script.contains("imgfree fw0 ||\nimgfree fw1 ||\nsleep"), "{script}");
    }

    fn instance(kernel: &str, args: &str) -> Result<String, ScriptError> {
        let ramdisk = "http://192.0.2.1/initrd?v=2".to_owned();
        let answer =
            BootAnswer::Instance { kernel: kernel.to_owned(), ramdisk, kernel_args: args.to_owned() };
        script("http://10.9.0.1:8080", MAC, &answer)
    }

    #[test]
    fn golden_instance() {
        let expected = "#!ipxe\n\
            echo Anneal: starting the kernel of the instance on 52:54:00:ab:cd:01\n\
            kernel --name kernel http://192.0.2.1/vmlinuz initrd=ramdisk console=ttyS0 quiet || goto retry\n\
            initrd --name ramdisk http://192.0.2.1/initrd?v=2 || goto retry\n\
            boot || goto retry\n\
            :retry\n\
            echo Anneal: the kernel of the instance did not start, asking again in 5 s\n\
            imgfree kernel ||\n\
            imgfree ramdisk ||\n\
            sleep 5\n\
            chain --replace --autofree http://10.9.0.1:8080/boot/ipxe?mac=52:54:00:ab:cd:01 || goto retry\n";
        assert_eq!(instance("http://192.0.2.1/vmlinuz", "console=ttyS0  quiet").unwrap(), expected);
        for bad in ["http://a/b c", "http://a/b\nshell", "||", "#", "", "http://a/${b}", "http://\u{e4}/"] {
            let error = instance(bad, "quiet").unwrap_err().to_string();
            assert!(error.contains("52:54:00:ab:cd:01"), "{bad}: {error}");
        }
        assert!(instance("http://a/b", "quiet || shell").is_err());
    }

    #[test]
    fn golden_local_disk() {
        let expected = "#!ipxe\n\
            echo Anneal: 52:54:00:ab:cd:01 boots from its disk\n\
            iseq ${platform} efi && exit 1 ||\n\
            sanboot --no-describe --drive 0x80 || exit 1\n";
        assert_eq!(script("http://a", MAC, &BootAnswer::LocalDisk).unwrap(), expected);
        let wait = "#!ipxe\n\
            echo Anneal: 52:54:00:ab:cd:01 has to wait for its boot script, asking again in 5 s\n\
            :retry\n\
            sleep 5\n\
            chain --replace --autofree http://a/boot/ipxe?mac=52:54:00:ab:cd:01 || goto retry\n";
        assert_eq!(script("http://a", MAC, &BootAnswer::Wait).unwrap(), wait);
        assert!(script("http://a", MAC, &BootAnswer::Unknown).unwrap().contains("no node has the MAC 52:"));
    }

    #[test]
    fn arguments_cannot_become_commands() {
        for bad in ["quiet\nshell", "quiet || shell", "a && b", "quiet #comment", "a\u{0}b"] {
            let error = ramdisk(bad).unwrap_err().to_string();
            assert!(error.contains("52:54:00:ab:cd:01"), "{bad}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_script_has_the_same_lines_whatever_the_arguments(args in ".{0,80}") {
            let lines = ramdisk("quiet").unwrap().lines().count();
            if let Ok(text) = ramdisk(&args) {
                proptest::prop_assert_eq!(text.lines().count(), lines);
            }
        }
    }
}
