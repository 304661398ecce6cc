//! Signed ramdisks in small: EFI programs whose sections have the names of those of systemd's stub.

/// Where the headers end.
const HEADERS: usize = 1024;
const ALIGNMENT: usize = 512;

/// An EFI program with these sections, which nothing has signed and which does nothing.
pub fn program(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; HEADERS];
    put(&mut bytes, 0, b"MZ");
    put(&mut bytes, 0x3c, &64_u32.to_le_bytes());
    put(&mut bytes, 64, b"PE\0\0\x64\x86");
    put(&mut bytes, 70, &u16::try_from(sections.len()).expect("few").to_le_bytes());
    // Bytes of the optional header; an image that can be executed.
    put(&mut bytes, 84, &[240, 0, 0x22, 0]);
    let optional = 88;
    put(&mut bytes, optional, &[0x0b, 0x02]);
    // Alignment of sections and in the file; bytes of the headers; an EFI application; 16 directories.
    put(&mut bytes, optional + 32, &4096_u32.to_le_bytes());
    put(&mut bytes, optional + 36, &512_u32.to_le_bytes());
    put(&mut bytes, optional + 60, &1024_u32.to_le_bytes());
    put(&mut bytes, optional + 68, &[10, 0]);
    put(&mut bytes, optional + 108, &16_u32.to_le_bytes());
    let mut address = 4096;
    for (number, (name, content)) in sections.iter().enumerate() {
        let header = optional + 240 + 40 * number;
        put(&mut bytes, header, name.as_bytes());
        let raw = content.len().next_multiple_of(ALIGNMENT);
        for (slot, value) in [content.len(), address, raw, bytes.len()].into_iter().enumerate() {
            put(&mut bytes, header + 8 + 4 * slot, &u32::try_from(value).expect("small").to_le_bytes());
        }
        put(&mut bytes, header + 36, &0x4000_0040_u32.to_le_bytes());
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        address += raw.next_multiple_of(4096);
    }
    put(&mut bytes, optional + 56, &u32::try_from(address).expect("small").to_le_bytes());
    bytes
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

/// A ramdisk as one program.
#[derive(Debug, Clone)]
pub struct Ramdisk {
    /// Its file.
    pub file: Vec<u8>,
    /// Kernel command line.
    pub line: String,
    /// Its parts in the order in which the stub measures them.
    pub parts: Vec<(&'static str, Vec<u8>)>,
}

impl Ramdisk {
    /// With this kernel command line and this initramfs.
    pub fn new(line: &str, initramfs: &[u8]) -> Self {
        let kernel = program(&[(".text", b"a kernel")]);
        let stub: (&str, &[u8]) = (".sdmagic", b"#### LoaderInfo: systemd-stub 252.39-1~deb12u1 ####\0");
        let release = b"ID=anneal\n".to_vec();
        let sections = [
            stub,
            (".osrel", &release),
            (".cmdline", line.as_bytes()),
            (".linux", &kernel),
            (".initrd", initramfs),
        ];
        let file = program(&sections);
        let parts = vec![
            (".linux", kernel),
            (".osrel", release),
            (".cmdline", line.as_bytes().to_vec()),
            (".initrd", initramfs.to_vec()),
        ];
        Self { file, line: line.to_owned(), parts }
    }
}
