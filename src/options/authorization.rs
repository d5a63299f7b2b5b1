//! Who may do what.

use std::path::PathBuf;
use std::sync::Arc;

use keelson_server::authz::Abac;

use super::OptionError;

pub(super) const SECTION: &str = "Authorization flags";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Authorization {
    /// The authorizers, asked in this order: AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC or Node. Members of
    /// system:masters may do everything under any of them but AlwaysDeny alone. Default: RBAC.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub authorization_mode: Option<Vec<String>>,

    /// A file with the policies of ABAC, one JSON object a line.
    #[arg(long, value_name = "string")]
    pub authorization_policy_file: Option<PathBuf>,
}

/// One authorizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    AlwaysAllow,
    AlwaysDeny,
    Abac,
    Webhook,
    Rbac,
    Node,
}

impl Mode {
    const NAMES: [(&'static str, Mode); 6] = [
        ("AlwaysAllow", Mode::AlwaysAllow),
        ("AlwaysDeny", Mode::AlwaysDeny),
        ("ABAC", Mode::Abac),
        ("Webhook", Mode::Webhook),
        ("RBAC", Mode::Rbac),
        ("Node", Mode::Node),
    ];
}

impl Authorization {
    /// The modes in order. Without the flag [`Mode::Rbac`]; kube-apiserver's AlwaysAllow would open a server that
    /// was started without a thought.
    pub(super) fn modes(&self) -> Result<Vec<Mode>, OptionError> {
        const FLAG: &str = "--authorization-mode";
        let Some(names) = &self.authorization_mode else {
            return Ok(vec![Mode::Rbac]);
        };
        let mut modes = Vec::new();
        for name in names {
            let found = Mode::NAMES.iter().find(|(known, _)| known == name);
            let (_, mode) = found
                .ok_or_else(|| OptionError::flag(FLAG, format!("authorization-mode {name:?} is not a valid mode")))?;
            if modes.contains(mode) {
                return Err(OptionError::flag(
                    FLAG,
                    format!("authorization-mode {name:?} has mode specified more than once"),
                ));
            }
            modes.push(*mode);
        }
        match modes.is_empty() {
            true => Err(OptionError::flag(
                FLAG,
                "at least one authorization-mode must be passed",
            )),
            false => Ok(modes),
        }
    }
}

impl Authorization {
    /// The policies of ABAC; `None` without that mode, which alone may have the file.
    pub(super) fn policies(&self, modes: &[Mode]) -> Result<Option<Arc<Abac>>, OptionError> {
        const FLAG: &str = "--authorization-policy-file";
        let Some(path) = &self.authorization_policy_file else {
            return match modes.contains(&Mode::Abac) {
                true => Err(OptionError::flag(
                    FLAG,
                    "authorization-mode ABAC's authorization policy file not passed",
                )),
                false => Ok(None),
            };
        };
        if !modes.contains(&Mode::Abac) {
            let text = "cannot specify --authorization-policy-file without mode ABAC";
            return Err(OptionError::flag(FLAG, text));
        }
        let text = std::fs::read_to_string(path).map_err(|error| OptionError::file(FLAG, path, error))?;
        let abac = Abac::parse(&text).map_err(|why| OptionError::file(FLAG, path, why))?;
        Ok(Some(Arc::new(abac)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(names: &[&str]) -> Result<Vec<Mode>, String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Authorization {
            authorization_mode: Some(names),
            ..Authorization::default()
        }
        .modes()
        .map_err(|error| error.to_string())
    }

    #[test]
    fn modes_are_checked() {
        assert_eq!(modes(&["Node", "RBAC"]).unwrap(), [Mode::Node, Mode::Rbac]);
        assert_eq!(Authorization::default().modes().unwrap(), [Mode::Rbac]);
        assert!(
            modes(&["rbac"])
                .unwrap_err()
                .ends_with(r#"authorization-mode "rbac" is not a valid mode"#)
        );
        assert!(modes(&["Node", "Node"]).unwrap_err().contains("more than once"));
    }

    #[test]
    fn policies_and_their_mode_need_each_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let policies = |path: Option<PathBuf>, mode| {
            let flags = Authorization {
                authorization_policy_file: path,
                ..Authorization::default()
            };
            flags
                .policies(&[mode])
                .map(|found| found.is_some())
                .map_err(|error| error.to_string())
        };
        let path = || Some(file.path().to_owned());
        assert_eq!(policies(path(), Mode::Abac), Ok(true));
        assert_eq!(policies(None, Mode::Rbac), Ok(false));
        assert!(
            policies(None, Mode::Abac)
                .unwrap_err()
                .contains("policy file not passed")
        );
        assert!(policies(path(), Mode::Rbac).unwrap_err().contains("without mode ABAC"));
        std::fs::write(file.path(), "{").unwrap();
        assert!(policies(path(), Mode::Abac).unwrap_err().contains("line 1: "));
    }
}
