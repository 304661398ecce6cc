//! `anneal-controller backup`, `restore`, `restored`, `change-certificate-key`, `forget-secrets` and `migrate`.

use crate::certificate_key;
use crate::config::Config;
use crate::database::{Database, file_only, refusal_of_postgres};
use crate::database_key;
use crate::migrate;
use crate::newest_epoch;
use crate::restored;
use crate::state_dir;
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use std::path::{Path, PathBuf};
use store::{Clock, SystemClock};
use store_sqlite::backup;

/// What the program does instead of running the controller.
#[derive(Subcommand)]
pub enum Command {
    /// Copy the database, where it is a file, to a new one, while the controller runs or not. The copy is checked.
    Backup {
        /// The new file.
        file: PathBuf,
    },
    /// Sign erasure certificates with a new key from now on. The old key signs for the new one, and is deleted. The
    /// controller must not run.
    ChangeCertificateKey,
    /// Put a backup in the place of the database, where that is a file. The controller must not run.
    Restore {
        /// The backup.
        file: PathBuf,
        /// Replace the database that is there; it is kept as anneal.sqlite.replaced.
        #[arg(long)]
        replace: bool,
    },
    /// After a backup was put in the place of the database, of a file or of PostgreSQL: read the power of all nodes, and mark those
    /// that are not as it says, and those that were in the middle of something, with maintenance. No controller may run.
    Restored,
    /// Remove the encrypted passwords from the database, whose key is lost. The controller must not run.
    ForgetSecrets,
    /// Copy everything from a file to an empty database of PostgreSQL, and compare both row by row. No controller may run on the
    /// file.
    Migrate {
        /// The file: sqlite:///var/lib/anneal/anneal.sqlite
        #[arg(long)]
        from: String,
        /// The database: postgres://USER@HOST/DATABASE, with the settings of [database] for all else. A password in it is seen by
        /// other users while the command runs: better set database.password_file.
        #[arg(long)]
        to: String,
    },
}

impl Command {
    /// Do it, and print what was done.
    pub fn run(&self, config: &Config) -> Result<()> {
        let database = config.database_file();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        match self {
            Self::Backup { file } => make(config, &database, file)?,
            Self::ChangeCertificateKey => {
                let (old, new) = runtime()?.block_on(async {
                    if let Some(settings) = config.database.postgres()? {
                        let used = store_postgres::is_in_use(&settings).await.map_err(refusal_of_postgres)?;
                        ensure!(
                            !used,
                            "a controller uses the database of PostgreSQL: stop all of them first"
                        );
                    }
                    let key = database_key::load_or_make(config).await?;
                    let store = Database::open(config, &key).await?.store();
                    certificate_key::change(&config.state_dir, &*store).await
                })?;
                println!("old key {old} (id {})\nnew key {new} (id {})", old.id(), new.id());
            }
            Self::Restore { file, replace } => {
                file_only(config, "pg_restore puts a backup in its place")?;
                let is_there = database.exists();
                ensure!(
                    *replace || !is_there,
                    "{} is there already; --replace keeps it as {}",
                    database.display(),
                    backup::kept_name(&database).display()
                );
                state_dir::make(&config.state_dir)
                    .with_context(|| format!("state_dir {}", config.state_dir.display()))?;
                backup::restore(file, &database, *replace)
                    .with_context(|| format!("restore of {} to {}", file.display(), database.display()))?;
                // No controller drives nodes by it yet.
                let now = SystemClock::default().now();
                newest_epoch::note(&config.state_dir, now.0.unsigned_abs())?;
                println!("{} is in place. Now run: anneal-controller restored", database.display());
                if is_there {
                    println!("the replaced database is {}", backup::kept_name(&database).display());
                }
            }
            Self::Restored => runtime()?.block_on(restored::run(config))?,
            Self::ForgetSecrets => {
                let forgotten = match config.database.postgres()? {
                    Some(settings) => {
                        let forget = store_postgres::forget(&settings);
                        runtime()?.block_on(forget).map_err(refusal_of_postgres)?
                    }
                    None => store_sqlite::forget(&database)
                        .with_context(|| format!("secrets of {}", database.display()))?,
                };
                for one in &forgotten {
                    println!("{}: {}", one.of, one.names.join(", "));
                }
                println!("removed the secrets of {} nodes and resources; enter them again", forgotten.len());
            }
            Self::Migrate { from, to } => {
                runtime()?.block_on(migrate::run(config, from, to))?;
            }
        }
        Ok(())
    }
}

/// Make a backup of a file, and print what is not in it.
fn make(config: &Config, database: &Path, file: &Path) -> Result<()> {
    file_only(config, "pg_dump makes a backup of it")?;
    let bytes = backup::backup(database, file)
        .with_context(|| format!("backup of {} to {}", database.display(), file.display()))?;
    println!("{}: {bytes} bytes, checked", file.display());
    if store_sqlite::are_encrypted(file)? {
        let key = database_key::place(config);
        println!("Passwords in it are encrypted. Their key is not in it: keep a copy of {}.", key.display());
    } else {
        println!(
            "It contains passwords of BMCs that are not encrypted: no controller of this version ran yet."
        );
    }
    println!(
        "It does not contain certificate.key, tls/ and bundles/ of {} either.",
        config.state_dir.display()
    );
    Ok(())
}
