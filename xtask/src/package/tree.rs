//! Files with their owners and modes, and the archives that are made of them. Pure but for [`Tree::stage`].
//!
//! Same entries, same bytes: a tree is in the order of its paths, and every entry has the same time.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use tar::{Builder, EntryType, Header};

use crate::sh;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Dir,
    File(Rc<[u8]>),
    Link(String),
}

/// An entry of a [`Tree`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    kind: Kind,
    mode: u32,
    /// User and group, which have the same number.
    owner: u32,
}

/// Files below one directory, by their paths relative to it.
#[derive(Debug, Clone, Default)]
pub struct Tree(BTreeMap<String, Entry>);

impl Tree {
    /// Adds a file of root's, and the directories above it.
    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Rc<[u8]>>) {
        self.add(path, Entry { kind: Kind::File(bytes.into()), mode, owner: 0 });
    }

    /// Adds a file as it is on this machine.
    pub fn copy(&mut self, path: &str, mode: u32, from: &Path) -> Result<()> {
        self.file(path, mode, fs::read(from)?);
        Ok(())
    }

    /// Adds a directory; `owner` is the number of its user and group.
    pub fn dir(&mut self, path: &str, mode: u32, owner: u32) {
        self.add(path, Entry { kind: Kind::Dir, mode, owner });
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.add(path, Entry { kind: Kind::Link(target.to_owned()), mode: 0o777, owner: 0 });
    }

    fn add(&mut self, path: &str, entry: Entry) {
        for (at, _) in path.match_indices('/') {
            let above = || Entry { kind: Kind::Dir, mode: 0o755, owner: 0 };
            self.0.entry(path[..at].to_owned()).or_insert_with(above);
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// All of this and of another, which wins.
    pub fn with(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().map(|(path, entry)| (path.clone(), entry.clone())));
        self
    }

    /// The same below a directory.
    pub fn below(&self, dir: &str) -> Self {
        let mut moved = Self::default();
        for (path, entry) in &self.0 {
            moved.add(&format!("{dir}/{path}"), entry.clone());
        }
        moved
    }

    /// The paths of regular files and their bytes.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().filter_map(|(path, entry)| match &entry.kind {
            Kind::File(bytes) => Some((path.as_str(), &**bytes)),
            _ => None,
        })
    }

    /// Bytes of all files.
    pub fn size(&self) -> usize {
        self.files().map(|(_, bytes)| bytes.len()).sum()
    }

    /// A tar archive (POSIX.1-1988 with GNU's long names) of all entries, changed at `epoch`, in seconds since 1970.
    pub fn tar(&self, epoch: u64) -> Result<Vec<u8>> {
        let mut archive = Builder::new(Vec::new());
        for (path, entry) in &self.0 {
            let mut header = Header::new_gnu();
            header.set_mode(entry.mode);
            header.set_uid(entry.owner.into());
            header.set_gid(entry.owner.into());
            header.set_mtime(epoch);
            header.set_size(0);
            match &entry.kind {
                Kind::Dir => {
                    header.set_entry_type(EntryType::Directory);
                    archive.append_data(&mut header, format!("{path}/"), &[][..])
                }
                Kind::File(bytes) => {
                    header.set_size(bytes.len().try_into()?);
                    archive.append_data(&mut header, path, &**bytes)
                }
                Kind::Link(target) => {
                    header.set_entry_type(EntryType::Symlink);
                    archive.append_link(&mut header, path, target)
                }
            }
            .with_context(|| format!("{path} in an archive"))?;
        }
        archive.into_inner().context("the end of an archive")
    }

    /// Writes everything into a new directory, for a program that reads it from there. All is owned by who runs this.
    pub fn stage(&self, dir: &Path, epoch: u64) -> Result<()> {
        fs::create_dir_all(dir)?;
        for (path, entry) in &self.0 {
            let to = dir.join(path);
            ensure!(entry.owner == 0, "{path} has an owner, and is to be written");
            match &entry.kind {
                Kind::Dir => fs::create_dir(&to)?,
                Kind::File(bytes) => fs::write(&to, bytes)?,
                Kind::Link(target) => {
                    symlink(target, &to).with_context(|| to.display().to_string())?;
                    continue;
                }
            }
            fs::set_permissions(&to, PermissionsExt::from_mode(entry.mode))?;
        }
        let time = format!("--date=@{epoch}");
        sh::run(Command::new("find").arg(dir).args(["-exec", "touch", "--no-dereference", &time, "{}", "+"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(order: [usize; 3]) -> Tree {
        let mut tree = Tree::default();
        for which in order {
            match which {
                0 => tree.file("usr/bin/a", 0o755, *b"12345"),
                1 => tree.dir("var/lib/anneal", 0o700, 65532),
                _ => tree.link("usr/bin/b", "a"),
            }
        }
        tree
    }

    #[test]
    fn the_order_of_the_calls_is_not_in_the_bytes() {
        assert_eq!(sample([0, 1, 2]).tar(7).unwrap(), sample([2, 1, 0]).tar(7).unwrap());
        assert_ne!(sample([0, 1, 2]).tar(7).unwrap(), sample([0, 1, 2]).tar(8).unwrap());
    }

    /// The judge is GNU tar.
    #[test]
    fn tar_lists_owners_modes_times_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.tar");
        let long = format!("usr/share/{}", "x".repeat(150));
        let mut tree = sample([0, 1, 2]).below("top");
        tree.file(&long, 0o644, *b"");
        fs::write(&file, tree.tar(86_400).unwrap()).unwrap();
        let mut list = Command::new("tar");
        list.args(["--list", "--verbose", "--numeric-owner", "--utc", "--file"]).arg(&file);
        let listed = sh::output(&mut list).unwrap();
        let lines: Vec<String> =
            listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for expected in [
            "drwxr-xr-x 0/0 0 1970-01-02 00:00 top/",
            "-rwxr-xr-x 0/0 5 1970-01-02 00:00 top/usr/bin/a",
            "lrwxrwxrwx 0/0 0 1970-01-02 00:00 top/usr/bin/b -> a",
            "drwx------ 65532/65532 0 1970-01-02 00:00 top/var/lib/anneal/",
            &format!("-rw-r--r-- 0/0 0 1970-01-02 00:00 {long}"),
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected} is not in {lines:#?}");
        }
    }

    #[test]
    fn what_is_staged_has_its_modes_and_the_time() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let mut tree = Tree::default();
        tree.file("a/b", 0o640, *b"x");
        tree.link("c", "a/b");
        tree.stage(&dir.path().join("new"), 86_400).unwrap();
        let found = fs::metadata(dir.path().join("new/a/b")).unwrap();
        assert_eq!((found.mode() & 0o7777, found.mtime()), (0o640, 86_400));
        assert_eq!(fs::read(dir.path().join("new/c")).unwrap(), b"x");
        tree.dir("d", 0o700, 1);
        assert!(tree.stage(&dir.path().join("owned"), 0).is_err());
    }
}
