//! Pending lists: the cases that are known not to pass yet, one a line, with what each waits for behind `#`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A pending list. It only shrinks.
#[derive(Debug)]
pub struct Pending {
    pub file: PathBuf,
    text: String,
    cases: BTreeSet<String>,
}

impl Pending {
    pub fn read(file: &Path) -> std::io::Result<Pending> {
        Ok(Pending::of(file, std::fs::read_to_string(file)?))
    }

    /// From the text of a list.
    pub fn of(file: &Path, text: String) -> Pending {
        let cases = text.lines().map(case).filter(|case| !case.is_empty());
        Pending {
            file: file.to_path_buf(),
            cases: cases.map(str::to_owned).collect(),
            text,
        }
    }

    pub fn lists(&self, case: &str) -> bool {
        self.cases.contains(case)
    }

    /// The listed cases that are none of these.
    pub fn unknown<'a>(&'a self, all: &BTreeSet<&str>) -> BTreeSet<&'a str> {
        let listed = self.cases.iter().map(String::as_str);
        listed.filter(|case| !all.contains(case)).collect()
    }

    /// The list without the cases that no longer fail, and with those that do and are not on it.
    pub fn updated(&self, gone: &BTreeSet<&str>, new: &BTreeSet<&str>) -> String {
        let kept = self.text.lines().filter(|line| !gone.contains(case(line)));
        let new = new.iter().filter(|case| !self.lists(case)).copied();
        let lines: Vec<&str> = kept.chain(new).collect();
        lines.join("\n") + "\n"
    }
}

/// The case that a line names; empty where it names none.
fn case(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_loses_what_passes_and_gains_what_fails() {
        let text = "# Why.\na/x.json # reason\nb/y.json\n".to_owned();
        let list = Pending::of(Path::new("list"), text);
        assert!(list.lists("a/x.json") && list.lists("b/y.json") && !list.lists("# Why."));
        assert_eq!(
            list.unknown(&BTreeSet::from(["b/y.json"])),
            BTreeSet::from(["a/x.json"])
        );
        let updated = list.updated(&BTreeSet::from(["b/y.json"]), &BTreeSet::from(["a/x.json", "c/z.json"]));
        assert_eq!(updated, "# Why.\na/x.json # reason\nc/z.json\n");
    }
}
