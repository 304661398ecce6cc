//! The copy of the tree that is mutated, so that no file of the repository is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::tracked::Texts;
use crate::{sh, tracked};

/// A copy of the working tree: what git tracks or would add, as it is now.
pub struct Tree {
    dir: PathBuf,
}

impl Tree {
    /// Brings the copy up to date. Files that are the same keep their times, so that cargo builds little again.
    pub fn sync(dir: PathBuf) -> Result<Self> {
        let files: BTreeSet<String> = tracked::paths(&sh::root())?.into_iter().collect();
        for file in &files {
            copy_if_changed(&sh::root().join(file), &dir.join(file))?;
        }
        remove_others(&dir, &dir, &files)?;
        Ok(Self { dir })
    }

    /// Its root.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs something while these files of the copy have other texts; then they are as in `before` again.
    pub fn with<T>(&self, changed: &Texts, before: &Texts, run: impl FnOnce() -> T) -> Result<T> {
        let write = |file: &str, text: &str| fs::write(self.dir.join(file), text);
        changed.iter().try_for_each(|(file, text)| write(file, text))?;
        let done = run();
        changed.keys().try_for_each(|file| write(file, &before[file]))?;
        Ok(done)
    }
}

fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to)?;
    Ok(())
}

/// Removes files of an earlier run that are gone from the tree; what a build leaves (`image/out`) stays.
fn remove_others(root: &Path, dir: &Path, files: &BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let relative = path.strip_prefix(root)?.to_string_lossy().into_owned();
        if relative == "image/out" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            remove_others(root, &path, files)?;
        } else if !files.contains(&relative) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_made_and_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree { dir: dir.path().to_owned() };
        let texts = |text: &str| Texts::from([("lib.rs".to_owned(), text.to_owned())]);
        let read = || fs::read_to_string(dir.path().join("lib.rs")).unwrap();
        fs::write(dir.path().join("lib.rs"), "guard();").unwrap();
        assert_eq!(tree.with(&texts(""), &texts("guard();"), read).unwrap(), "");
        assert_eq!(read(), "guard();");
    }

    #[test]
    fn what_is_gone_from_the_tree_goes_from_the_copy_and_what_a_build_leaves_stays() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["kept", "a/gone", "image/out/initramfs"] {
            let file = dir.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        remove_others(dir.path(), dir.path(), &BTreeSet::from(["kept".to_owned()])).unwrap();
        let exists = |file: &str| dir.path().join(file).exists();
        assert!(exists("kept") && exists("image/out/initramfs") && !exists("a/gone"));
    }
}
