//! A machine's power.

/// The power of a machine on which `R` runs.
#[derive(Debug, Clone, Default)]
pub struct Power<R> {
    /// It has power.
    pub on: bool,
    /// Number of its boots: what belongs to a boot sees by it that the boot is over.
    pub boot: u32,
    /// What runs; the default while it is off.
    pub runs: R,
}

impl<R: Default> Power<R> {
    /// Switch it on, unless it is on. True when a boot begins.
    pub fn switch_on(&mut self) -> bool {
        let begins = !std::mem::replace(&mut self.on, true);
        self.boot += u32::from(begins);
        begins
    }

    /// Switch it off. What ran until now; `None` if it was off.
    pub fn switch_off(&mut self) -> Option<R> {
        std::mem::take(&mut self.on).then(|| std::mem::take(&mut self.runs))
    }

    /// Whether this boot still goes on.
    pub fn is_in(&self, boot: u32) -> bool {
        self.on && self.boot == boot
    }
}
