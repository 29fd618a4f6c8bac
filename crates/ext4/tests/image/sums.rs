//! Every checksum of an image, recomputed from the public description of the format.

struct Image<'b> {
    b: &'b [u8],
    bs: usize,
    seed: u32,
    wide: bool,
    wrong: Vec<Wrong>,
    seen: usize,
}

/// A checksum that is not right: of what, and where which bytes would be.
struct Wrong {
    what: String,
    right: Vec<(usize, Vec<u8>)>,
}

fn table() -> [u32; 256] {
    let mut table = [0; 256];
    for (n, entry) in table.iter_mut().enumerate() {
        let mut c = n as u32;
        for _ in 0..8 {
            c = if c & 1 == 1 {
                0x82f6_3b78 ^ (c >> 1)
            } else {
                c >> 1
            };
        }
        *entry = c;
    }
    table
}

fn crc(start: u32, bytes: &[u8]) -> u32 {
    use std::sync::OnceLock;
    static TABLE: OnceLock<[u32; 256]> = OnceLock::new();
    let table = TABLE.get_or_init(table);
    bytes.iter().fold(start, |c, b| {
        table[((c ^ u32::from(*b)) & 0xff) as usize] ^ (c >> 8)
    })
}

fn u16_(b: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(b[at..at + 2].try_into().unwrap()))
}

fn u32_(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().unwrap())
}

/// What is wrong, and nothing if the image has no checksums.
pub(crate) fn wrong(bytes: &[u8]) -> Vec<String> {
    look(bytes).into_iter().map(|wrong| wrong.what).collect()
}

/// Makes every checksum right, so that of a damage only the damage is left.
pub(crate) fn mend(bytes: &mut [u8]) {
    // That of a bitmap lies in a descriptor, which has one itself.
    for _ in 0..3 {
        for (at, right) in look(bytes).into_iter().flat_map(|wrong| wrong.right) {
            bytes[at..at + right.len()].copy_from_slice(&right);
        }
    }
}

fn look(bytes: &[u8]) -> Vec<Wrong> {
    let sb = &bytes[1024..2048];
    if u32_(sb, 0x64) & 0x400 == 0 {
        return Vec::new();
    }
    let incompat = u32_(sb, 0x60);
    let mut image = Image {
        b: bytes,
        bs: 1024 << u32_(sb, 0x18),
        seed: if incompat & 0x2000 != 0 {
            u32_(sb, 0x270)
        } else {
            crc(!0, &sb[0x68..0x78])
        },
        wide: incompat & 0x80 != 0,
        wrong: Vec::new(),
        seen: 0,
    };
    image.same("superblock", crc(!0, &sb[..0x3fc]), &[&sb[0x3fc..]]);
    image.groups(sb);
    assert!(image.seen > 3, "nothing was looked at");
    image.wrong
}

impl<'b> Image<'b> {
    /// Compares a checksum with what the image has in one part or two of it, the low one first.
    fn same(&mut self, what: impl Into<String>, right: u32, parts: &[&'b [u8]]) {
        self.seen += 1;
        let mut rest = &right.to_le_bytes()[..];
        let mut fix = Vec::new();
        let mut differs = false;
        for part in parts {
            let (now, later) = rest.split_at(part.len());
            differs |= now != *part;
            // Parts are of the image.
            let at = part.as_ptr() as usize - self.b.as_ptr() as usize;
            fix.push((at, now.to_vec()));
            rest = later;
        }
        if differs {
            self.wrong.push(Wrong {
                what: format!("{}: {parts:x?}, {right:#x} would be right", what.into()),
                right: fix,
            });
        }
    }

    fn block(&self, n: u64) -> &'b [u8] {
        &self.b[n as usize * self.bs..(n as usize + 1) * self.bs]
    }

    fn groups(&mut self, sb: &[u8]) {
        let first = u32_(sb, 0x14) as usize;
        let per = u32_(sb, 0x20) as usize;
        let inodes = u32_(sb, 0x28) as usize;
        let blocks = u32_(sb, 4) as usize;
        let size = if self.wide { u16_(sb, 0xfe) } else { 32 };
        let isize = u16_(sb, 0x58);
        for g in 0..(blocks - first).div_ceil(per) {
            let at = (first + 1) * self.bs + g * size;
            let desc = &self.b[at..at + size];
            let mut zeroed = desc.to_vec();
            zeroed[0x1e..0x20].fill(0);
            let sum = crc(crc(self.seed, &(g as u32).to_le_bytes()), &zeroed);
            self.same(format!("group {g}"), sum, &[&desc[0x1e..0x20]]);
            let parts = |low: usize, high: usize| -> Vec<&[u8]> {
                let mut parts = vec![&desc[low..low + 2]];
                if size >= 64 {
                    parts.push(&desc[high..high + 2]);
                }
                parts
            };
            let place = |low: usize, at: usize| {
                u64::from(u32_(desc, low))
                    | if size >= 64 {
                        u64::from(u32_(desc, at)) << 32
                    } else {
                        0
                    }
            };
            let flags = u16_(desc, 0x12);
            if flags & 2 == 0 {
                let sum = crc(self.seed, &self.block(place(0, 0x20))[..per / 8]);
                self.same(format!("block bitmap {g}"), sum, &parts(0x18, 0x38));
            }
            if flags & 1 != 0 {
                continue;
            }
            let map = self.block(place(4, 0x24));
            let sum = crc(self.seed, &map[..inodes / 8]);
            self.same(format!("inode bitmap {g}"), sum, &parts(0x1a, 0x3a));
            let unused = u16_(desc, 0x1c);
            for n in 0..inodes - unused {
                let at = place(8, 0x28) as usize * self.bs + n * isize;
                let raw = &self.b[at..at + isize];
                if raw.iter().any(|b| *b != 0) {
                    self.inode((g * inodes + n + 1) as u32, raw);
                }
            }
        }
    }

    fn inode(&mut self, ino: u32, raw: &'b [u8]) {
        let seed = crc(crc(self.seed, &ino.to_le_bytes()), &raw[0x64..0x68]);
        let mut zeroed = raw.to_vec();
        zeroed[0x7c..0x7e].fill(0);
        let long = raw.len() > 128 && u16_(raw, 0x80) >= 4;
        if long {
            zeroed[0x82..0x84].fill(0);
        }
        let sum = crc(seed, &zeroed);
        let mut parts = vec![&raw[0x7c..0x7e]];
        if long {
            parts.push(&raw[0x82..0x84]);
        }
        self.same(format!("inode {ino}"), sum, &parts);
        let (mode, links, flags) = (u16_(raw, 0), u16_(raw, 0x1a), u32_(raw, 0x20));
        if links == 0 || flags & 0x8_0000 == 0 {
            return;
        }
        let mut runs = Vec::new();
        self.node(ino, seed, &raw[0x28..0x64], &mut runs);
        if mode & 0xf000 == 0x4000 {
            for (lblk, len, start) in runs {
                for n in 0..len {
                    self.dir_block(
                        ino,
                        seed,
                        lblk + n,
                        start + u64::from(n),
                        flags & 0x1000 != 0,
                    );
                }
            }
        }
    }

    fn node(&mut self, ino: u32, seed: u32, node: &[u8], runs: &mut Vec<(u32, u32, u64)>) {
        let (entries, depth) = (u16_(node, 2), u16_(node, 6));
        for n in 0..entries {
            let e = &node[12 * (n + 1)..12 * (n + 2)];
            if depth == 0 {
                let len = u16_(e, 4) as u32;
                let len = if len > 32768 { len - 32768 } else { len };
                runs.push((
                    u32_(e, 0),
                    len,
                    u64::from(u32_(e, 8)) | (u16_(e, 6) as u64) << 32,
                ));
            } else {
                let child = u64::from(u32_(e, 4)) | (u16_(e, 8) as u64) << 32;
                let b = self.block(child);
                let at = 12 + 12 * u16_(b, 4);
                let what = format!("extent block {child} of {ino}");
                self.same(what, crc(seed, &b[..at]), &[&b[at..at + 4]]);
                self.node(ino, seed, b, runs);
            }
        }
    }

    fn dir_block(&mut self, ino: u32, seed: u32, lblk: u32, block: u64, hashed: bool) {
        let b = self.block(block);
        let what = format!("block {lblk} of directory {ino}");
        let node = hashed && u32_(b, 0) == 0 && u16_(b, 4) == self.bs;
        if hashed && (lblk == 0 || node) {
            let at = if lblk == 0 { 0x20 } else { 8 };
            let (limit, count) = (u16_(b, at), u16_(b, at + 2));
            let tail = at + 8 * limit;
            let sum = crc(
                crc(crc(seed, &b[..at + 8 * count]), &b[tail..tail + 4]),
                &[0; 4],
            );
            self.same(what, sum, &[&b[tail + 4..tail + 8]]);
        } else {
            let at = self.bs - 12;
            self.same(what.clone(), 0xde00_000c, &[&b[at + 4..at + 8]]);
            self.same(what, crc(seed, &b[..at]), &[&b[at + 8..at + 12]]);
        }
    }
}
