//! The directory that becomes a root file system: walked once, in order, without what depends on who walks it.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Most entries of one root: every interpreter with its library has fewer.
const ENTRIES_MAX: usize = 200_000;
/// Links followed on the way to a program.
const LINKS_MAX: usize = 40;

/// Directories that the agent mounts over; made where the tree has none, since they cannot be made later.
const MOUNT_POINTS: [&str; 5] = ["dev", "proc", "scratch", "sys", "tmp"];

/// One thing in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A directory.
    Directory,
    /// A file, and whether it can be run.
    File {
        /// Whether any execute bit is set.
        executable: bool,
    },
    /// A symbolic link and what it says.
    Link(PathBuf),
}

/// Why a tree cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Reading it failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// What could not be read.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Device nodes, sockets, pipes.
    #[error("{}: a {kind} has no place in a bundle", path.display())]
    Kind {
        /// The thing.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A file in the place of a mount point.
    #[error("/{0} has to be a directory: the agent mounts over it")]
    MountPoint(&'static str),
    /// Too many.
    #[error("more than {ENTRIES_MAX} files")]
    TooMany,
}

/// Everything below `root`, by its path relative to it; parents before their children, in the order of bytes.
pub fn walk(root: &Path) -> Result<Vec<(PathBuf, Entry)>, TreeError> {
    let mut found = Vec::new();
    descend(root, Path::new(""), &mut found)?;
    for name in MOUNT_POINTS {
        match found.iter().find(|(path, _)| path == Path::new(name)) {
            None => found.push((name.into(), Entry::Directory)),
            Some((_, Entry::Directory)) => {}
            Some(_) => return Err(TreeError::MountPoint(name)),
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

fn descend(root: &Path, below: &Path, found: &mut Vec<(PathBuf, Entry)>) -> Result<(), TreeError> {
    let here = root.join(below);
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| TreeError::Io { path, source }
    };
    for item in fs::read_dir(&here).map_err(io(&here))? {
        let item = item.map_err(io(&here))?;
        let (path, full) = (below.join(item.file_name()), item.path());
        let metadata = fs::symlink_metadata(&full).map_err(io(&full))?;
        let entry = match metadata.file_type() {
            kind if kind.is_dir() => Entry::Directory,
            kind if kind.is_file() => Entry::File { executable: metadata.permissions().mode() & 0o111 != 0 },
            kind if kind.is_symlink() => Entry::Link(fs::read_link(&full).map_err(io(&full))?),
            kind => return Err(TreeError::Kind { path: full, kind: named(kind) }),
        };
        let directory = entry == Entry::Directory;
        found.push((path.clone(), entry));
        if found.len() > ENTRIES_MAX {
            return Err(TreeError::TooMany);
        }
        if directory {
            descend(root, &path, found)?;
        }
    }
    Ok(())
}

fn named(kind: FileType) -> &'static str {
    match () {
        () if kind.is_block_device() || kind.is_char_device() => "device node",
        () if kind.is_socket() => "socket",
        () => "named pipe",
    }
}

/// Why `path`, absolute in the tree, is not a program in it; links are followed as they will be in the bundle.
pub fn check_program(tree: &[(PathBuf, Entry)], path: &str) -> Result<(), String> {
    let mut rest: Vec<PathBuf> = parts(Path::new(path));
    let mut at = PathBuf::new();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == Path::new("..") {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let entry = tree.binary_search_by(|(path, _)| path.cmp(&next)).ok().map(|index| &tree[index].1);
        match entry {
            None => return Err(format!("{path:?}: there is no /{} in the root file system", next.display())),
            Some(Entry::Directory) => at = next,
            Some(Entry::File { executable }) if rest.is_empty() => {
                return if *executable {
                    Ok(())
                } else {
                    Err(format!("{path:?} cannot be run: no execute bit"))
                };
            }
            Some(Entry::File { .. }) => return Err(format!("{path:?}: /{} is a file", next.display())),
            Some(Entry::Link(target)) => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(format!("{path:?}: its links go round in a circle"));
                }
                if target.is_absolute() {
                    at = PathBuf::new();
                }
                rest.extend(parts(target));
            }
        }
    }
    Err(format!("{path:?} is a directory"))
}

/// Names of a path, the last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let wanted = |part: &Component| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().rev().filter(wanted).map(|part| PathBuf::from(part.as_os_str())).collect()
}
