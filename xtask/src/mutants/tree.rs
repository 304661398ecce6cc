//! The copy of the tree that is mutated, so that no file of the repository is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::items::Sources;
use super::row::Mutant;
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

    /// Makes the edits of a mutant in the copy.
    ///
    /// # Errors
    /// When one no longer applies; then the copy is as it was.
    pub fn apply(&self, mutant: &Mutant) -> Result<Applied> {
        let sources = Sources::of(&self.dir)?;
        let mut before = Vec::new();
        let files = mutant.files(&self.dir, &sources)?;
        for (file, _) in &files {
            before.push((
                file.clone(),
                fs::read(file).with_context(|| format!("cannot read {}", file.display()))?,
            ));
        }
        for (file, text) in files {
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(Applied { before })
    }
}

/// The files that a mutant has changed, as they were.
#[must_use]
pub struct Applied {
    before: Vec<(PathBuf, Vec<u8>)>,
}

impl Applied {
    /// Takes the edits back.
    pub fn take_back(self) -> Result<()> {
        for (file, bytes) in self.before {
            fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
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
    use std::time::Duration;

    use crate::mutants::command::TestCommand;
    use crate::mutants::edit::Edit;

    #[test]
    fn edits_are_made_and_taken_back_or_refused() {
        let dir = std::env::temp_dir().join(format!("anneal-mutants-tree-{}", std::process::id()));
        fs::create_dir_all(dir.join("a/src")).unwrap();
        fs::write(dir.join("a/Cargo.toml"), "[package]\nname = \"a\"\n").unwrap();
        let file = dir.join("a/src/lib.rs");
        fs::write(&file, "fn f() { guard(); }\n").unwrap();
        let tree = Tree { dir: dir.clone() };
        let edit = |place: &str, find: &str| Edit {
            place: Some(place.into()),
            file: None,
            find: find.into(),
            replace: String::new(),
            nth: None,
        };
        let mut mutant = Mutant {
            name: "x".into(),
            protects: String::new(),
            scenario: None,
            test: TestCommand::Machines { filter: "x".into() },
            image: false,
            hang_is_caught: false,
            limit: Duration::from_secs(1),
            edits: vec![edit("a::f", "guard();")],
            file: "a.toml".into(),
        };
        let applied = tree.apply(&mutant).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "fn f() {  }\n");
        let error = format!("{:#}", tree.apply(&mutant).err().unwrap());
        assert_eq!(
            error,
            "x (tests/mutants/a.toml) no longer applies: bring the row up to date: a::f: looked for `guard();`: found \
             0 places, wanted 1"
        );
        applied.take_back().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "fn f() { guard(); }\n");
        mutant.edits.push(edit("a::g", "x"));
        let error = format!("{:#}", tree.apply(&mutant).err().unwrap());
        assert!(error.contains("a::g: 0 items of this name"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "fn f() { guard(); }\n");
        fs::remove_dir_all(&dir).unwrap();
    }
}
