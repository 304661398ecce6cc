//! The book is built by mdBook from a directory of its own (`book.toml`).

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use super::pages::{ROOT, for_book};
use crate::sh;

/// Directories of `docs/` that are in the book, with what is not a page copied as it is.
const DIRECTORIES: [&str; 4] = ["docs", "docs/decisions", "docs/images", "docs/certificate"];

/// Builds the book into `target/book`.
///
/// # Errors
/// A page that cannot be read; mdBook that cannot be installed, or that fails.
pub fn build() -> Result<()> {
    let root = sh::root();
    stage(&root, &root.join("target/book-src"))?;
    sh::run(Command::new(program()?).arg("build").current_dir(&root))?;
    println!("book: target/book/index.html");
    Ok(())
}

/// The pages and pictures as mdBook wants them.
fn stage(root: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    let mut files: Vec<(String, &str)> = ROOT.iter().map(|page| ((*page).to_owned(), "")).collect();
    for directory in DIRECTORIES {
        for entry in fs::read_dir(root.join(directory)).with_context(|| directory.to_owned())? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                files.push((entry.file_name().to_string_lossy().into_owned(), directory));
            }
        }
    }
    for (name, directory) in files {
        let from = root.join(directory).join(&name);
        let below = Path::new(directory).strip_prefix("docs").unwrap_or(Path::new(""));
        fs::create_dir_all(to.join(below))?;
        if name.ends_with(".md") {
            let page = fs::read_to_string(&from).with_context(|| from.display().to_string())?;
            fs::write(to.join(below).join(&name), for_book(&page, directory))?;
        } else {
            fs::copy(&from, to.join(below).join(&name)).with_context(|| from.display().to_string())?;
        }
    }
    Ok(())
}

/// mdBook of the `PATH`, or one installed into `target/tools`.
fn program() -> Result<OsString> {
    if sh::succeeds(Command::new("mdbook").arg("--version")) {
        return Ok("mdbook".into());
    }
    let tools = sh::root().join("target/tools");
    let program = tools.join("bin/mdbook");
    if !program.is_file() {
        println!("book: installing mdbook into target/tools");
        sh::run(sh::cargo().args(["install", "mdbook", "--locked", "--root"]).arg(&tools))?;
    }
    Ok(program.into())
}
