//! A log file that is put aside when it has become large: `audit.log` is renamed to `audit-<time>.log` beside it, and
//! of those only some are kept.
//!
//! Lines are appended by single writes and files change their name whole, so whenever the process dies, each line is in
//! one file.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use flate2::Compression;
use flate2::write::GzEncoder;
use keelson_machinery::env::Clock;
use keelson_machinery::time::Time;

/// Nobody but the server may read who did what.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
const COMPRESSED: &str = ".gz";
/// What a file is called while it is being compressed.
const PARTIAL: &str = ".partial";
const SECONDS_OF_A_DAY: i64 = 24 * 60 * 60;

/// When a file is put aside, and which of those are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes of a file.
    pub max_bytes: u64,
    /// Days that old files are kept; 0: no matter how old they are.
    pub max_days: u32,
    /// Old files that are kept; 0: all.
    pub max_files: usize,
    /// Old files are compressed.
    pub compress: bool,
}

/// The file that is written.
pub struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    clock: Arc<dyn Clock>,
    file: File,
    bytes: u64,
    /// Cleans up old files.
    cleaning: Option<JoinHandle<()>>,
}

impl LogFile {
    /// Opens the file to append to it; it and its folder are made if need be.
    pub fn open(path: PathBuf, rotation: Rotation, clock: Arc<dyn Clock>) -> io::Result<LogFile> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
        }
        check(&path)?;
        let (file, bytes) = open(&path)?;
        let mut log = LogFile {
            path,
            rotation,
            clock,
            file,
            bytes,
            cleaning: None,
        };
        log.clean();
        Ok(log)
    }

    /// Appends whole lines, to as many files as they need.
    pub fn write(&mut self, mut lines: &[u8]) -> io::Result<()> {
        while !lines.is_empty() {
            let fitting = fitting(lines, self.rotation.max_bytes.saturating_sub(self.bytes));
            if fitting == 0 && self.bytes > 0 {
                self.rotate()?;
                continue;
            }
            // A line that no file has room for has one of its own; who makes lines sees to it that there is none.
            let end = fitting.max(line_len(lines));
            let (now, later) = lines.split_at(end);
            self.append(now)?;
            self.bytes = self.bytes.saturating_add(length(now));
            lines = later;
        }
        Ok(())
    }

    /// Whole lines or nothing, as far as the disk lets it: half of one would spoil the next.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let appended = self.file.write_all(lines);
        if appended.is_err() {
            let before = self
                .file
                .metadata()
                .map_or(self.bytes, |found| found.len().min(self.bytes));
            self.file.set_len(before)?;
        }
        appended
    }

    fn rotate(&mut self) -> io::Result<()> {
        let aside = self.name_aside();
        match fs::rename(&self.path, aside) {
            // Somebody else has taken it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        (self.file, self.bytes) = open(&self.path)?;
        self.clean();
        Ok(())
    }

    /// A name that no old file has.
    fn name_aside(&self) -> PathBuf {
        let now = self.clock.now();
        let names = Names::of(&self.path);
        (0..)
            .map(|millis| self.path.with_file_name(names.aside(later(now, millis))))
            .find(|path| !path.exists() && !with_suffix(path, COMPRESSED).exists())
            .unwrap_or_else(|| self.path.with_file_name(names.aside(now)))
    }

    /// Begins to clean up old files, unless that is going on.
    fn clean(&mut self) {
        if self.cleaning.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let (path, rotation, now) = (self.path.clone(), self.rotation, self.clock.now());
        let cleaning = move || {
            if let Err(error) = clean(&path, rotation, now) {
                tracing::warn!(%error, "cleaning up old audit logs");
            }
        };
        let thread = std::thread::Builder::new().name("keelson-clean".to_owned());
        self.cleaning = thread.spawn(cleaning).ok();
    }
}

fn length(lines: &[u8]) -> u64 {
    u64::try_from(lines.len()).unwrap_or(u64::MAX)
}

/// Bytes of the first line.
fn line_len(lines: &[u8]) -> usize {
    lines
        .iter()
        .position(|b| *b == b'\n')
        .map_or(lines.len(), |end| end + 1)
}

/// Bytes of those first lines that take no more than `room`.
fn fitting(lines: &[u8], room: u64) -> usize {
    if length(lines) <= room {
        return lines.len();
    }
    // Less than the length of something in memory.
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let whole = lines.get(..room).unwrap_or(lines);
    whole.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1)
}

/// A file that is no file would be renamed, or never end.
fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::other("is a directory")),
        Ok(found) if !found.is_file() => Err(io::Error::other("is no regular file (- stands for standard output)")),
        _ => Ok(()),
    }
}

/// The file and its size. A line that a crash cut is ended, so that the next one stands alone.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .append(true)
        .create(true)
        .mode(FILE_MODE)
        .open(path)?;
    let mut bytes = file.seek(SeekFrom::End(0))?;
    let mut last = [0];
    if bytes > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            bytes += 1;
        }
    }
    Ok((file, bytes))
}

/// How old files are called: what stands before and after the time.
struct Names {
    before: String,
    after: String,
}

impl Names {
    fn of(path: &Path) -> Names {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let extension = path
            .extension()
            .map(|extension| format!(".{}", extension.to_string_lossy()));
        Names {
            before: format!("{}-", text(path.file_stem())),
            after: extension.unwrap_or_default(),
        }
    }

    /// `audit-2006-01-02T15-04-05.000.log`
    fn aside(&self, time: Time) -> String {
        let seconds = time.truncate_to_seconds().to_string();
        let seconds = seconds.trim_end_matches('Z').replace(':', "-");
        let millis = time.subsec_nanos() / 1_000_000;
        format!("{}{seconds}.{millis:03}{}", self.before, self.after)
    }

    /// When a file of this name was put aside; `None`: it is none.
    fn time_of(&self, name: &str) -> Option<Time> {
        let name = name.strip_suffix(COMPRESSED).unwrap_or(name);
        let time = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let (date, clock) = time.split_once('T')?;
        let (clock, millis) = clock.split_once('.').filter(|(_, millis)| millis.len() == 3)?;
        let seconds = Time::parse(&format!("{date}T{}Z", clock.replace('-', ":"))).ok()?;
        Some(later(seconds, millis.parse().ok()?))
    }
}

fn later(time: Time, millis: u32) -> Time {
    let millis = u64::from(time.subsec_nanos() / 1_000_000) + u64::from(millis);
    let seconds = i64::try_from(millis / 1000).unwrap_or(i64::MAX);
    let nanos = u32::try_from(millis % 1000).unwrap_or_default() * 1_000_000;
    Time::from_unix(time.unix_seconds().saturating_add(seconds), nanos)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes old files that are too many or too old, and compresses the rest if that is wanted.
fn clean(path: &Path, rotation: Rotation, now: Time) -> io::Result<()> {
    let names = Names::of(path);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut old: Vec<(Time, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Of a compression that a crash ended; its source is still there.
        if name
            .strip_suffix(PARTIAL)
            .and_then(|name| names.time_of(name))
            .is_some()
        {
            fs::remove_file(entry.path())?;
        } else if let Some(time) = names.time_of(&name) {
            old.push((time, entry.path()));
        }
    }
    old.sort_by(|a, b| b.cmp(a));
    let oldest = match rotation.max_days {
        0 => i64::MIN,
        days => now.unix_seconds().saturating_sub(i64::from(days) * SECONDS_OF_A_DAY),
    };
    for (n, (time, path)) in old.into_iter().enumerate() {
        let too_many = rotation.max_files > 0 && n >= rotation.max_files;
        if too_many || time.unix_seconds() < oldest {
            fs::remove_file(path)?;
        } else if rotation.compress && path.extension() != Some(OsStr::new("gz")) {
            compress(&path)?;
        }
    }
    Ok(())
}

/// Puts a compressed file in the place of one: first it is whole, then it has its name, then the other one goes.
fn compress(path: &Path) -> io::Result<()> {
    let target = with_suffix(path, COMPRESSED);
    let partial = with_suffix(&target, PARTIAL);
    let mut options = OpenOptions::new();
    let out = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(&partial)?;
    let mut encoder = GzEncoder::new(out, Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::rename(partial, target)?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicU32, Ordering};

    use flate2::read::GzDecoder;

    use super::*;

    /// Goes on by an hour with every look.
    #[derive(Default)]
    struct Hours(AtomicU32);

    impl Clock for Hours {
        fn now(&self) -> Time {
            let hours = self.0.fetch_add(1, Ordering::Relaxed);
            Time::from_unix(1_700_000_000 + 3600 * i64::from(hours), 5_000_000)
        }
    }

    const KEEP_ALL: Rotation = Rotation {
        max_bytes: 10,
        max_days: 0,
        max_files: 0,
        compress: false,
    };

    fn log(path: &Path, rotation: Rotation) -> LogFile {
        LogFile::open(path.to_owned(), rotation, Arc::new(Hours::default())).unwrap()
    }

    fn rest(mut log: LogFile) {
        // The last cleaning may have begun before the last file was put aside.
        for _ in 0..2 {
            if let Some(thread) = log.cleaning.take() {
                thread.join().unwrap();
            }
            log.clean();
        }
        log.cleaning.take().unwrap().join().unwrap();
    }

    /// Names and contents of the files in a folder, oldest first, the current one last.
    fn files(folder: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<(String, String)> = entries
            .map(|path| {
                let bytes = fs::read(&path).unwrap();
                let mut text = String::new();
                match path.extension() == Some(OsStr::new("gz")) {
                    true => drop(GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap()),
                    false => text = String::from_utf8(bytes).unwrap(),
                }
                (path.file_name().unwrap().to_string_lossy().into_owned(), text)
            })
            .collect();
        found.sort();
        found
    }

    #[test]
    fn large_files_are_put_aside_and_no_line_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/audit.log");
        let mut file = log(&path, KEEP_ALL);
        for line in [
            "one\n",
            "two\n",
            "three\n",
            "a line that is longer than a file\n",
            "four\n",
        ] {
            file.write(line.as_bytes()).unwrap();
        }
        rest(file);
        let found = files(path.parent().unwrap());
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            ["one\ntwo\n", "three\n", "a line that is longer than a file\n", "four\n"]
        );
        assert_eq!(found[3].0, "audit.log");
        assert!(found[0].0.starts_with("audit-2023-11-1"), "{}", found[0].0);
        assert!(found[0].0.ends_with(".005.log"), "{}", found[0].0);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn lines_that_come_together_are_spread_over_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = log(&folder.path().join("audit.log"), KEEP_ALL);
        file.write(b"one\n").unwrap();
        file.write(b"two\nthree\nfour\nfive\n").unwrap();
        rest(file);
        let found = files(folder.path());
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["one\ntwo\n", "three\n", "four\nfive\n"]);
    }

    #[test]
    fn old_files_go_by_number_and_age() {
        for (rotation, kept) in [
            (
                Rotation {
                    max_files: 2,
                    ..KEEP_ALL
                },
                2,
            ),
            (
                Rotation {
                    max_days: 1,
                    ..KEEP_ALL
                },
                12,
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut file = log(&folder.path().join("audit.log"), rotation);
            for n in 0..60 {
                file.write(format!("line {n:04}\n").as_bytes()).unwrap();
                // Each takes its time, so that no two clean at once.
                if let Some(thread) = file.cleaning.take() {
                    thread.join().unwrap();
                }
            }
            rest(file);
            let found = files(folder.path());
            assert_eq!(found.last().unwrap().1, "line 0059\n");
            let old = found.len() - 1;
            assert!(old.abs_diff(kept) <= 1, "{old} of {kept}");
        }
    }

    #[test]
    fn old_files_are_compressed_whole() {
        let folder = tempfile::tempdir().unwrap();
        let rotation = Rotation {
            compress: true,
            ..KEEP_ALL
        };
        fs::write(
            folder.path().join("audit-2020-01-01T00-00-00.000.log.gz.partial"),
            "cut",
        )
        .unwrap();
        fs::write(folder.path().join("audit-of-last-year.log"), "not ours").unwrap();
        let mut file = log(&folder.path().join("audit.log"), rotation);
        for line in ["first line\n", "second line\n", "third line\n"] {
            file.write(line.as_bytes()).unwrap();
        }
        rest(file);
        let found = files(folder.path());
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["first line\n", "second line\n", "not ours", "third line\n"]);
        assert!(found[0].0.ends_with(".log.gz") && found[1].0.ends_with(".log.gz"));
    }

    #[test]
    fn a_line_that_was_cut_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, "whole\nhal").unwrap();
        let mut file = log(
            &path,
            Rotation {
                max_bytes: 100,
                ..KEEP_ALL
            },
        );
        file.write(b"next\n").unwrap();
        rest(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nhal\nnext\n");
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let why = |path: &Path| {
            let opened = LogFile::open(path.to_owned(), KEEP_ALL, Arc::new(Hours::default()));
            opened.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(why(folder.path()), "is a directory");
        assert!(why(Path::new("/dev/null")).starts_with("is no regular file"));
    }
}
