//! `[database]`: which database, and how to reach it.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use store_postgres::Settings;

/// `[database]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatabaseSettings {
    pub url: DatabaseUrl,
    pub password_file: PathBuf,
    pub connections: usize,
    pub connect_timeout_s: u32,
    pub statement_timeout_s: u32,
}

/// A URL, which may hold a password.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// Whether the database is a file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl")
    }
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        let Settings { connections, connect_timeout, statement_timeout, .. } = Settings::at("");
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        Self {
            url: DatabaseUrl::default(),
            password_file: PathBuf::new(),
            connections,
            connect_timeout_s: seconds(connect_timeout),
            statement_timeout_s: seconds(statement_timeout),
        }
    }
}

impl DatabaseSettings {
    /// How to reach PostgreSQL; none: the database is a file.
    pub fn postgres(&self) -> Result<Option<Settings>> {
        match self.url.0.as_str() {
            "" => Ok(None),
            url => self.at(url).map(Some),
        }
    }

    /// How to reach PostgreSQL at this URL.
    pub fn at(&self, url: &str) -> Result<Settings> {
        let password = match self.password_file.as_os_str().is_empty() {
            true => None,
            false => {
                let text = std::fs::read_to_string(&self.password_file);
                let text =
                    text.with_context(|| format!("database.password_file {}", self.password_file.display()))?;
                Some(text.lines().next().unwrap_or_default().to_owned())
            }
        };
        Ok(Settings {
            url: url.to_owned(),
            password,
            connections: self.connections,
            connect_timeout: Duration::from_secs(self.connect_timeout_s.into()),
            statement_timeout: Duration::from_secs(self.statement_timeout_s.into()),
        })
    }

    /// Check what the types of the settings do not.
    pub fn check(&self) -> Result<()> {
        ensure!((1..=1000).contains(&self.connections), "database.connections must be 1 to 1000");
        ensure!((1..=300).contains(&self.connect_timeout_s), "database.connect_timeout_s must be 1 to 300");
        ensure!(
            (1..=3600).contains(&self.statement_timeout_s),
            "database.statement_timeout_s must be 1 to 3600"
        );
        if let Some(settings) = self.postgres()? {
            settings.check().context("database.url")?;
        }
        Ok(())
    }
}

/// A text without what may be a URL of a database, with its password, to the end of its line.
pub fn without_urls(text: &str) -> String {
    let shown = |line: &str| match line.find("postgres://").or_else(|| line.find("postgresql://")) {
        Some(start) => format!("{}postgres://…", &line[..start]),
        None => line.to_owned(),
    };
    text.lines().map(shown).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_not_shown() {
        let read: DatabaseSettings = toml::from_str("url = \"postgres://u:hunter2@h/a\"").unwrap();
        assert!(!format!("{read:?}").contains("hunter2"));
        let text = "a\n3 | url = \"postgres://u:hunter2@h/a\n  | ^\nx postgresql://u:hunter2@h";
        let shown = without_urls(text);
        assert_eq!(shown, "a\n3 | url = \"postgres://…\n  | ^\nx postgres://…");
    }

    #[test]
    fn the_password_may_be_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        let settings = DatabaseSettings { password_file: file.clone(), ..DatabaseSettings::default() };
        let missing = format!("{:#}", settings.at("postgres://u@h/a").unwrap_err());
        assert!(missing.contains("database.password_file"), "{missing}");
        std::fs::write(&file, "hunter2\n").unwrap();
        assert_eq!(settings.at("postgres://u@h/a").unwrap().password.as_deref(), Some("hunter2"));
        assert!(settings.postgres().unwrap().is_none());
    }
}
