//! `[images]` of the configuration.

use crate::proxies::ProxyUrl;
use image_source::{Host, NoProxy, Pins};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// `[images]`. Defaults are documented in `anneal-controller.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Names, ends of names and networks that controller and agents fetch images from; empty: every host that is not
    /// closed by itself.
    pub hosts: Vec<String>,
    /// Directory of the images that `file://` may name; empty: none.
    pub directory: PathBuf,
    /// Fetch images once, and serve them to nodes.
    pub cache: bool,
    /// Where; empty: `state_dir/images`.
    pub cache_directory: PathBuf,
    /// Most MiB of the cache.
    pub cache_max_mib: u64,
    /// MiB that the cache leaves free on its file system.
    pub cache_min_free_mib: u64,
    /// PEM file of the authorities whose certificates mirrors may have, for controller and agents; empty: those of the
    /// system for the controller, and none for agents.
    pub ca_file: PathBuf,
    /// Fingerprints of certificates by host: such a host must have one of them, and nothing else counts.
    pub pins: BTreeMap<String, Vec<String>>,
    /// The proxy of agents for `http://`; empty: none.
    pub http_proxy: ProxyUrl,
    /// The proxy of agents for `https://`; empty: none.
    pub https_proxy: ProxyUrl,
    /// Hosts that agents ask without a proxy, separated by commas.
    pub no_proxy: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            directory: PathBuf::new(),
            cache: false,
            cache_directory: PathBuf::new(),
            cache_max_mib: 51_200,
            cache_min_free_mib: 2048,
            ca_file: PathBuf::new(),
            pins: BTreeMap::new(),
            http_proxy: ProxyUrl::default(),
            https_proxy: ProxyUrl::default(),
            no_proxy: String::new(),
        }
    }
}

impl Settings {
    /// The rules of `hosts`.
    ///
    /// # Errors
    /// One of them is none.
    pub fn rules(&self) -> Result<Vec<Host>, String> {
        self.hosts.iter().map(|text| Host::parse(text)).collect()
    }

    /// Check what the types do not.
    ///
    /// # Errors
    /// The setting, and why it cannot be used.
    pub fn check(&self) -> Result<(), String> {
        self.rules().map_err(|why| format!("images.hosts: {why}"))?;
        Pins::of(&self.pins).map_err(|why| format!("images.pins: {why}"))?;
        self.http_proxy.check().map_err(|why| format!("images.http_proxy: {why}"))?;
        self.https_proxy.check().map_err(|why| format!("images.https_proxy: {why}"))?;
        self.no_proxy.parse::<NoProxy>().map_err(|why| format!("images.no_proxy: {why}"))?;
        if self.cache_max_mib == 0 {
            return Err("images.cache_max_mib must be above 0".to_owned());
        }
        let unusable = !self.directory.as_os_str().is_empty() && !self.directory.is_absolute();
        if unusable {
            return Err(format!("images.directory {} is no absolute path", self.directory.display()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_cannot_be_used_is_named_without_its_password() {
        for (settings, name) in [
            (
                Settings { http_proxy: "https://me:word@p".into(), ..Settings::default() },
                "images.http_proxy: ",
            ),
            (Settings { https_proxy: "me:word@p".into(), ..Settings::default() }, "images.https_proxy: "),
            (Settings { no_proxy: "a/b".to_owned(), ..Settings::default() }, "images.no_proxy: "),
        ] {
            let said = settings.check().unwrap_err();
            assert!(said.starts_with(name) && !said.contains("word"), "{said}");
        }
        let sound = Settings { https_proxy: "http://me:word@p:3128".into(), ..Settings::default() };
        assert_eq!(sound.check(), Ok(()));
    }
}
