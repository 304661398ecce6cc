//! Debian's Chromium, without a screen.

use crate::page::Page;
use crate::pipe::Pipe;
use anyhow::{Context, Result};
use contract::process::wait_until;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Longest wait for a download.
const LIMIT: Duration = Duration::from_secs(30);

/// A browser with a profile of its own, which is forgotten with it.
pub struct Browser {
    pipe: RefCell<Pipe>,
    dir: tempfile::TempDir,
}

impl Browser {
    /// Starts it. `cargo xtask test` has installed it.
    ///
    /// # Errors
    /// When there is none.
    pub fn start() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("anneal-browser-").tempdir()?;
        let mut chromium = Command::new("chromium");
        chromium.args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"]);
        // It is root's, in a container without what its sandbox needs. Its shared memory is on the disk: /dev/shm may be small.
        chromium.args(["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"]);
        // It asks the controller alone.
        chromium.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        chromium.arg(format!("--user-data-dir={}", dir.path().join("profile").display()));
        chromium.arg("about:blank");
        chromium.env("HOME", dir.path());
        let log = File::create(dir.path().join("chromium.log"))?;
        let pipe = Pipe::start(&chromium, log).context("is the package chromium installed?")?;
        Ok(Self { pipe: RefCell::new(pipe), dir })
    }

    /// An empty page of its own: it shares cookies and storage with no other.
    ///
    /// # Errors
    /// When the browser has ended.
    pub fn page(&self) -> Result<Page<'_>> {
        let context = self.call(None, "Target.createBrowserContext", json!({}))?["browserContextId"].clone();
        std::fs::create_dir_all(self.downloads())?;
        let kept =
            json!({ "behavior": "allow", "browserContextId": context, "downloadPath": self.downloads() });
        self.call(None, "Browser.setDownloadBehavior", kept)?;
        self.page_in(&context)
    }

    /// Another page with the cookies and the storage of a page.
    pub(crate) fn page_in(&self, context: &Value) -> Result<Page<'_>> {
        let params = json!({ "url": "about:blank", "browserContextId": context });
        let target = self.call(None, "Target.createTarget", params)?;
        let params = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call(None, "Target.attachToTarget", params)?;
        let session = session["sessionId"].as_str().context("a session")?.to_owned();
        Page::of(self, context.clone(), session)
    }

    /// Where pages put what is downloaded.
    pub fn downloads(&self) -> PathBuf {
        self.dir.path().join("downloads")
    }

    /// The file with this ending that was downloaded, once it is whole.
    ///
    /// # Errors
    /// When there is none in time.
    pub fn downloaded(&self, ending: &str) -> Result<PathBuf> {
        let file = || {
            let found = std::fs::read_dir(self.downloads()).ok()?.flatten().map(|entry| entry.path());
            // One that is still arriving has another ending.
            found.into_iter().find(|path| path.extension().is_some_and(|of| of == ending))
        };
        wait_until("the file is there", LIMIT, || Ok(file().is_some()))?;
        file().context("the file")
    }

    pub(crate) fn call(&self, session: Option<&str>, method: &str, params: Value) -> Result<Value> {
        self.pipe.borrow_mut().call(session, method, params)
    }

    pub(crate) fn events(&self, session: &str) -> Vec<Value> {
        self.pipe.borrow_mut().events(session)
    }
}
