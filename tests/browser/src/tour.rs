//! What a new user does in the page, click by click.

use crate::page::Page;
use anyhow::Result;
use serde_json::json;

impl Page<'_> {
    /// Enrols a node of fake-hardware, with a port if there is a MAC address, and has it managed.
    ///
    /// # Errors
    /// When it does not become manageable in time.
    pub fn enrol(&self, name: &str, mac: Option<&str>) -> Result<()> {
        self.click("Fleet")?;
        self.click("Enrol a node")?;
        self.choose("Driver", "fake-hardware")?;
        self.fill("Name", name)?;
        if let Some(mac) = mac {
            self.fill("MAC address of the NIC that it boots from", mac)?;
        }
        self.click("Enrol")?;
        self.until(&format!("document.querySelector('h1').innerText === {}", json!(name)), "the node")?;
        self.click_at("anneal.find('.actions button', 'manage')", "manage")?;
        self.click_at("anneal.find('dialog button', 'manage')", "manage")?;
        self.until("anneal.find('.actions button', 'provide')", "manageable").map(drop)
    }

    /// Cleans the node of this page by a step that fails with this message.
    ///
    /// # Errors
    /// When the page does not show that it failed, and why.
    pub fn clean_with_failure(&self, name: &str, message: &str) -> Result<()> {
        const STEPS: &str = "anneal.field('Steps of clean, in this order').value";
        self.click_at("anneal.find('.actions button', 'clean')", "clean")?;
        self.choose("Add a step that the node offers", "management.fake_fail")?;
        // The step comes with an empty message, which the user fills in.
        let offered = self.until(STEPS, "the step")?;
        let given = offered
            .as_str()
            .unwrap_or_default()
            .replace(r#""message": """#, &format!(r#""message": "{message}""#));
        self.fill("Steps of clean, in this order", &given)?;
        self.fill(&format!("Type {name} to go on"), name)?;
        self.click("clean")?;
        self.until(&stands("clean failed"), "it fails")?;
        self.reads("Clean step management.fake_fail failed")?;
        self.reads(message)
    }

    /// Leads the one node that failed out of it, by the way that the list of what needs someone offers.
    ///
    /// # Errors
    /// When the node is still in the list.
    pub fn lead_out(&self, name: &str) -> Result<()> {
        self.click("Fleet")?;
        self.reads("1 failed")?;
        self.click("provide")?;
        self.fill(&format!("Type {name} to go on"), name)?;
        self.click("provide")?;
        self.reads("No node needs you.")
    }

    /// Has the node of this page cleaned, to be available.
    ///
    /// # Errors
    /// When the page does not take it.
    pub fn provide(&self, name: &str) -> Result<()> {
        self.click_at("anneal.find('.actions button', 'provide')", "provide")?;
        self.fill(&format!("Type {name} to go on"), name)?;
        self.click("provide")
    }

    /// Downloads the certificate of an erase of the node of this page, once the page has verified it.
    ///
    /// # Errors
    /// When there is none, or it does not hold.
    pub fn download_certificate(&self) -> Result<()> {
        const ROW: &str = "[...document.querySelectorAll('tbody tr')]\
                           .find((row) => [...row.cells].some((cell) => anneal.text(cell) === 'erased'))";
        self.click("Records and certificates")?;
        self.click_at(&format!("{ROW}?.querySelector('a')"), "the certificate of the erase")?;
        self.reads("verified It is signed by this controller, whole")?;
        self.click("Download the certificate")
    }
}

/// An expression that is true where the page of a node shows this provision state.
pub fn stands(state: &str) -> String {
    format!("document.querySelector('.way [aria-current=step]')?.innerText === {}", json!(state))
}
