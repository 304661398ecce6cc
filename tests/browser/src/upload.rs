//! Files that a user chooses.

use crate::page::Page;
use anyhow::{Context, Result};
use serde_json::json;
use std::path::Path;

impl Page<'_> {
    /// Chooses a file in the field with this label, as its dialog would.
    ///
    /// # Errors
    /// When there is no such field in time, or it takes no file.
    pub fn choose_file(&self, label: &str, file: &Path) -> Result<()> {
        let field = format!("anneal.field({})", json!(label));
        self.until(&format!("{field} !== null"), &format!("a field {label:?}"))?;
        let found = self.call("Runtime.evaluate", json!({ "expression": field }))?;
        let object = found["result"]["objectId"].as_str().with_context(|| format!("the field {label:?}"))?;
        let params = json!({ "files": [file.canonicalize()?], "objectId": object });
        self.call("DOM.setFileInputFiles", params).map(drop)
    }
}
