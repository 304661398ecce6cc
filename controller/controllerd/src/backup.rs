//! `anneal-controller backup` and `restore`.

use crate::config::Config;
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use std::path::PathBuf;
use store_sqlite::backup;

/// What the program does instead of running the controller.
#[derive(Subcommand)]
pub enum Command {
    /// Copy the database to a new file, while the controller runs or not. The copy is checked.
    Backup {
        /// The new file.
        file: PathBuf,
    },
    /// Put a backup in the place of the database. The controller must not run.
    Restore {
        /// The backup.
        file: PathBuf,
        /// Replace the database that is there; it is kept as anneal.sqlite.replaced.
        #[arg(long)]
        replace: bool,
    },
}

impl Command {
    /// Do it, and print what was done.
    pub fn run(&self, config: &Config) -> Result<()> {
        let database = config.database();
        match self {
            Self::Backup { file } => {
                let bytes = backup::backup(&database, file)
                    .with_context(|| format!("backup of {} to {}", database.display(), file.display()))?;
                println!("{}: {bytes} bytes, checked", file.display());
                println!(
                    "It contains passwords of BMCs. It does not contain certificate.key, tls/ and bundles/ of {}.",
                    config.state_dir.display()
                );
            }
            Self::Restore { file, replace } => {
                let is_there = database.exists();
                ensure!(
                    *replace || !is_there,
                    "{} is there already; --replace keeps it as {}",
                    database.display(),
                    backup::kept_name(&database).display()
                );
                std::fs::create_dir_all(&config.state_dir)
                    .with_context(|| format!("state_dir {}", config.state_dir.display()))?;
                backup::restore(file, &database, *replace)
                    .with_context(|| format!("restore of {} to {}", file.display(), database.display()))?;
                println!("{} restored", database.display());
                if is_there {
                    println!("the replaced database is {}", backup::kept_name(&database).display());
                }
            }
        }
        Ok(())
    }
}
