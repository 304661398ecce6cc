//! Kernel modules by modalias, without udev, modprobe or usermode helpers.
//!
//! Every device in sysfs describes itself in a `modalias`; `modules.alias` says which modules match
//! it, `modules.dep` what those need. Loading a driver makes new devices appear (a SCSI
//! host, its disks), so this is repeated until nothing new is seen, and again at every uevent.

use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// MODULE_INIT_COMPRESSED_FILE of linux/module.h (5.17).
const COMPRESSED: ModuleInitFlags = ModuleInitFlags::from_bits_retain(4);

/// What depmod wrote, in a form to ask.
#[derive(Debug, Default)]
struct Index {
    /// Patterns and modules by [`kind`].
    aliases: HashMap<String, Vec<(String, String)>>,
    /// File and files it needs (in the order of modules.dep), by module name.
    files: HashMap<String, (PathBuf, Vec<PathBuf>)>,
    /// Modules to load before and after one, by its name: not needed by its symbols, yet without
    /// `realtek` for example `r8169` drives nothing.
    soft: HashMap<String, Soft>,
}

#[derive(Debug, Default)]
struct Soft {
    before: Vec<String>,
    after: Vec<String>,
}

/// Loads modules; each at most once.
pub struct Loader {
    index: Index,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    modaliases: HashSet<String>,
    files: HashSet<PathBuf>,
}

impl Index {
    /// From `modules.alias` (`alias <pattern> <module>`), `modules.dep` (`file: file file`) and
    /// `modules.softdep` (`softdep <module> pre: <module>… post: <module>…`). Pure.
    fn parse(directory: &Path, alias: &str, dep: &str, softdep: &str) -> Self {
        let mut index = Self::default();
        for line in alias.lines() {
            let mut words = line.split_whitespace();
            if let (Some("alias"), Some(pattern), Some(module)) = (words.next(), words.next(), words.next()) {
                index.aliases.entry(kind(pattern)).or_default().push((pattern.into(), canonical(module)));
            }
        }
        for line in dep.lines() {
            let Some((file, needs)) = line.split_once(':') else { continue };
            let needs = needs.split_whitespace().map(|need| directory.join(need)).collect();
            index.files.insert(module_name(file), (directory.join(file), needs));
        }
        for line in softdep.lines() {
            index.parse_soft(line);
        }
        index
    }

    fn parse_soft(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let (Some("softdep"), Some(module)) = (words.next(), words.next()) else { return };
        let soft = self.soft.entry(canonical(module)).or_default();
        let mut list = None;
        for word in words {
            match (word, &mut list) {
                ("pre:", _) => list = Some(&mut soft.before),
                ("post:", _) => list = Some(&mut soft.after),
                (name, Some(list)) => list.push(canonical(name)),
                (_, None) => {}
            }
        }
    }

    /// Modules that feel meant.
    fn matching(&self, modalias: &str) -> BTreeSet<&str> {
        let patterns = self.aliases.get(&kind(modalias)).map_or(&[][..], Vec::as_slice);
        let fits = |(pattern, _): &&(String, String)| matches(pattern.as_bytes(), modalias.as_bytes());
        patterns.iter().filter(fits).map(|(_, module)| module.as_str()).collect()
    }

    /// Files to load for a module, in order, each once. Empty when it is built in or unknown.
    fn files(&self, module: &str) -> Vec<&Path> {
        let mut files = Vec::new();
        self.plan(&canonical(module), &mut HashSet::new(), &mut files);
        files
    }

    fn plan<'a>(&'a self, module: &str, planned: &mut HashSet<String>, files: &mut Vec<&'a Path>) {
        let Some((file, needs)) = self.files.get(module) else { return };
        if !planned.insert(module.to_owned()) {
            return;
        }
        // modules.dep names what is needed first last.
        let needed = needs.iter().rev().map(|need| module_name(&need.to_string_lossy()));
        let soft = self.soft.get(module);
        let before = soft.map_or(&[][..], |soft| &soft.before).iter().cloned();
        for name in needed.chain(before) {
            self.plan(&name, planned, files);
        }
        files.push(file);
        for name in soft.map_or(&[][..], |soft| &soft.after) {
            self.plan(name, planned, files);
        }
    }
}

/// Letters at the beginning (`pci`, `scsi`, `acpi` of `acpi*:…`): few patterns share them.
fn kind(text: &str) -> String {
    text.chars().take_while(char::is_ascii_alphabetic).collect()
}

fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn module_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    canonical(name.split(".ko").next().unwrap_or(name))
}

/// fnmatch(3) with `*`, `?` and `[…]`, which is all that depmod writes.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p == pattern.len() && t == text.len() {
            return true;
        }
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, t));
            p += 1;
            continue;
        }
        if t < text.len()
            && let Some(length) = one(&pattern[p..], text[t])
        {
            p += length;
            t += 1;
            continue;
        }
        // Let the last star take one more character.
        match star {
            Some((after, taken)) if taken < text.len() => {
                star = Some((after, taken + 1));
                (p, t) = (after, taken + 1);
            }
            _ => return false,
        }
    }
}

/// Length of the pattern's first element if it takes `byte`.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern.first()? {
        b'?' => Some(1),
        b'[' => {
            let end = pattern.iter().position(|&c| c == b']')?;
            let mut set = &pattern[1..end];
            let mut found = false;
            while let [low, rest @ ..] = set {
                if let [b'-', high, rest @ ..] = rest {
                    found |= (*low..=*high).contains(&byte);
                    set = rest;
                } else {
                    found |= *low == byte;
                    set = rest;
                }
            }
            found.then_some(end + 1)
        }
        &literal => (literal == byte).then_some(1),
    }
}

impl Loader {
    /// For the running kernel. Without its modules, nothing is ever loaded and the log says so.
    pub fn new() -> Self {
        let release = nix::sys::utsname::uname()
            .map(|name| name.release().to_string_lossy().into_owned())
            .unwrap_or_default();
        let directory = Path::new("/lib/modules").join(&release);
        let read = |name: &str| {
            std::fs::read_to_string(directory.join(name)).unwrap_or_else(|error| {
                tracing::error!(%error, directory = %directory.display(), "no {name}: only built-in drivers");
                String::new()
            })
        };
        // Not every depmod writes it.
        let softdep = std::fs::read_to_string(directory.join("modules.softdep")).unwrap_or_default();
        let index = Index::parse(&directory, &read("modules.alias"), &read("modules.dep"), &softdep);
        Self { index, done: Mutex::default() }
    }

    /// Walk sysfs and load, until a walk brings nothing new.
    pub fn load_all(&self) {
        loop {
            let mut found = BTreeMap::new();
            collect(Path::new("/sys/devices"), &mut found);
            let loaded = found.keys().filter(|modalias| self.load(modalias)).count();
            tracing::debug!(modaliases = found.len(), loaded, "devices");
            if loaded == 0 {
                return;
            }
        }
    }

    /// Load what a modalias asks for. True when a module was loaded that was not there.
    pub fn load(&self, modalias: &str) -> bool {
        let mut done = self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !done.modaliases.insert(modalias.to_owned()) {
            return false;
        }
        let mut loaded = false;
        for module in self.index.matching(modalias) {
            for file in self.index.files(module) {
                if done.files.insert(file.to_owned()) {
                    loaded |= load_file(file);
                }
            }
        }
        loaded
    }
}

fn load_file(path: &Path) -> bool {
    let compressed = path.extension().is_some_and(|extension| extension != "ko");
    let flags = if compressed { COMPRESSED } else { ModuleInitFlags::empty() };
    let result = File::open(path).map_err(|error| error.to_string()).and_then(|file| {
        match finit_module(file, c"", flags) {
            Ok(()) => Ok(true),
            // There already, or it found nothing to drive.
            Err(Errno::EEXIST | Errno::ENODEV) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    });
    match result {
        Ok(loaded) => {
            tracing::debug!(file = %path.display(), loaded, "module");
            loaded
        }
        Err(error) => {
            tracing::warn!(file = %path.display(), error, "module cannot be loaded");
            false
        }
    }
}

/// All modaliases below a directory of sysfs. Links are not followed.
fn collect(directory: &Path, found: &mut BTreeMap<String, PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            collect(&entry.path(), found);
        } else if entry.file_name() == "modalias"
            && let Ok(modalias) = std::fs::read_to_string(entry.path())
            && !modalias.trim().is_empty()
        {
            found.insert(modalias.trim().to_owned(), entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALIAS: &str = "# Aliases\n\
        alias pci:v*d*sv*sd*bc01sc08i02* nvme\n\
        alias pci:v00001AF4d00001001sv*sd*bc*sc*i* virtio_pci\n\
        alias scsi:t-0x00* sd_mod\n\
        alias usb:v*p*d*dc*dsc*dp*ic08isc06ip50in* usb-storage\n\
        alias acpi*:LNXPWRBN:* button\n\
        alias cpu:type:x86,ven*fam*mod*:feature:*0080* kvm_x\n";
    const DEP: &str = "kernel/drivers/nvme/host/nvme.ko: kernel/drivers/nvme/host/nvme-core.ko kernel/lib/t10.ko\n\
        kernel/drivers/nvme/host/nvme-core.ko: kernel/lib/t10.ko\n\
        kernel/lib/t10.ko:\n\
        kernel/drivers/usb/storage/usb-storage.ko.xz:\n\
        kernel/r8169.ko:\nkernel/realtek.ko:\nkernel/after.ko: kernel/r8169.ko\n";
    const SOFTDEP: &str =
        "# soft\nsoftdep r8169 pre: realtek missing post: after\nsoftdep after pre: r8169\nsoftdep x\n";

    #[test]
    fn soft_dependencies_are_loaded_around_a_module_even_in_a_circle() {
        let index = Index::parse(Path::new("/m"), ALIAS, DEP, SOFTDEP);
        let names = |module| -> Vec<String> {
            index.files(module).iter().map(|path| module_name(&path.to_string_lossy())).collect()
        };
        assert_eq!(names("r8169"), ["realtek", "r8169", "after"]);
        assert_eq!(names("after"), ["realtek", "r8169", "after"]);
    }

    #[test]
    fn an_nvme_disk_finds_its_driver_and_what_that_needs_first() {
        let index = Index::parse(Path::new("/m"), ALIAS, DEP, SOFTDEP);
        let found = index.matching("pci:v00001B36d00000010sv00001AF4sd00001100bc01sc08i02");
        assert_eq!(found, BTreeSet::from(["nvme"]));
        let files = index.files("nvme");
        let names: Vec<_> = files.iter().map(|path| path.file_name().expect("name")).collect();
        assert_eq!(names, ["t10.ko", "nvme-core.ko", "nvme.ko"]);
    }

    #[test]
    fn names_are_the_same_with_either_dash() {
        let index = Index::parse(Path::new("/m"), ALIAS, DEP, SOFTDEP);
        let found = index.matching("usb:v0781p5581d0100dc00dsc00dp00ic08isc06ip50in00");
        assert_eq!(found, BTreeSet::from(["usb_storage"]));
        assert_eq!(
            index.files("usb_storage"),
            [Path::new("/m/kernel/drivers/usb/storage/usb-storage.ko.xz")]
        );
        assert!(index.files("built_in").is_empty());
    }

    #[test]
    fn globs_match_as_fnmatch_does() {
        for (pattern, text, expected) in [
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("a*b*c", "axbxbxc", true),
            ("?[0-9a]z", "q7z", true),
            ("?[0-9a]z", "qbz", false),
            ("*", "", true),
            ("", "x", false),
            ("[", "[", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn an_acpi_pattern_with_a_star_before_the_colon_is_found() {
        let index = Index::parse(Path::new("/m"), ALIAS, DEP, SOFTDEP);
        assert_eq!(index.matching("acpi:LNXPWRBN:"), BTreeSet::from(["button"]));
    }

    proptest! {
        #[test]
        fn globs_never_panic_and_a_text_matches_itself(pattern in ".{0,20}", text in "[a-z:]{0,20}") {
            matches(pattern.as_bytes(), text.as_bytes());
            prop_assert!(matches(text.as_bytes(), text.as_bytes()));
            let tail = format!("{text}*");
            let longer = format!("{text}more");
            prop_assert!(matches(tail.as_bytes(), longer.as_bytes()));
        }
    }
}
