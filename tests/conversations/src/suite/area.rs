//! Areas with a server of their own: the copy of their files that the server reads, and its flags.

use std::path::Path;

use crate::case::AreaStub;
use crate::fault::Fault;
use crate::stub::make_certificate;

/// Copies the files of an area and merges the lines of its file `FLAGS` with `base`. `{area}` is filled in, and where
/// the stub's certificate is made, `{stubPem}`: its authority, with `\n` for ends of lines.
pub fn flags_of(area: &Path, copy: &Path, base: &[String]) -> Result<Vec<String>, Fault> {
    let wrong = |error: std::io::Error| Fault::unusable(format!("{}: {error}", area.display()));
    std::fs::create_dir_all(copy).map_err(wrong)?;
    let mut filled = vec![("{area}", copy.display().to_string())];
    if area.join("STUB").exists() && AreaStub::read(area).map_err(wrong)?.certificate.is_none() {
        make_certificate(copy)?;
        let authority = std::fs::read_to_string(copy.join("stub-ca.crt")).map_err(wrong)?;
        filled.push(("{stubPem}", authority.replace('\n', "\\n")));
    }
    for entry in std::fs::read_dir(area).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let Some(name) = path.file_name().filter(|_| path.is_file()) else {
            continue;
        };
        let content = std::fs::read(&path).map_err(wrong)?;
        let content = match String::from_utf8(content) {
            Ok(text) => {
                let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
                filled.iter().fold(text, fill).into_bytes()
            }
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

    #[test]
    fn a_stub_without_a_certificate_gets_one() {
        let folder = tempfile::tempdir().unwrap();
        let (area, copy) = (folder.path().join("area"), folder.path().join("copy"));
        std::fs::create_dir(&area).unwrap();
        std::fs::write(area.join("FLAGS"), "").unwrap();
        std::fs::write(area.join("STUB"), r#"{"port": 1}"#).unwrap();
        std::fs::write(area.join("config"), "ca: \"{stubPem}\"").unwrap();
        flags_of(&area, &copy, &[]).unwrap();
        let config = std::fs::read_to_string(copy.join("config")).unwrap();
        assert!(
            config.starts_with("ca: \"-----BEGIN CERTIFICATE-----\\n") && config.lines().count() == 1,
            "{config}"
        );
        assert!(copy.join("stub.key").exists() && !area.join("stub.key").exists());
    }
}
