//! The files of an ISO 9660 file system (ECMA-119), for a disk from which Linux cannot mount it. Of its names those of Joliet
//! are taken, else those of Rock Ridge, else the plain ones as Linux shows them. Pure and bounded: the user who asks for the
//! deployment brings the bytes.

/// The most bytes of a configuration drive, as in Ironic.
pub const LARGEST: u64 = 64 << 20;

const SECTOR: usize = 2048;
/// Sectors in which the volume descriptors are.
const DESCRIPTORS: std::ops::Range<usize> = 16..48;
/// Directories below one another.
const DEPTH_MAX: usize = 8;
/// Directory records in all, the ones that are passed over included.
const RECORDS_MAX: usize = 10_000;
/// Files and directories.
const ENTRIES_MAX: usize = 1000;
const DIRECTORY_MAX: usize = 1 << 20;
const NAME_MAX: usize = 255;

const IS_DIRECTORY: u8 = 1 << 1;
const IS_ASSOCIATED: u8 = 1 << 2;
const GOES_ON: u8 = 1 << 7;

/// A file or a directory, after the directory that it is in.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Names from the root, with `/` between them.
    pub path: String,
    /// Nothing for a directory.
    pub content: Option<&'a [u8]>,
}

/// Whether these bytes begin as such a file system.
pub(super) fn is_iso(image: &[u8]) -> bool {
    descriptor(image, DESCRIPTORS.start).is_some()
}

/// All files and directories.
///
/// # Errors
/// What is wrong with the file system. Quotes none of its contents.
pub fn entries(image: &[u8]) -> Result<Vec<Entry<'_>>, String> {
    let (names, root) = volume(image)?;
    let mut reader = Reader { image, names, records: 0, content: 0, entries: Vec::new() };
    reader.directory(&Record::parse(root)?, "", 0)?;
    Ok(reader.entries)
}

#[derive(Clone, Copy)]
enum Names {
    Joliet,
    Primary,
}

fn descriptor(image: &[u8], sector: usize) -> Option<&[u8]> {
    let descriptor = image.get(sector * SECTOR..(sector + 1) * SECTOR)?;
    (&descriptor[1..6] == b"CD001").then_some(descriptor)
}

/// The record of the root directory, of Joliet's volume where there is one.
fn volume(image: &[u8]) -> Result<(Names, &[u8]), String> {
    let mut primary = None;
    for descriptor in DESCRIPTORS.map_while(|sector| descriptor(image, sector)) {
        let is_joliet = [b"%/@", b"%/C", b"%/E"].iter().any(|escape| descriptor[88..].starts_with(*escape));
        let names = match descriptor[0] {
            1 => Names::Primary,
            2 if is_joliet => Names::Joliet,
            255 => break,
            _ => continue,
        };
        if descriptor[128..130] != [0, 8] {
            return Err("its blocks do not have 2048 bytes".to_owned());
        }
        match names {
            Names::Joliet => return Ok((names, &descriptor[156..190])),
            Names::Primary => primary = primary.or(Some(&descriptor[156..190])),
        }
    }
    primary.map(|root| (Names::Primary, root)).ok_or_else(|| "it has no primary volume".to_owned())
}

struct Reader<'a> {
    image: &'a [u8],
    names: Names,
    records: usize,
    content: u64,
    entries: Vec<Entry<'a>>,
}

impl<'a> Reader<'a> {
    fn directory(&mut self, record: &Record<'a>, path: &str, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("it has more than {DEPTH_MAX} directories below one another"));
        }
        if record.length > DIRECTORY_MAX {
            return Err("it has a directory of more than 1 MiB".to_owned());
        }
        // A record ends in the sector in which it begins; zeroes fill the sector.
        for sector in self.extent(record)?.chunks(SECTOR) {
            let mut rest = sector;
            while let Some(&length) = rest.first().filter(|&&length| length > 0) {
                let bytes = rest.get(..usize::from(length)).ok_or("a directory record is cut off")?;
                rest = &rest[usize::from(length)..];
                self.records += 1;
                if self.records > RECORDS_MAX {
                    return Err(format!("it has more than {RECORDS_MAX} directory records"));
                }
                self.record(&Record::parse(bytes)?, path, depth)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'a>, path: &str, depth: usize) -> Result<(), String> {
        // The directory itself and the one above it; what belongs to another file.
        if matches!(record.name, [0 | 1]) || record.flags & IS_ASSOCIATED != 0 {
            return Ok(());
        }
        let name = record.shown(self.names)?;
        let path = if path.is_empty() { name } else { format!("{path}/{name}") };
        if self.entries.len() >= ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} files and directories"));
        }
        if record.flags & IS_DIRECTORY != 0 {
            self.entries.push(Entry { path: path.clone(), content: None });
            return self.directory(record, &path, depth + 1);
        }
        self.content += record.length as u64;
        if self.content > LARGEST {
            return Err(format!("its files have more than {} MiB", LARGEST >> 20));
        }
        let content = self.extent(record)?;
        self.entries.push(Entry { path, content: Some(content) });
        Ok(())
    }

    fn extent(&self, record: &Record) -> Result<&'a [u8], String> {
        if record.flags & GOES_ON != 0 || record.is_interleaved {
            return Err("it has a file in several parts".to_owned());
        }
        // An empty file may be anywhere.
        if record.length == 0 {
            return Ok(&[]);
        }
        let start = record.start.checked_mul(SECTOR);
        let range = start.and_then(|start| Some(start..start.checked_add(record.length)?));
        let extent = range.and_then(|range| self.image.get(range));
        extent.ok_or_else(|| "a file or directory of it lies beyond its end".to_owned())
    }
}

/// A directory record.
struct Record<'a> {
    start: usize,
    length: usize,
    flags: u8,
    is_interleaved: bool,
    name: &'a [u8],
    /// Rock Ridge, if anything.
    system: &'a [u8],
}

impl<'a> Record<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let short = || "a directory record is cut off".to_owned();
        let (fixed, rest) = bytes.split_at_checked(33).ok_or_else(short)?;
        let number = |at: usize| {
            let word = [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]];
            usize::try_from(u32::from_le_bytes(word)).unwrap_or(usize::MAX)
        };
        let (name, rest) = rest.split_at_checked(usize::from(fixed[32])).ok_or_else(short)?;
        // A name of even length is followed by a byte.
        let system = rest.get(usize::from(name.len() % 2 == 0)..).unwrap_or_default();
        Ok(Self {
            start: number(2).saturating_add(usize::from(fixed[1])),
            length: number(10),
            flags: fixed[25],
            is_interleaved: fixed[26] != 0 || fixed[27] != 0,
            name,
            system,
        })
    }

    fn shown(&self, names: Names) -> Result<String, String> {
        let name = match names {
            Names::Joliet => {
                let units = self.name.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
                char::decode_utf16(units).collect::<Result<String, _>>().ok().map(without_version)
            }
            Names::Primary => match rock_ridge_name(self.system) {
                Some(name) => String::from_utf8(name).ok(),
                None => String::from_utf8(self.name.to_ascii_lowercase()).ok().map(|name| {
                    let name = without_version(name);
                    name.strip_suffix('.').map(str::to_owned).unwrap_or(name)
                }),
            },
        };
        let is_sound = |name: &String| {
            !matches!(name.as_str(), "" | "." | "..")
                && name.len() <= NAME_MAX
                && !name.contains(|letter: char| matches!(letter, '/' | '\\') || letter.is_control())
        };
        name.filter(is_sound).ok_or_else(|| "it has a file with an impossible name".to_owned())
    }
}

/// `NAME;1` is the first version of a file.
fn without_version(name: String) -> String {
    match name.rsplit_once(';') {
        Some((plain, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => plain.to_owned(),
        _ => name,
    }
}

/// The name in the entries `NM`.
fn rock_ridge_name(mut system: &[u8]) -> Option<Vec<u8>> {
    let mut name = None::<Vec<u8>>;
    while let [first, second, length, _, rest @ ..] = system {
        let data = rest.get(..usize::from(*length).checked_sub(4)?)?;
        if let ([b'N', b'M'], [_, part @ ..]) = ([*first, *second], data) {
            name.get_or_insert_default().extend(part);
        }
        system = &rest[data.len()..];
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A primary volume with one directory at sector 20, in which are these records.
    fn image(records: &[Vec<u8>]) -> Vec<u8> {
        let mut image = vec![0; 24 * SECTOR];
        image[16 * SECTOR..][..6].copy_from_slice(b"\x01CD001");
        image[16 * SECTOR + 129] = 8;
        let root = record(b"\0", 20, 2048, IS_DIRECTORY);
        image[16 * SECTOR + 156..][..root.len()].copy_from_slice(&root);
        let records = records.concat();
        image[20 * SECTOR..][..records.len()].copy_from_slice(&records);
        image[21 * SECTOR..][..5].copy_from_slice(b"hello");
        image
    }

    fn record(name: &[u8], start: u8, length: u32, flags: u8) -> Vec<u8> {
        let mut record = vec![0; 33];
        record[2] = start;
        record[10..14].copy_from_slice(&length.to_le_bytes());
        record[25] = flags;
        record[32] = u8::try_from(name.len()).unwrap();
        record.extend(name);
        record.resize(record.len().next_multiple_of(2), 0);
        record[0] = u8::try_from(record.len()).unwrap();
        record
    }

    type Seen = Vec<(String, Option<Vec<u8>>)>;

    fn seen(records: &[Vec<u8>]) -> Result<Seen, String> {
        let image = image(records);
        let entries = entries(&image)?;
        Ok(entries.into_iter().map(|entry| (entry.path, entry.content.map(<[u8]>::to_vec))).collect())
    }

    #[test]
    fn names_are_those_that_linux_shows() {
        let mut named = record(b"LONG_NAM.;1", 21, 5, 0);
        named.extend(b"PX\x04\x01NM\x09\x01\x01longNM\x0a\x01\0.name");
        named[0] = u8::try_from(named.len()).unwrap();
        let found = seen(&[record(b"\0", 20, 2048, 2), record(b"USER_DATA.;1", 21, 5, 0), named]).unwrap();
        let hello = Some(b"hello".to_vec());
        assert_eq!(found, [("user_data".to_owned(), hello.clone()), ("long.name".to_owned(), hello)]);
        assert_eq!(seen(&[record(b"EMPTY.;1", 255, 0, 0)]).unwrap()[0].1, Some(Vec::new()));
    }

    #[test]
    fn hostile_records_are_refused_and_bounded() {
        for (hostile, expected) in [
            (record(b"A.;1", 23, 4096, 0), "beyond its end"),
            (record(b"A.;1", 255, u32::MAX, 0), "MiB"),
            (record(b"A.;1", 21, 5, GOES_ON), "several parts"),
            (record(b"D", 20, 2048, IS_DIRECTORY), "below one another"),
            (record(b"D", 20, 2 << 20, IS_DIRECTORY), "1 MiB"),
            (record(b"../a", 21, 5, 0), "impossible name"),
            (record(b"..", 21, 5, 0), "impossible name"),
            (record(b";1", 21, 5, 0), "impossible name"),
            (record(b"\xff", 21, 5, 0), "impossible name"),
            (vec![20; 20], "cut off"),
        ] {
            let refused = seen(std::slice::from_ref(&hostile)).unwrap_err();
            assert!(refused.contains(expected), "{hostile:?}: {refused}");
        }
        // Two records that lead back are 2^8 directories, were it not for the bounds.
        let twice = seen(&[record(b"D", 20, 2048, 2), record(b"E", 20, 2048, 2)]).unwrap_err();
        assert!(twice.contains("below one another"), "{twice}");
        assert!(entries(&[0; 100_000]).is_err_and(|why| why.contains("no primary volume")));
        assert!(entries(b"short").is_err());
        let mut blocks = image(&[]);
        blocks[16 * SECTOR + 129] = 4;
        assert!(entries(&blocks).is_err_and(|why| why.contains("2048")));
    }
}
