//! Files that say how to reach a server, in the form that kubectl reads.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::target::Target;
use super::{ClientSettings, ClientTls, Credentials, Roots, Secret, TlsConfigError};
use crate::tls::certs::CertifiedKeyPem;

/// What such a file is; it need not say so.
const KIND: &str = "Config";
const VERSION: &str = "v1";

/// A file that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// A file can't be read.
    #[error("{}: {reason}", .path.display())]
    File { path: PathBuf, reason: String },
    /// What it says is wrong, or not enough.
    #[error("invalid configuration: {0}")]
    Content(String),
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
}

/// What the current context of a file says.
#[derive(Clone)]
pub struct Kubeconfig {
    /// The server's address.
    pub server: String,
    /// Authorities and credentials; times and bounds are the default ones.
    pub client: ClientSettings,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct File {
    clusters: Vec<Named<ClusterEntry>>,
    pub users: Vec<Named<UserEntry>>,
    pub contexts: Vec<Named<ContextEntry>>,
    #[serde(rename = "current-context")]
    pub current_context: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Named<T> {
    pub name: String,
    #[serde(flatten)]
    pub entry: T,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClusterEntry {
    cluster: Cluster,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct UserEntry {
    pub user: User,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ContextEntry {
    pub context: Context,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Context {
    cluster: String,
    pub user: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: String,
    tls_server_name: String,
    insecure_skip_tls_verify: bool,
    certificate_authority: String,
    certificate_authority_data: String,
    proxy_url: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct User {
    #[serde(rename = "client-certificate")]
    client_certificate: String,
    #[serde(rename = "client-certificate-data")]
    client_certificate_data: String,
    #[serde(rename = "client-key")]
    client_key: String,
    #[serde(rename = "client-key-data")]
    client_key_data: String,
    token: String,
    #[serde(rename = "tokenFile")]
    token_file: String,
    username: String,
    password: String,
    #[serde(rename = "as")]
    impersonate: Value,
    exec: Value,
    #[serde(rename = "auth-provider")]
    auth_provider: Value,
}

impl Kubeconfig {
    /// Reads the file and all certificates and keys that its current context names. Names of files in it are relative
    /// to its folder.
    ///
    /// # Errors
    /// A file that can't be read; a context, cluster or user that is not there; a form of credentials that this server
    /// does not have.
    pub fn read(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Kubeconfig::parse(read(path)?.as_bytes(), folder)
    }

    /// The API server of the cluster in which this process runs as a pod. `lookup` reads an environment variable.
    ///
    /// # Errors
    /// It does not run in a pod, or the pod has no service account.
    pub fn in_cluster(lookup: impl Fn(&str) -> Option<String>) -> Result<Kubeconfig, KubeconfigError> {
        let (host, port) = (lookup("KUBERNETES_SERVICE_HOST"), lookup("KUBERNETES_SERVICE_PORT"));
        let (Some(host), Some(port)) = (host, port) else {
            let why = "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT \
                       must be defined";
            return Err(content(why.to_owned()));
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let account = Path::new("/var/run/secrets/kubernetes.io/serviceaccount");
        let tls = ClientTls {
            roots: Roots::Pem(read(&account.join("ca.crt"))?),
            ..ClientTls::default()
        };
        Ok(Kubeconfig {
            server: format!("https://{host}:{port}"),
            client: ClientSettings {
                tls,
                credentials: Credentials::BearerFile(account.join("token")),
                ..ClientSettings::default()
            },
        })
    }

    /// The same of a text, whose names of files are relative to `folder`.
    ///
    /// # Errors
    /// See [`Kubeconfig::read`].
    pub fn parse(text: &[u8], folder: &Path) -> Result<Kubeconfig, KubeconfigError> {
        let file = File::parse(text)?;
        let name = &file.current_context;
        if name.is_empty() {
            return Err(content("no current-context is set".to_owned()));
        }
        let context = &find(&file.contexts, name, "context")?.context;
        let cluster = &find(&file.clusters, &context.cluster, "cluster")?.cluster;
        let absent = User::default();
        let user = match context.user.as_str() {
            "" => &absent,
            name => &find(&file.users, name, "user")?.user,
        };
        let files = Files { folder };
        Ok(Kubeconfig {
            server: server(cluster, &context.cluster)?,
            client: ClientSettings {
                tls: files.tls(cluster, user)?,
                credentials: files.credentials(user)?,
                ..ClientSettings::default()
            },
        })
    }
}

impl File {
    pub fn parse(text: &[u8]) -> Result<File, KubeconfigError> {
        let json = keelson_machinery::yaml::to_json(text).map_err(|error| content(error.to_string()))?;
        check_kind(&json)?;
        let file: Option<File> = serde_json::from_slice(&json).map_err(|error| content(error.to_string()))?;
        Ok(file.unwrap_or_default())
    }
}

/// Whether a file is of the kind that it has to be. An empty one is.
fn check_kind(json: &[u8]) -> Result<(), KubeconfigError> {
    if json == b"null" {
        return Ok(());
    }
    let named = keelson_machinery::json::type_meta_of_all(json);
    let named = named.map_err(|error| content(format!("couldn't get version/kind; json parse error: {error}")))?;
    let or = |given: String, usual: &str| if given.is_empty() { usual.to_owned() } else { given };
    match (or(named.kind, KIND), or(named.api_version, VERSION)) {
        (kind, version) if kind == KIND && version == VERSION => Ok(()),
        (kind, version) => Err(content(format!(
            "no kind {kind:?} is registered for version {version:?}"
        ))),
    }
}

fn content(why: String) -> KubeconfigError {
    KubeconfigError::Content(why)
}

fn find<'a, T>(entries: &'a [Named<T>], name: &str, what: &str) -> Result<&'a T, KubeconfigError> {
    let found = entries.iter().find(|entry| entry.name == name);
    found
        .map(|found| &found.entry)
        .ok_or_else(|| content(format!("{what} {name:?} does not exist")))
}

fn server(cluster: &Cluster, name: &str) -> Result<String, KubeconfigError> {
    if cluster.server.is_empty() {
        return Err(content(format!("no server found for cluster {name:?}")));
    }
    if !cluster.proxy_url.is_empty() {
        return Err(content(format!("cluster {name:?}: proxy-url is not supported")));
    }
    let target = Target::parse(&cluster.server);
    target.map_err(|why| content(format!("cluster {name:?}: server: {why}")))?;
    Ok(cluster.server.clone())
}

pub(super) struct Files<'a> {
    pub folder: &'a Path,
}

impl Files<'_> {
    fn tls(&self, cluster: &Cluster, user: &User) -> Result<ClientTls, KubeconfigError> {
        let authority = self.pem(
            &cluster.certificate_authority,
            &cluster.certificate_authority_data,
            "certificate-authority-data",
        )?;
        if cluster.insecure_skip_tls_verify && authority.is_some() {
            let why = "specifying a root certificates file with the insecure flag is not allowed";
            return Err(content(why.to_owned()));
        }
        Ok(ClientTls {
            roots: authority.map_or(Roots::System, Roots::Pem),
            insecure: cluster.insecure_skip_tls_verify,
            server_name: Some(cluster.tls_server_name.clone()).filter(|name| !name.is_empty()),
            identity: self.certificate(user)?,
        })
    }

    /// The user's certificate with its key.
    pub fn certificate(&self, user: &User) -> Result<Option<CertifiedKeyPem>, KubeconfigError> {
        let certificate = self.pem(
            &user.client_certificate,
            &user.client_certificate_data,
            "client-certificate-data",
        )?;
        let key = self.pem(&user.client_key, &user.client_key_data, "client-key-data")?;
        match (certificate, key) {
            (Some(certificate_pem), Some(key_pem)) => Ok(Some(CertifiedKeyPem {
                certificate_pem,
                key_pem,
            })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(content("a client certificate needs its client-key".to_owned())),
            (None, Some(_)) => Err(content("a client key needs its client-certificate".to_owned())),
        }
    }

    pub fn credentials(&self, user: &User) -> Result<Credentials, KubeconfigError> {
        let given = |name: &str, value: &Value| match value {
            Value::Null => Ok(()),
            _ => Err(content(format!("users of kind {name:?} are not supported"))),
        };
        given("as", &user.impersonate)?;
        given("exec", &user.exec)?;
        given("auth-provider", &user.auth_provider)?;
        Ok(if !user.token_file.is_empty() {
            Credentials::BearerFile(self.folder.join(&user.token_file))
        } else if !user.token.is_empty() {
            Credentials::Bearer(Secret::new(&user.token))
        } else if !user.username.is_empty() {
            Credentials::Basic(user.username.clone(), Secret::new(&user.password))
        } else {
            Credentials::None
        })
    }

    /// What is written in the file itself wins over a file that it names.
    fn pem(&self, file: &str, data: &str, name: &str) -> Result<Option<String>, KubeconfigError> {
        let wrong = || content(format!("{name} is not PEM text in base64"));
        if !data.is_empty() {
            let compact: String = data.split_ascii_whitespace().collect();
            let bytes = STANDARD.decode(compact).map_err(|_| wrong())?;
            return String::from_utf8(bytes).map(Some).map_err(|_| wrong());
        }
        match file {
            "" => Ok(None),
            file => read(&self.folder.join(file)).map(Some),
        }
    }
}

/// The text of a file that is one, and no larger than it may be.
pub(super) fn read(path: &Path) -> Result<String, KubeconfigError> {
    let at = |reason: String| KubeconfigError::File {
        path: path.to_owned(),
        reason,
    };
    let bytes = keelson_configuration::read_file(path).map_err(|error| at(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| at("stream did not contain valid UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n";

    fn parse(rest: &str) -> Result<Kubeconfig, String> {
        Kubeconfig::parse(format!("{HEAD}{rest}").as_bytes(), Path::new("/nowhere")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_current_context_counts() {
        let file = parse(
            "clusters:\n- name: other\n  cluster: {server: 'https://b'}\n\
             - name: k\n  cluster: {server: 'https://a/x', tls-server-name: name, certificate-authority-data: Zm9v}\n\
             users: [{name: u, user: {token: t}}]\n",
        )
        .unwrap();
        assert_eq!(file.server, "https://a/x");
        assert_eq!(file.client.tls.server_name.as_deref(), Some("name"));
        assert_eq!(file.client.tls.roots, Roots::Pem("foo".to_owned()));
        assert_eq!(file.client.credentials, Credentials::Bearer(Secret::new("t")));
    }

    #[test]
    fn files_are_found_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca"), "CA").unwrap();
        let text = "clusters: [{name: k, cluster: {server: 'http://a', certificate-authority: ca}}]\n\
                    users: [{name: u, user: {tokenFile: t}}]\n";
        let path = dir.path().join("config");
        std::fs::write(&path, format!("{HEAD}{text}")).unwrap();
        let file = Kubeconfig::read(&path).unwrap();
        assert_eq!(file.client.tls.roots, Roots::Pem("CA".to_owned()));
        assert_eq!(file.client.credentials, Credentials::BearerFile(dir.path().join("t")));
        let folder = Kubeconfig::read(dir.path()).err().unwrap();
        assert!(folder.to_string().ends_with("is no regular file"), "{folder}");
    }

    #[test]
    fn mistakes_are_told() {
        let cluster = "clusters: [{name: k, cluster: {server: 'https://a'}}]\n";
        let user = |user: &str| format!("{cluster}users: [{{name: u, user: {user}}}]\n");
        for (text, error) in [
            (String::new(), "cluster \"k\" does not exist"),
            (cluster.to_owned(), "user \"u\" does not exist"),
            (
                "clusters: [{name: k, cluster: {}}]\nusers: [{name: u}]\n".to_owned(),
                "no server found for cluster \"k\"",
            ),
            (
                "clusters: [{name: k, cluster: {server: 'a:1'}}]\nusers: [{name: u}]\n".to_owned(),
                "cluster \"k\": server: unsupported protocol scheme \"\"",
            ),
            (
                "clusters: [{name: k, cluster: {server: 'https://a', proxy-url: 'http://p'}}]\nusers: [{name: u}]\n"
                    .to_owned(),
                "cluster \"k\": proxy-url is not supported",
            ),
            (user("{exec: {command: x}}"), "users of kind \"exec\" are not supported"),
            (
                user("{client-key-data: eA==}"),
                "a client key needs its client-certificate",
            ),
            (
                user("{client-key-data: '!'}"),
                "client-key-data is not PEM text in base64",
            ),
        ] {
            let shown = parse(&text).err().unwrap();
            assert_eq!(shown, format!("invalid configuration: {error}"), "{text}");
        }
        let other = Kubeconfig::parse(b"kind: Pod\ncurrent-context: c\n", Path::new(""))
            .err()
            .unwrap();
        assert_eq!(
            other.to_string(),
            "invalid configuration: no kind \"Pod\" is registered for version \"v1\""
        );
        let named = Kubeconfig::parse(b"apiVersion: v1\nkind: Config\n", Path::new(""));
        assert!(named.err().unwrap().to_string().ends_with("no current-context is set"));
        let empty = Kubeconfig::parse(b"", Path::new("")).err().unwrap();
        assert_eq!(empty.to_string(), "invalid configuration: no current-context is set");
    }
}
