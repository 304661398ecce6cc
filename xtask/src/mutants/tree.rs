//! The copy of the tree that is mutated, so that nobody's files are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::header;
use crate::sh;

/// A copy of the working tree: what git tracks or would add, as it is now.
pub struct Tree {
    dir: PathBuf,
}

impl Tree {
    /// Brings the copy up to date. Files that are the same keep their times, so that cargo builds little again.
    pub fn sync(dir: PathBuf) -> Result<Self> {
        let root = sh::root();
        let list = sh::output(Command::new("git").current_dir(&root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        // A file deleted but not yet committed is still listed.
        let files: BTreeSet<&str> =
            list.split('\0').filter(|file| !file.is_empty() && root.join(file).is_file()).collect();
        for file in &files {
            copy_if_changed(&root.join(file), &dir.join(file))?;
        }
        remove_others(&dir, &dir, &files)?;
        Ok(Self { dir })
    }

    /// Its root.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Applies a patch of the copy, so that nobody changes it meanwhile; it must fit exactly.
    pub fn apply(&self, name: &str) -> Result<Applied<'_>> {
        let patch = self.dir.join(header::DIR).join(format!("{name}.patch"));
        self.git_apply(&patch, &[])
            .with_context(|| format!("{} no longer fits the code: bring it up to date", patch.display()))?;
        Ok(Applied { tree: self, patch })
    }

    fn git_apply(&self, patch: &Path, flags: &[&str]) -> Result<()> {
        let mut command = Command::new("git");
        command.current_dir(&self.dir);
        // The copy lies inside the repository; git would take the paths for those of the repository and,
        // since they are outside the current directory, skip them without a word.
        command.env("GIT_CEILING_DIRECTORIES", self.dir.parent().unwrap_or(&self.dir));
        command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        let out = command.arg("apply").args(flags).arg(patch).output().context("cannot start git")?;
        if !out.status.success() {
            bail!("{}", String::from_utf8_lossy(&out.stderr).trim());
        }
        Ok(())
    }
}

/// A patch that is in the tree until it is taken back.
#[must_use]
pub struct Applied<'a> {
    tree: &'a Tree,
    patch: PathBuf,
}

impl Applied<'_> {
    /// Takes the patch out again.
    pub fn take_back(self) -> Result<()> {
        self.tree.git_apply(&self.patch, &["--reverse"])
    }
}

fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Removes files of an earlier run that are gone from the tree; what a build leaves (`image/out`) stays.
fn remove_others(root: &Path, dir: &Path, files: &BTreeSet<&str>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        let path = entry.path();
        let relative = path.strip_prefix(root)?.to_string_lossy().into_owned();
        if relative == "image/out" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            remove_others(root, &path, files)?;
        } else if !files.contains(relative.as_str()) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str =
        "Protects: x\n\ndiff --git a/file b/file\n--- a/file\n+++ b/file\n@@ -1 +1 @@\n-old\n+new\n";

    #[test]
    fn patches_are_applied_and_taken_back_or_refused() {
        // Inside the repository, as in earnest: see git_apply.
        let dir = sh::target_dir().join(format!("mutants-test-{}", std::process::id()));
        let tree = Tree { dir: dir.join("tree") };
        let patches = tree.dir.join(header::DIR);
        fs::create_dir_all(&patches).unwrap();
        let (file, patch) = (tree.dir.join("file"), patches.join("x.patch"));
        fs::write(&file, "old\n").unwrap();
        fs::write(&patch, PATCH).unwrap();
        let applied = tree.apply("x").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
        let error = format!("{:#}", tree.apply("x").err().unwrap());
        assert!(error.contains("no longer fits"), "{error}");
        applied.take_back().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
        fs::remove_dir_all(&dir).unwrap();
    }
}
