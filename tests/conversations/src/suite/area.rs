//! Areas with a server of their own: the copy of their files that the server reads, and its flags.

use std::path::Path;

use crate::fault::Fault;

/// Copies the files of an area, with `{area}` filled in, and merges the lines of its file `FLAGS` with `base`.
pub fn flags_of(area: &Path, copy: &Path, base: &[String]) -> Result<Vec<String>, Fault> {
    let wrong = |error: std::io::Error| Fault::unusable(format!("{}: {error}", area.display()));
    std::fs::create_dir_all(copy).map_err(wrong)?;
    let place = copy.display().to_string();
    for entry in std::fs::read_dir(area).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let Some(name) = path.file_name().filter(|_| path.is_file()) else {
            continue;
        };
        let content = std::fs::read(&path).map_err(wrong)?;
        let content = match String::from_utf8(content) {
            Ok(text) => text.replace("{area}", &place).into_bytes(),
            Err(binary) => binary.into_bytes(),
        };
        std::fs::write(copy.join(name), content).map_err(wrong)?;
    }
    let lines = std::fs::read_to_string(copy.join("FLAGS")).map_err(wrong)?;
    Ok(merged_flags(base, &lines))
}

/// `--name=value` takes the place of all flags of that name, `!--name` takes them away.
pub fn merged_flags(base: &[String], lines: &str) -> Vec<String> {
    let lines = lines.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let name = |flag: &str| flag.trim_start_matches('!').split('=').next().map(str::to_owned);
    let replaced: Vec<_> = lines.iter().map(|line| name(line)).collect();
    let kept = base.iter().filter(|flag| !replaced.contains(&name(flag))).cloned();
    let added = lines
        .iter()
        .filter(|line| !line.starts_with('!'))
        .map(|line| (*line).to_owned());
    kept.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_replaced_added_and_taken_away() {
        let base = ["--a=1", "--b=2", "--c"].map(String::from);
        let merged = merged_flags(&base, "# why\n--a=3\n--a=4\n!--b\n\n--d\n");
        assert_eq!(merged, ["--c", "--a=3", "--a=4", "--d"]);
    }

    #[test]
    fn files_name_the_place_of_their_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (area, copy) = (folder.path().join("area"), folder.path().join("copy"));
        std::fs::create_dir(&area).unwrap();
        std::fs::write(area.join("FLAGS"), "--file={area}/x\n").unwrap();
        std::fs::write(area.join("binary"), b"\xff{area}").unwrap();
        let flags = flags_of(&area, &copy, &[]).unwrap();
        assert_eq!(flags, [format!("--file={}/x", copy.display())]);
        assert_eq!(std::fs::read(copy.join("binary")).unwrap(), b"\xff{area}");
    }
}
