//! Costs of requests, and their bounds.

use std::fs;

/// What code that is not optimised costs beside code that is, in time and in memory.
const SLOWER: u64 = if cfg!(debug_assertions) { 16 } else { 1 };
const LARGER: usize = if cfg!(debug_assertions) { 2 } else { 1 };

/// The cost of a request.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub status: u16,
    /// CPU time of this process.
    pub milliseconds: u64,
    /// Growth of this process at its peak.
    pub mib: usize,
    /// Bytes of the answer.
    pub answer: usize,
    /// Bytes of the audit's lines.
    pub audit: u64,
    /// The longest CPU time, in milliseconds, that the server's worker took while a small request beside it waited.
    pub held: u64,
}

/// The most that a request may cost.
pub struct Limits {
    milliseconds: u64,
    mib: usize,
    /// Bytes of an answer that shows no object.
    answer: usize,
    audit: u64,
    held: u64,
}

impl Limits {
    pub const BAR: Limits = Limits {
        milliseconds: 250 * SLOWER,
        mib: 60 * LARGER,
        answer: 64 << 10,
        audit: 80 << 10,
        held: 50 * SLOWER,
    };

    /// What is too much of it.
    pub fn broken_by(&self, cost: &Cost) -> Option<&'static str> {
        match cost {
            cost if cost.milliseconds > self.milliseconds => Some("CPU time"),
            cost if cost.mib > self.mib => Some("memory"),
            cost if cost.status >= 300 && cost.answer > self.answer => Some("answer"),
            cost if cost.audit > self.audit => Some("audit"),
            cost if cost.held > self.held => Some("worker held"),
            cost if cost.status == 504 => Some("time"),
            _ => None,
        }
    }
}

/// CPU time of this process, in milliseconds, to ten of them.
pub fn cpu() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    let mut fields = rest.split(' ').skip(11).map(|field| field.parse::<u64>().unwrap());
    (fields.next().unwrap() + fields.next().unwrap()) * 10
}

/// Forgets the peak of memory; where that is not allowed, those before count too.
pub fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// A figure of this process, in KiB: `VmRSS:`, `VmHWM:`.
pub fn memory(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// CPU time of a thread of this process so far, in nanoseconds.
pub fn cpu_of(thread: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap_or_default();
    let first = text.split(' ').next().and_then(|field| field.parse().ok());
    first.unwrap_or_default()
}

/// The thread of this name that was started last; names are cut to fifteen characters.
pub fn last_thread(name: &str) -> u32 {
    let numbers = fs::read_dir("/proc/self/task").unwrap().filter_map(|entry| {
        let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let found = fs::read_to_string(format!("/proc/self/task/{number}/comm")).ok()?;
        (found.trim_end() == &name[..name.len().min(15)]).then_some(number)
    });
    numbers.max().unwrap()
}
