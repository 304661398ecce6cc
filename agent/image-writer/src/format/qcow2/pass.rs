//! The pass over the file.

use super::header::{Header, corrupt, refused};
use super::map::{Extent, Map};
use crate::error::ImageError;
use crate::format::in_order::InOrder;
use crate::format::window::Window;
use crate::format::{Ahead, Sink, read_full};
use block::aligned::is_zero;
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// What is kept of the file behind the place that was read last.
const WINDOW: usize = 8 << 20;
/// The same where no table can be read ahead. `qemu-img convert -c` has eight requests of 2 MiB in flight, and a table gets its
/// place with the first of them that ends: its clusters may begin that much before it.
const WINDOW_WITHOUT_AHEAD: usize = 24 << 20;

/// Reads a whole qcow2 file with one decoder: [`place_with`].
///
/// # Errors
/// When it is no image that can be written, and what `sink` and `ahead` say.
pub fn place(
    input: &mut dyn Read,
    sink: &mut dyn Sink,
    ahead: Option<&dyn Ahead>,
    failed: &dyn Fn(io::Error) -> ImageError,
) -> Result<(), ImageError> {
    place_with(1, input, sink, ahead, failed)
}

/// Reads a whole qcow2 file from `input` and gives `sink` what is on its disk. An error of `input` passes through
/// `failed`. So many decoders unpack compressed clusters at the same time.
///
/// # Errors
/// When it is no image that can be written, and what `sink` and `ahead` say.
pub fn place_with(
    decoders: usize,
    input: &mut dyn Read,
    sink: &mut dyn Sink,
    ahead: Option<&dyn Ahead>,
    failed: &dyn Fn(io::Error) -> ImageError,
) -> Result<(), ImageError> {
    let mut head = vec![0; Header::LENGTH];
    let length = read_full(input, &mut head).map_err(failed)?;
    let header = Header::parse(&head[..length])?;
    let cluster = header.cluster();
    let mut content = InOrder::new(sink, header.packing, cluster, decoders)?;
    content.size(header.size)?;
    let first = vec![0; header.l1_entries * 8];
    let most = header.size.saturating_mul(2).saturating_add(64 << 20);
    let mut pass = Pass {
        map: Map::new(header.clone()),
        window: Window::new(cluster, if ahead.is_some() { WINDOW } else { WINDOW_WITHOUT_AHEAD }),
        first,
        read_ahead: BTreeMap::new(),
        header,
        content,
        ahead,
    };
    let mut input = head[..length].chain(input);
    loop {
        let mut piece = pass.window.buffer();
        let count = read_full(&mut input, &mut piece).map_err(failed)?;
        let ended = count < cluster;
        piece.truncate(count);
        pass.piece(piece, ended)?;
        if ended {
            return pass.end();
        }
        if pass.window.end() > most {
            return Err(corrupt("the file is more than twice as long as its disk"));
        }
    }
}

struct Pass<'a> {
    header: Header,
    map: Map,
    window: Window,
    /// The table of the first level as it arrives.
    first: Vec<u8>,
    /// Tables that were read ahead: the place and length of each, and its digest.
    read_ahead: BTreeMap<u64, (usize, Vec<u8>)>,
    content: InOrder<'a>,
    ahead: Option<&'a dyn Ahead>,
}

impl Pass<'_> {
    /// The next piece of the file.
    fn piece(&mut self, piece: Vec<u8>, ended: bool) -> Result<(), ImageError> {
        self.make_room()?;
        let start = self.window.end();
        let end = start + piece.len() as u64;
        self.window.push(piece);
        if start == 0 {
            self.window.name(0, self.header.cluster());
        }
        self.take_first(start, end)?;
        self.compare(end)?;
        self.read_tables(end)?;
        self.write(end, ended)
    }

    /// A piece is about to be forgotten. If something may still name it, now is the time to ask.
    fn make_room(&mut self) -> Result<(), ImageError> {
        let Some(ahead) = self.ahead.filter(|_| !self.map.complete()) else { return Ok(()) };
        if self.window.unnamed_oldest().is_none_or(is_zero) {
            return Ok(());
        }
        tracing::info!("tables of the qcow2 file come after their clusters and are read ahead");
        if !self.map.first_known() {
            let table = self.fetch(ahead, self.header.l1_offset, self.first.len())?;
            let zero = self.map.first(&table)?;
            self.zero(&zero)?;
        }
        for place in self.map.tables() {
            let table = match self.window.piece(place) {
                Some(kept) => kept.to_vec(),
                None => self.fetch(ahead, place, self.header.cluster())?,
            };
            let zero = self.map.second(place, &table)?;
            self.zero(&zero)?;
        }
        // What is about to be forgotten is among what they name.
        self.write(self.window.end(), false)
    }

    /// A table that has not passed yet; it will be compared when it does.
    fn fetch(&mut self, ahead: &dyn Ahead, place: u64, length: usize) -> Result<Vec<u8>, ImageError> {
        let table = ahead.read(place, length)?;
        if table.len() != length {
            return Err(corrupt("a table is cut off"));
        }
        self.read_ahead.insert(place, (length, digest(&SHA256, &table).as_ref().to_vec()));
        Ok(table)
    }

    /// What of the first table is in this piece.
    fn take_first(&mut self, start: u64, end: u64) -> Result<(), ImageError> {
        let (from, to) = (self.header.l1_offset, self.header.l1_offset + self.first.len() as u64);
        if self.map.first_known() || end <= from || start >= to {
            return Ok(());
        }
        self.window.name(from, self.first.len());
        if end >= to {
            // It is no longer than the window.
            self.first = self.window.bytes(from, self.first.len()).unwrap_or_default();
            if self.first.len() != self.header.l1_entries * 8 {
                return Err(corrupt("its first table is cut off"));
            }
            let zero = self.map.first(&self.first)?;
            self.zero(&zero)?;
        }
        Ok(())
    }

    /// Tables that were read ahead and have passed now are what they were.
    fn compare(&mut self, end: u64) -> Result<(), ImageError> {
        while let Some((&place, (length, _))) = self.read_ahead.first_key_value() {
            if place + *length as u64 > end {
                break;
            }
            let passed = self.window.bytes(place, *length);
            let Some((_, (_, expected))) = self.read_ahead.pop_first() else { break };
            if passed.is_none_or(|passed| digest(&SHA256, &passed).as_ref() != expected) {
                return Err(ImageError::Format("qcow2: the server gave two versions of a table".to_owned()));
            }
        }
        Ok(())
    }

    /// Second-level tables that have passed, also before the first was known.
    fn read_tables(&mut self, end: u64) -> Result<(), ImageError> {
        let cluster = self.header.cluster();
        while let Some(place) = self.map.first_table().filter(|place| place + cluster as u64 <= end) {
            let table = self.window.bytes(place, cluster).ok_or_else(|| out_of_order(self.ahead))?;
            let zero = self.map.second(place, &table)?;
            self.window.name(place, cluster);
            self.zero(&zero)?;
        }
        Ok(())
    }

    /// Clusters that have passed and whose place is known.
    fn write(&mut self, end: u64, ended: bool) -> Result<(), ImageError> {
        let cluster = self.header.cluster();
        while let Some((host, guest)) = self.map.next_cluster(end) {
            let length = usize::try_from(self.header.size - guest).unwrap_or(cluster).min(cluster);
            let piece = self.window.piece(host).ok_or_else(|| out_of_order(self.ahead))?;
            if piece.len() < length {
                return Err(corrupt("a cluster is cut off"));
            }
            self.content.data(guest, &piece[..length])?;
            self.window.name(host, cluster);
        }
        while let Some(packed) = self.map.next_packed(end, ended) {
            let bytes =
                self.window.bytes(packed.host, packed.length).ok_or_else(|| out_of_order(self.ahead))?;
            let length = usize::try_from(self.header.size - packed.guest).unwrap_or(cluster).min(cluster);
            self.window.name(packed.host, packed.length);
            self.content.packed(packed.guest, length, bytes)?;
        }
        Ok(())
    }

    fn zero(&mut self, extents: &[Extent]) -> Result<(), ImageError> {
        extents.iter().try_for_each(|extent| self.content.zero(extent.offset, extent.length))
    }

    fn end(mut self) -> Result<(), ImageError> {
        self.content.finish()?;
        if !self.read_ahead.is_empty() || !self.map.first_known() {
            return Err(corrupt("it ends before its tables"));
        }
        match self.map.awaited() {
            Some(place) => Err(corrupt(&format!("it ends before byte {place}, which a table names"))),
            None => Ok(()),
        }
    }
}

fn out_of_order(ahead: Option<&dyn Ahead>) -> ImageError {
    let why = if ahead.is_some() { "" } else { " and are not read ahead from this server" };
    refused(&format!(
        "its tables come long after the clusters that they name{why}; put them in order: qemu-img convert -O qcow2 -c \
         IMAGE NEW"
    ))
}
