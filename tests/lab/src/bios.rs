//! What a firmware keeps: settings, and the order in which it tries to boot.

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use crate::node::Boot;

/// Places of the boot order, with what they boot, as the factory has it.
const PLACES: [(&str, Boot); 2] = [("Boot0001", Boot::Disks), ("Boot0002", Boot::Pxe)];

/// Settings of one machine, kept from one power-on to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Bios {
    /// In force.
    pub attributes: Map<String, Value>,
    /// Taken into force at the next boot.
    pub pending: Map<String, Value>,
    order: Vec<&'static str>,
}

impl Default for Bios {
    fn default() -> Self {
        Self {
            attributes: factory(),
            pending: Map::new(),
            order: PLACES.iter().map(|(name, _)| *name).collect(),
        }
    }
}

fn factory() -> Map<String, Value> {
    let settings =
        [("ProcTurboMode", json!("Enabled")), ("EmbeddedSata", json!("Ahci")), ("NumLock", json!(true))];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Bios {
    /// Notes settings for the next boot.
    ///
    /// # Errors
    /// When there is no such setting, or it takes another type; nothing is noted then.
    pub fn set(&mut self, settings: &Map<String, Value>) -> Result<()> {
        for (name, value) in settings {
            match self.attributes.get(name) {
                None => bail!("the BIOS has no setting {name}"),
                Some(now) if now.is_string() != value.is_string() => bail!("{name} cannot be {value}"),
                Some(_) => {}
            }
        }
        self.pending.extend(settings.clone());
        Ok(())
    }

    /// Notes the settings of the factory for the next boot.
    pub fn reset(&mut self) {
        self.pending = factory();
    }

    /// The boot order by the names of its places, first to be tried first.
    #[must_use]
    pub fn order(&self) -> &[&'static str] {
        &self.order
    }

    /// Changes the boot order, for the next boot and all after it.
    ///
    /// # Errors
    /// When a place is missing, unknown or given twice.
    pub fn set_order(&mut self, names: &[&str]) -> Result<()> {
        let order: Vec<_> = names
            .iter()
            .filter_map(|name| PLACES.iter().find(|(known, _)| known == name).map(|(known, _)| *known))
            .collect();
        if order.len() != names.len() || PLACES.iter().any(|(known, _)| !order.contains(known)) {
            bail!("{names:?} is no order of {:?}", PLACES.map(|(name, _)| name));
        }
        self.order = order;
        Ok(())
    }

    /// What is tried first when no override says otherwise.
    #[must_use]
    pub fn first(&self) -> Boot {
        let first = PLACES.iter().find(|(name, _)| Some(name) == self.order.first());
        first.map_or(Boot::Disks, |(_, boot)| *boot)
    }

    /// A boot takes what is pending into force.
    pub fn booted(&mut self) {
        self.attributes.append(&mut self.pending);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_in_force_after_a_boot() {
        let mut bios = Bios::default();
        let wanted = Map::from_iter([("ProcTurboMode".to_owned(), json!("Disabled"))]);
        bios.set(&wanted).unwrap();
        assert_eq!(bios.attributes["ProcTurboMode"], "Enabled");
        bios.booted();
        assert_eq!((&bios.attributes["ProcTurboMode"], bios.pending.len()), (&json!("Disabled"), 0));
        bios.reset();
        bios.booted();
        assert_eq!(bios, Bios::default());
        for (name, value) in [("NoSuch", json!("x")), ("NumLock", json!("yes"))] {
            let wrong = Map::from_iter([(name.to_owned(), value)]);
            assert!(bios.set(&wrong).unwrap_err().to_string().contains(name));
        }
        assert_eq!(bios, Bios::default());
    }

    #[test]
    fn the_order_has_every_place_once() {
        let mut bios = Bios::default();
        assert_eq!(bios.first(), Boot::Disks);
        bios.set_order(&["Boot0002", "Boot0001"]).unwrap();
        assert_eq!((bios.first(), bios.order()), (Boot::Pxe, &["Boot0002", "Boot0001"][..]));
        for wrong in [&["Boot0001"][..], &["Boot0001", "Boot0001"], &["Boot0001", "Boot0003"], &[]] {
            assert!(bios.set_order(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(bios.first(), Boot::Pxe);
    }
}
