//! Who may do what.

use super::OptionError;

pub(super) const SECTION: &str = "Authorization flags";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Authorization {
    /// The authorizers, asked in this order: AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC or Node. Members of
    /// system:masters may do everything under any of them but AlwaysDeny alone. Default: RBAC.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub authorization_mode: Option<Vec<String>>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(names: &[&str]) -> Result<Vec<Mode>, String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Authorization {
            authorization_mode: Some(names),
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
}
