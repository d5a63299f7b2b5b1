//! The file that configures admission plug-ins: a section for each, in the file itself or in one that it names.

use std::io::Read;
use std::path::{Path, PathBuf};

use keelson_base::configuration::{Document, MAX_FILE_BYTES};
use keelson_machinery::yaml;
use serde_json::Value;

const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
/// Plug-ins whose configuration was the whole file before there were sections, and a field of each.
const WHOLE: [(&str, &str); 2] = [
    ("ImagePolicyWebhook", "imagePolicy"),
    ("PodNodeSelector", "podNodeSelectorPluginConfig"),
];

/// What the file says of each plug-in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configurations {
    /// The file.
    pub path: PathBuf,
    sections: Vec<(String, Section)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Section {
    /// JSON.
    Text(String),
    /// In a file of its own.
    File(PathBuf),
    Nothing,
}

impl Configurations {
    /// # Errors
    /// There is no such file, or it has mistakes.
    pub fn read(path: &Path) -> Result<Configurations, String> {
        let text = read_file(path)?;
        let sections = parse(&text, path).or_else(|why| of_old(&text).ok_or(why))?;
        Ok(Configurations {
            path: path.to_owned(),
            sections,
        })
    }

    /// The section of a plug-in, as JSON; `None`: there is none.
    ///
    /// # Errors
    /// The file that it names can't be read.
    pub fn of(&self, plugin: &str) -> Result<Option<String>, String> {
        let section = self.sections.iter().find(|(name, _)| name == plugin);
        match section.map(|(_, section)| section) {
            None | Some(Section::Nothing) => Ok(None),
            Some(Section::Text(json)) => Ok(Some(json.clone())),
            Some(Section::File(path)) => {
                let text = read_file(path).map_err(|why| format!("{}: {why}", path.display()))?;
                let json = yaml::to_json(&text).map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(Some(String::from_utf8_lossy(&json).into_owned()))
            }
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text);
    match read.map_err(|error| error.to_string())? as u64 {
        bytes if bytes > MAX_FILE_BYTES => Err(format!("it is larger than {MAX_FILE_BYTES} bytes")),
        _ => Ok(text),
    }
}

fn parse(text: &[u8], path: &Path) -> Result<Vec<(String, Section)>, String> {
    let document = Document::parse(text, "AdmissionConfiguration", &VERSIONS)?;
    let root = document.root("AdmissionConfiguration")?.known(&["plugins"]);
    let mut sections = Vec::new();
    for fields in root.objects("plugins", "AdmissionPluginConfiguration")? {
        let fields = fields.known(&["name", "path", "configuration"]);
        let section = match (fields.any("configuration"), fields.text("path")?) {
            (Some(value), _) => Section::Text(value.to_string()),
            (None, "") => Section::Nothing,
            (None, other) => Section::File(path.parent().unwrap_or(Path::new("")).join(other)),
        };
        sections.push((fields.text("name")?.to_owned(), section));
    }
    document.finish()?;
    Ok(sections)
}

/// `None`: it is no such file either.
fn of_old(text: &[u8]) -> Option<Vec<(String, Section)>> {
    let json = yaml::to_json(text).ok()?;
    let value: Value = serde_json::from_slice(&json).ok()?;
    let is_old = value.get("kind").is_none() && WHOLE.iter().any(|(_, field)| value.get(*field).is_some());
    let whole = |name: &str| (name.to_owned(), Section::Text(value.to_string()));
    is_old.then(|| WHOLE.iter().map(|(name, _)| whole(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_stand_in_the_file_or_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admission.yaml");
        std::fs::write(folder.path().join("other.yaml"), "a: 1\n").unwrap();
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Configurations::read(&path)
        };
        let kind = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
        let all = read(&format!(
            "{kind}plugins:\n- name: A\n  configuration: {{b: [1]}}\n- name: B\n  path: other.yaml\n- name: C\n- name: D\n  \
             path: absent.yaml\n"
        ));
        let all = all.ok().unwrap();
        assert_eq!(all.of("A"), Ok(Some("{\"b\":[1]}".to_owned())));
        assert_eq!(all.of("B"), Ok(Some("{\"a\":1}".to_owned())));
        assert_eq!((all.of("C"), all.of("X")), (Ok(None), Ok(None)));
        assert!(all.of("D").is_err_and(|why| why.contains("absent.yaml")));
        let old = read("imagePolicy: {kubeConfigFile: x}\n").ok().unwrap();
        assert_eq!(
            old.of("ImagePolicyWebhook"),
            Ok(Some("{\"imagePolicy\":{\"kubeConfigFile\":\"x\"}}".to_owned()))
        );
        for (text, expected) in [
            (
                format!("{kind}plugin: []\n"),
                "strict decoding error: unknown field \"plugin\"",
            ),
            ("a: b\n".to_owned(), "Object 'Kind' is missing in 'a: b\n'"),
            (
                "apiVersion: v1\nkind: AdmissionConfiguration\n".to_owned(),
                "no kind \"AdmissionConfiguration\" is registered for version \"v1\"",
            ),
        ] {
            assert_eq!(read(&text).err().as_deref(), Some(expected));
        }
        assert!(Configurations::read(&folder.path().join("x")).is_err());
    }
}
