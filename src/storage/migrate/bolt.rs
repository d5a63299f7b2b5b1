//! The reader of bbolt files, the database under etcd: pages of a tree of keys, in which buckets hold further trees.
//!
//! All numbers are little-endian. A page begins with its number (8 bytes), flags (2), count of elements (2) and how
//! many pages it runs over (4). Branches have elements of offset (4), key length (4), page (8); leaves of flags (4),
//! offset (4), key length (4), value length (4); offsets count from the element.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const HEADER: usize = 16;
const ELEMENT: usize = 16;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const META: u16 = 0x04;
/// Flag of an element that is a bucket.
const BUCKET: u32 = 0x01;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// Bytes of a meta page's body that its checksum covers.
const META_BODY: usize = 56;
/// Page sizes that a file may have.
const PAGE_SIZES: [usize; 5] = [4096, 8192, 16384, 32768, 65536];
/// Deeper trees don't occur: this is a file that leads in circles.
const DEPTH: usize = 32;
/// A page with all that it runs over has at most so many bytes.
const LONGEST: usize = 1 << 30;

/// An open file. Errors of the kind `InvalidData` say what is wrong with it.
pub(super) struct Bolt {
    file: File,
    page_size: usize,
    root: u64,
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Bytes of a page.
struct Page(Vec<u8>);

impl Page {
    fn bytes(&self, at: usize, length: usize) -> io::Result<&[u8]> {
        let end = at.checked_add(length);
        let found = end.and_then(|end| self.0.get(at..end));
        found.ok_or_else(|| damaged("a page points beyond its end"))
    }

    fn u16(&self, at: usize) -> io::Result<u16> {
        Ok(u16::from_le_bytes(self.array(at)?))
    }

    fn u32(&self, at: usize) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.array(at)?))
    }

    fn u64(&self, at: usize) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array(at)?))
    }

    fn array<const N: usize>(&self, at: usize) -> io::Result<[u8; N]> {
        let bytes = self.bytes(at, N)?;
        bytes.try_into().map_err(|_| damaged("a page points beyond its end"))
    }
}

/// What a leaf holds under a key.
enum Value<'a> {
    Bytes(&'a [u8]),
    Bucket(&'a [u8]),
}

/// What a caller does with keys and values.
pub(super) type EachValue<'e> = &'e mut dyn FnMut(&[u8], &[u8]) -> io::Result<()>;

type Each<'e> = &'e mut dyn FnMut(&[u8], Value<'_>) -> io::Result<()>;

impl Bolt {
    pub fn open(file: File) -> io::Result<Bolt> {
        let mut found: Option<(u64, usize, u64)> = None;
        let places = PAGE_SIZES.iter().copied();
        for at in std::iter::once(0).chain(places) {
            let Ok((transaction, page_size, root)) = meta(&file, at) else {
                continue;
            };
            if (at == 0 || at == page_size) && found.is_none_or(|(newest, ..)| transaction > newest) {
                found = Some((transaction, page_size, root));
            }
        }
        let (_, page_size, root) = found.ok_or_else(|| damaged("not a database of etcd"))?;
        Ok(Bolt { file, page_size, root })
    }

    /// Calls `each` with the keys and values of a bucket, in the order of keys. False: there is no such bucket.
    pub fn bucket(&self, name: &str, each: EachValue<'_>) -> io::Result<bool> {
        let mut found = None;
        self.walk(self.root, 0, &mut |key, value| {
            if let Value::Bucket(bucket) = value
                && key == name.as_bytes()
            {
                found = Some(bucket.to_vec());
            }
            Ok(())
        })?;
        let Some(bucket) = found else { return Ok(false) };
        let mut values = |key: &[u8], value: Value<'_>| match value {
            Value::Bytes(value) => each(key, value),
            Value::Bucket(_) => Ok(()),
        };
        let bucket = Page(bucket);
        match bucket.u64(0)? {
            // A small bucket stands in its element, behind its head.
            0 => self.elements(
                &Page(bucket.bytes(HEADER, bucket.0.len() - HEADER)?.to_vec()),
                0,
                &mut values,
            )?,
            root => self.walk(root, 0, &mut values)?,
        }
        Ok(true)
    }

    fn page(&self, number: u64) -> io::Result<Page> {
        let at = number
            .checked_mul(self.page_size as u64)
            .ok_or_else(|| damaged("a page beyond the file"))?;
        let mut page = Page(vec![0; self.page_size]);
        self.file.read_exact_at(&mut page.0, at)?;
        if page.u64(0)? != number {
            return Err(damaged(format!("page {number} is not what it should be")));
        }
        let length = (page.u32(12)? as usize + 1).saturating_mul(self.page_size);
        if length > LONGEST {
            return Err(damaged(format!("page {number} is too long")));
        }
        if length > self.page_size {
            page.0.resize(length, 0);
            self.file.read_exact_at(&mut page.0, at)?;
        }
        Ok(page)
    }

    fn walk(&self, number: u64, depth: usize, each: Each<'_>) -> io::Result<()> {
        if depth > DEPTH {
            return Err(damaged("the tree leads in circles"));
        }
        self.elements(&self.page(number)?, depth, each)
    }

    fn elements(&self, page: &Page, depth: usize, each: Each<'_>) -> io::Result<()> {
        let (flags, count) = (page.u16(8)?, usize::from(page.u16(10)?));
        for n in 0..count {
            let at = HEADER + n * ELEMENT;
            if flags & BRANCH != 0 {
                self.walk(page.u64(at + 8)?, depth + 1, each)?;
            } else if flags & LEAF != 0 {
                let (flags, offset) = (page.u32(at)?, page.u32(at + 4)? as usize);
                let (key, value) = (page.u32(at + 8)? as usize, page.u32(at + 12)? as usize);
                let (start, key) = (at + offset + key, page.bytes(at + offset, key)?);
                let value = page.bytes(start, value)?;
                match flags & BUCKET {
                    0 => each(key, Value::Bytes(value))?,
                    _ => each(key, Value::Bucket(value))?,
                }
            } else {
                return Err(damaged("a page of the tree is of another kind"));
            }
        }
        Ok(())
    }
}

/// Transaction, page size and root of the meta page at this place.
fn meta(file: &File, at: usize) -> io::Result<(u64, usize, u64)> {
    let mut page = Page(vec![0; HEADER + META_BODY + 8]);
    file.read_exact_at(&mut page.0, at as u64)?;
    let body = |offset| HEADER + offset;
    let wrong = page.u16(8)? & META == 0 || page.u32(body(0))? != MAGIC || page.u32(body(4))? != VERSION;
    if wrong || fnv(page.bytes(HEADER, META_BODY)?) != page.u64(body(META_BODY))? {
        return Err(damaged("not a meta page"));
    }
    let page_size = page.u32(body(8))? as usize;
    if !PAGE_SIZES.contains(&page_size) {
        return Err(damaged(format!("pages of {page_size} bytes")));
    }
    Ok((page.u64(body(48))?, page_size, page.u64(body(16))?))
}

/// FNV-1a of 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
