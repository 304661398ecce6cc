//! Which kernel modules are shipped: the list of `image/modules.txt` and all they depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::cpio::Archive;
use super::kernel::Kernel;
use crate::sh;

/// Indices that the agent's module loader reads; all others that depmod writes stay behind.
const INDICES: &[&str] = &["modules.alias", "modules.builtin", "modules.dep", "modules.softdep"];

/// The tree to ship.
pub struct Selection {
    release: String,
    dir: PathBuf,
    files: BTreeSet<String>,
    index: Index,
}

/// A module that is shipped.
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// Its file, unpacked.
    pub file: PathBuf,
    /// The names of all that is loaded with it, its own among them.
    pub loads: BTreeSet<String>,
}

/// Copies the chosen modules to a tree of their own and indexes that, so that nothing in the indices
/// speaks of a module that is not there.
pub fn select(work: &Path, kernel: &Kernel, list: &str) -> Result<Selection> {
    let full = kernel.tree.join("lib/modules").join(&kernel.release);
    depmod(&kernel.tree, &kernel.release)?;
    let read = |name: &str| {
        let path = full.join(name);
        fs::read_to_string(&path)
    };
    let index = Index::parse(&read("modules.dep")?, &read("modules.builtin")?, &read("modules.softdep")?)?;
    let files = index.resolve(&names(list))?;

    let chosen = work.join("chosen");
    if chosen.exists() {
        fs::remove_dir_all(&chosen)?;
    }
    let dir = chosen.join("lib/modules").join(&kernel.release);
    for file in files.iter().map(String::as_str).chain([
        "modules.builtin",
        "modules.builtin.modinfo",
        "modules.order",
    ]) {
        let (from, to) = (full.join(file), dir.join(file));
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(&from, &to)?;
    }
    depmod(&chosen, &kernel.release)?;
    Ok(Selection { release: kernel.release.clone(), dir, files, index })
}

/// Files of these modules and of all they need, each after what it needs.
pub fn ordered(kernel: &Kernel, names: &[&str]) -> Result<Vec<PathBuf>> {
    let full = kernel.tree.join("lib/modules").join(&kernel.release);
    depmod(&kernel.tree, &kernel.release)?;
    let dep = full.join("modules.dep");
    let text = fs::read_to_string(&dep)?;
    let index = Index::parse(&text, "", "")?;
    Ok(index.ordered(names)?.iter().map(|file| full.join(file)).collect())
}

impl Selection {
    /// Number of modules.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// The modules, in the order of their files' names.
    pub fn modules(&self) -> Result<Vec<Module>> {
        let module = |file: &String| -> Result<Module> {
            let name = module_name(file);
            let loads = self.index.resolve(&[&name])?.iter().map(|file| module_name(file)).collect();
            Ok(Module { name, file: self.dir.join(file), loads })
        };
        self.files.iter().map(module).collect()
    }

    /// Patterns of devices, each with the name of a module for them.
    pub fn aliases(&self) -> Result<Vec<(String, String)>> {
        let file = self.dir.join("modules.alias");
        Ok(aliases(&fs::read_to_string(&file)?))
    }

    /// Adds the modules and their indices, in the order of their names.
    pub fn add_to(&self, archive: &mut Archive) -> Result<()> {
        let files = self.files.iter().map(String::as_str).chain(INDICES.iter().copied());
        for file in files {
            let path = self.dir.join(file);
            let data = fs::read(&path)?;
            archive.file(&format!("lib/modules/{}/{file}", self.release), 0o644, &data)?;
        }
        Ok(())
    }
}

fn depmod(base: &Path, release: &str) -> Result<()> {
    sh::run(sh::admin_tool("depmod").arg("-b").arg(base).arg(release))
}

/// Of lines `alias PATTERN MODULE`.
fn aliases(text: &str) -> Vec<(String, String)> {
    let alias = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("alias")).then_some(())?;
        Some((words.next()?.to_owned(), normal(words.next()?)))
    };
    text.lines().filter_map(alias).collect()
}

/// Names of the list: comments and `[group]` lines left out.
fn names(list: &str) -> Vec<&str> {
    list.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty() && !line.starts_with('['))
        .collect()
}

/// `modules.dep` and its neighbours, by module name.
struct Index {
    /// File and the files it needs.
    modules: BTreeMap<String, (String, Vec<String>)>,
    builtin: BTreeSet<String>,
    soft: BTreeMap<String, Vec<String>>,
}

impl Index {
    fn parse(dep: &str, builtin: &str, soft: &str) -> Result<Self> {
        let mut index = Self { modules: BTreeMap::new(), builtin: BTreeSet::new(), soft: BTreeMap::new() };
        for line in dep.lines() {
            let Some((file, needs)) = line.split_once(':') else {
                bail!("modules.dep has a line without a colon: {line:?}");
            };
            let needs = needs.split_whitespace().map(str::to_owned).collect();
            index.modules.insert(module_name(file), (file.to_owned(), needs));
        }
        index.builtin = builtin.lines().map(module_name).collect();
        for line in soft.lines() {
            // softdep NAME pre: A B post: C
            let mut words = line.split_whitespace();
            if words.next() == Some("softdep")
                && let Some(name) = words.next()
            {
                let wanted = words.filter(|w| !w.ends_with(':')).map(module_name).collect();
                index.soft.insert(normal(name), wanted);
            }
        }
        Ok(index)
    }

    /// Files of the named modules and of all they need, in the order of loading.
    fn ordered(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut files: Vec<String> = Vec::new();
        for name in names {
            let (file, needs) =
                self.modules.get(*name).with_context(|| format!("the kernel has no module {name}"))?;
            // modules.dep names what is needed first last.
            for file in needs.iter().rev().chain([file]) {
                if !files.contains(file) {
                    files.push(file.clone());
                }
            }
        }
        Ok(files)
    }

    /// Files of the named modules and of all they need. Soft dependencies count when such a module
    /// exists: they may also be aliases of things that are built in.
    fn resolve(&self, names: &[&str]) -> Result<BTreeSet<String>> {
        let mut files = BTreeSet::new();
        let mut todo: Vec<String> = Vec::new();
        let mut unknown = Vec::new();
        for name in names.iter().map(|name| normal(name)) {
            if self.modules.contains_key(&name) {
                todo.push(name);
            } else if !self.builtin.contains(&name) {
                unknown.push(name);
            }
        }
        if !unknown.is_empty() {
            bail!("image/modules.txt names modules that this kernel does not have: {}", unknown.join(", "));
        }
        while let Some(name) = todo.pop() {
            let Some((file, needs)) = self.modules.get(&name) else { continue };
            if !files.insert(file.clone()) {
                continue;
            }
            todo.extend(needs.iter().map(|file| module_name(file)));
            todo.extend(self.soft.get(&name).into_iter().flatten().cloned());
        }
        Ok(files)
    }
}

/// `kernel/drivers/a-b.ko` is module `a_b`.
fn module_name(file: &str) -> String {
    let base = file.rsplit('/').next().unwrap_or(file);
    normal(base.split(".ko").next().unwrap_or(base))
}

fn normal(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        Index::parse(
            "kernel/drivers/nvme/host/nvme.ko: kernel/drivers/nvme/host/nvme-core.ko\n\
             kernel/drivers/nvme/host/nvme-core.ko:\n\
             kernel/net/r8169.ko:\n\
             kernel/net/realtek.ko: kernel/net/libphy.ko\n\
             kernel/net/libphy.ko:\n",
            "kernel/fs/efivarfs.ko\n",
            "# comment\nsoftdep r8169 pre: realtek\nsoftdep nvme_core pre: crypto-nothing\n",
        )
        .unwrap()
    }

    #[test]
    fn hard_and_soft_dependencies_come_along() {
        let files = index().resolve(&["nvme", "r8169", "efivarfs"]).unwrap();
        let files: Vec<&str> = files.iter().map(|f| f.rsplit('/').next().unwrap()).collect();
        assert_eq!(files, ["nvme-core.ko", "nvme.ko", "libphy.ko", "r8169.ko", "realtek.ko"]);
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_it() {
        let error = index().resolve(&["nvme", "nmve"]).unwrap_err();
        assert!(error.to_string().contains("nmve"), "{error}");
    }

    #[test]
    fn aliases_name_modules_with_underscores() {
        let text = "# Aliases\nalias pci:v00001077d00001634sv*sd*bc*sc*i* qede\nalias usb:v1d2* usb-storage\nalias x\n";
        let expected = [("pci:v00001077d00001634sv*sd*bc*sc*i*", "qede"), ("usb:v1d2*", "usb_storage")];
        assert_eq!(aliases(text), expected.map(|(pattern, module)| (pattern.to_owned(), module.to_owned())));
    }

    #[test]
    fn groups_and_comments_are_no_names() {
        assert_eq!(names("# x\n[disks]\nnvme # fast\n\n  ahci\n"), ["nvme", "ahci"]);
    }
}
