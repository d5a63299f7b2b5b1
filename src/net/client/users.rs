//! The users of a kubeconfig file, found by the servers that they are for: the file names each after a server, or after
//! a domain (`*.example.com`), or `*`.

use std::path::Path;

use super::kubeconfig::{File, Files, User, read};
use super::{Credentials, KubeconfigError};
use crate::tls::certs::CertifiedKeyPem;

/// The port that a name without one stands for.
const HTTPS: u16 = 443;

/// Who a client is to a server.
#[derive(Clone, Default)]
pub(super) struct Identity {
    /// Shown where a server asks for one.
    pub certificate: Option<CertifiedKeyPem>,
    /// Sent with each request.
    pub credentials: Credentials,
}

/// Who this server is to others, by their names. By default nobody to all of them.
#[derive(Clone, Default)]
pub struct Users {
    by_name: Vec<(String, Identity)>,
    /// That of the current context.
    current: Identity,
}

impl Users {
    /// Reads a file, and all certificates and keys that it names.
    ///
    /// # Errors
    /// A file that can't be read; a form of credentials that this server does not have.
    pub fn read(path: &Path) -> Result<Users, KubeconfigError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Users::parse(read(path)?.as_bytes(), folder)
    }

    fn parse(text: &[u8], folder: &Path) -> Result<Users, KubeconfigError> {
        let file = File::parse(text)?;
        let files = Files { folder };
        let identity = |user: &User| {
            Ok::<_, KubeconfigError>(Identity {
                certificate: files.certificate(user)?,
                credentials: files.credentials(user)?,
            })
        };
        let mut by_name = Vec::with_capacity(file.users.len());
        for user in &file.users {
            by_name.push((user.name.clone(), identity(&user.entry.user)?));
        }
        let mut contexts = file.contexts.iter();
        let context = contexts.find(|context| context.name == file.current_context);
        let users = Users {
            by_name,
            current: Identity::default(),
        };
        let current = context.and_then(|context| users.named(&context.entry.context.user));
        let current = current.cloned().unwrap_or_default();
        Ok(Users { current, ..users })
    }

    fn named(&self, name: &str) -> Option<&Identity> {
        let found = self.by_name.iter().find(|(known, _)| known == name);
        found.map(|(_, identity)| identity)
    }

    /// The user of this name, or of the smallest domain that the name is in.
    fn nearest(&self, name: &str) -> Option<&Identity> {
        let domains = name.match_indices('.').map(|(at, _)| format!("*{}", &name[at..]));
        std::iter::once(name.to_owned())
            .chain(domains)
            .find_map(|name| self.named(&name))
    }

    /// Who this server is to the one at a host and port. The default port need not be named in the file.
    pub(super) fn of(&self, host: &str, port: u16) -> &Identity {
        let authority = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let found = self.nearest(&authority);
        let found = found.or_else(|| self.nearest(host).filter(|_| port == HTTPS));
        found.or_else(|| self.named("*")).unwrap_or(&self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Secret;
    use super::*;

    fn users(names: &[&str], context: &str) -> Users {
        let mut text = format!(
            "current-context: {context}\ncontexts: [{{name: c, context: {{cluster: k, user: last}}}}]\nusers:\n"
        );
        for name in names {
            text.push_str(&format!("- {{name: '{name}', user: {{token: '{name}'}}}}\n"));
        }
        Users::parse(text.as_bytes(), Path::new("/nowhere")).unwrap()
    }

    #[test]
    fn users_are_named_after_servers_and_domains() {
        let all = ["a.b.svc:8443", "a.b.svc", "*.svc", "*.b.svc:444", "*", "last"];
        for (names, host, port, want) in [
            (&all[..], "a.b.svc", 8443, "a.b.svc:8443"),
            (&all, "a.b.svc", 443, "a.b.svc"),
            (&all, "a.b.svc", 444, "*.b.svc:444"),
            (&all, "x.b.svc", 443, "*.svc"),
            (&all, "x.b.svc", 445, "*"),
            (&all[5..], "x.b.svc", 443, "last"),
            (&all, "svc", 443, "*"),
        ] {
            let users = users(names, "c");
            let want = Credentials::Bearer(Secret::new(want));
            assert_eq!(users.of(host, port).credentials, want, "{host}:{port}");
        }
        assert_eq!(users(&["last"], "other").of("a", 443).credentials, Credentials::None);
        assert_eq!(Users::default().of("a", 443).credentials, Credentials::None);
    }

    #[test]
    fn users_that_cannot_be_used_are_mistakes() {
        let parsed = Users::parse(b"users: [{name: a, user: {exec: {command: x}}}]", Path::new(""));
        let error = parsed.err().unwrap().to_string();
        assert_eq!(error, "invalid configuration: users of kind \"exec\" are not supported");
    }
}
