//! Storage options: etcd, the embedded store, memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use keelson_machinery::quantity::Quantity;
use keelson_registry::Media;
use keelson_storage::{EtcdConfig, HistoryLimits, StoreConfig};

use super::OptionError;
use super::encryption::EncryptionFile;
use super::values::{self, ValueError};

pub(super) const SECTION: &str = "Etcd flags";

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Etcd {
    /// Where objects are kept: embedded (a folder of this process), memory (lost at the end) or etcd3. Default: etcd3
    /// with --etcd-servers, else embedded.
    #[arg(long, value_name = "string")]
    pub storage_backend: Option<String>,

    /// URLs of the etcd members (scheme://address:port), with commas between.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub etcd_servers: Vec<String>,

    /// What the keys of all objects begin with.
    #[arg(long, value_name = "string", default_value = "/registry")]
    pub etcd_prefix: String,

    /// How often history older than this is forgotten, such as 5m0s, and so how far back a watch or a list can begin.
    /// 0: history stays (in etcd), or is limited by its size alone.
    #[arg(long, value_name = "duration", value_parser = interval, default_value = "5m0s")]
    pub etcd_compaction_interval: Duration,

    /// Servers of their own for some resources, as group/resource#servers with semicolons between the servers, such as
    /// /events#https://10.0.0.1:2379;https://10.0.0.2:2379.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub etcd_servers_overrides: Vec<String>,

    /// How long the health check of the store may take.
    #[arg(long, value_name = "duration", value_parser = interval, default_value = "2s")]
    pub etcd_healthcheck_timeout: Duration,

    /// How long the readiness check of the store may take.
    #[arg(long, value_name = "duration", value_parser = interval, default_value = "2s")]
    pub etcd_readycheck_timeout: Duration,

    /// How often the metric of the store's size is brought up to date; 0: never.
    #[arg(long, value_name = "duration", value_parser = interval, default_value = "30s")]
    pub etcd_db_metric_poll_interval: Duration,

    /// The form of stored objects: application/vnd.kubernetes.protobuf, application/json or application/yaml. Kinds
    /// that are always stored as JSON stay so; objects of all forms are read.
    #[arg(long, value_name = "string", default_value = "application/vnd.kubernetes.protobuf")]
    pub storage_media_type: String,

    /// How much memory may hold objects in the forms in which they were answered, such as 64Mi. What does not fit is
    /// made again for each answer.
    #[arg(long, value_name = "quantity", value_parser = bytes, default_value = "128Mi")]
    pub cache_memory_limit: usize,

    /// A file that says which resources are encrypted in the store, and how: an EncryptionConfiguration of
    /// apiserver.config.k8s.io/v1.
    #[arg(long, value_name = "string")]
    pub encryption_provider_config: Option<PathBuf>,

    /// Whether that file is read anew when it changes; looked at once a minute.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_value = "false",
          default_missing_value = "true", value_parser = values::boolean)]
    pub encryption_provider_config_automatic_reload: bool,

    /// A PEM file of the authorities that etcd's certificates are checked against.
    #[arg(long, value_name = "string")]
    pub etcd_cafile: Option<PathBuf>,

    /// A PEM file of the client certificate shown to etcd.
    #[arg(long, value_name = "string")]
    pub etcd_certfile: Option<PathBuf>,

    /// A PEM file of that certificate's key.
    #[arg(long, value_name = "string")]
    pub etcd_keyfile: Option<PathBuf>,
}

/// Where and how objects are stored beside the store itself.
#[derive(Clone, Debug)]
pub struct PlacementSettings {
    pub media: Media,
    pub overrides: Vec<OwnStore>,
    pub health_timeout: Duration,
    pub ready_timeout: Duration,
    pub size_interval: Option<Duration>,
}

/// The store of one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnStore {
    pub group: String,
    pub resource: String,
    pub etcd: EtcdConfig,
}

impl Etcd {
    /// The store, with the embedded one in a folder of `data_dir`. Files named by the flags are checked.
    pub(super) fn store(&self, data_dir: &Path) -> Result<StoreConfig, OptionError> {
        match self.storage_backend.as_deref() {
            Some("memory") => self.without_servers().map(|()| StoreConfig::Memory {
                history: self.history(),
            }),
            Some("embedded") => self.without_servers().map(|()| self.embedded(data_dir)),
            None if self.etcd_servers.is_empty() => Ok(self.embedded(data_dir)),
            None | Some("etcd3") => self.etcd().map(StoreConfig::Etcd),
            Some(_) => Err(OptionError::flag(
                "--storage-backend",
                "invalid, allowed values: embedded, memory, etcd3",
            )),
        }
    }

    /// Where and how objects are stored beside the store itself.
    pub(super) fn placement(&self) -> Result<PlacementSettings, OptionError> {
        let media = match self.storage_media_type.as_str() {
            "" | "application/vnd.kubernetes.protobuf" => Media::Protobuf,
            "application/json" => Media::Json,
            "application/yaml" => Media::Yaml,
            other => {
                let allowed = "application/json, application/vnd.kubernetes.protobuf, application/yaml";
                let reason = format!("{other:?} invalid, allowed values: {allowed}");
                return Err(OptionError::flag("--storage-media-type", reason));
            }
        };
        let overrides = self.etcd_servers_overrides.iter().map(|text| self.own_store(text));
        Ok(PlacementSettings {
            media,
            overrides: overrides.collect::<Result<_, _>>()?,
            health_timeout: self.etcd_healthcheck_timeout,
            ready_timeout: self.etcd_readycheck_timeout,
            size_interval: Some(self.etcd_db_metric_poll_interval).filter(|interval| !interval.is_zero()),
        })
    }

    /// `group/resource#servers`
    fn own_store(&self, text: &str) -> Result<OwnStore, OptionError> {
        const FLAG: &str = "--etcd-servers-overrides";
        let split = text
            .split_once('#')
            .and_then(|(of, servers)| Some((of.split_once('/')?, servers)));
        let Some(((group, resource), servers)) = split.filter(|((_, resource), _)| !resource.contains('/')) else {
            return Err(OptionError::flag(
                FLAG,
                "invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated",
            ));
        };
        if self.etcd_servers.is_empty() {
            return Err(OptionError::flag(FLAG, "needs --etcd-servers"));
        }
        let servers = servers.split(';').map(str::to_owned).collect();
        let (ca, cert, key) = (&self.etcd_cafile, &self.etcd_certfile, &self.etcd_keyfile);
        let config = connection(FLAG, servers, ca, cert, key)?;
        Ok(OwnStore {
            group: group.to_owned(),
            resource: resource.to_owned(),
            etcd: EtcdConfig {
                compaction_interval: self.compaction_interval(),
                ..config
            },
        })
    }

    /// How values are stored, if a file says so.
    pub(super) fn encryption(&self) -> Result<Option<EncryptionFile>, OptionError> {
        match &self.encryption_provider_config {
            Some(path) => EncryptionFile::open(path, self.encryption_provider_config_automatic_reload).map(Some),
            None if self.encryption_provider_config_automatic_reload => Err(OptionError::flag(
                "--encryption-provider-config-automatic-reload",
                "must be set with --encryption-provider-config",
            )),
            None => Ok(None),
        }
    }

    /// The prefix of all keys: a slash in front, none at the end, empty for none at all.
    pub(super) fn prefix(&self) -> String {
        key_prefix(&self.etcd_prefix)
    }

    /// Servers that would go unused are a mistake.
    fn without_servers(&self) -> Result<(), OptionError> {
        match self.etcd_servers.is_empty() {
            true => Ok(()),
            false => Err(OptionError::flag("--etcd-servers", "needs --storage-backend=etcd3")),
        }
    }

    fn etcd(&self) -> Result<EtcdConfig, OptionError> {
        let (ca, cert, key) = (&self.etcd_cafile, &self.etcd_certfile, &self.etcd_keyfile);
        let config = connection("--etcd-servers", self.etcd_servers.clone(), ca, cert, key)?;
        Ok(EtcdConfig {
            compaction_interval: self.compaction_interval(),
            ..config
        })
    }

    fn compaction_interval(&self) -> Option<Duration> {
        Some(self.etcd_compaction_interval).filter(|interval| !interval.is_zero())
    }

    fn history(&self) -> HistoryLimits {
        HistoryLimits {
            age: self.compaction_interval(),
            ..HistoryLimits::default()
        }
    }

    fn embedded(&self, data_dir: &Path) -> StoreConfig {
        StoreConfig::Embedded {
            dir: store_folder(data_dir),
            history: self.history(),
        }
    }
}

/// A span of time as Go writes it, not negative.
fn interval(text: &str) -> Result<Duration, ValueError> {
    let span = values::duration(text)?;
    u64::try_from(span.as_nanos())
        .map(Duration::from_nanos)
        .map_err(|_| ValueError::Negative)
}

/// How to reach the servers that `flag` names. Files are checked.
pub(super) fn connection(
    flag: &'static str,
    servers: Vec<String>,
    ca: &Option<PathBuf>,
    cert: &Option<PathBuf>,
    key: &Option<PathBuf>,
) -> Result<EtcdConfig, OptionError> {
    if servers.is_empty() {
        return Err(OptionError::flag(flag, "must be specified"));
    }
    if !keelson_storage::HAS_ETCD {
        let why = "this program was built without etcd: turn on the feature `etcd` of the crate keelson";
        return Err(OptionError::flag(flag, why));
    }
    for server in &servers {
        check_url(flag, server)?;
    }
    match (cert, key) {
        (Some(_), None) => return Err(OptionError::flag("--etcd-certfile", "needs --etcd-keyfile")),
        (None, Some(_)) => return Err(OptionError::flag("--etcd-keyfile", "needs --etcd-certfile")),
        _ => {}
    }
    for (flag, file) in [
        ("--etcd-cafile", ca),
        ("--etcd-certfile", cert),
        ("--etcd-keyfile", key),
    ] {
        if let Some(path) = file {
            super::pem::check(flag, path, flag == "--etcd-keyfile")?;
        }
    }
    Ok(EtcdConfig {
        endpoints: servers,
        ca: ca.clone(),
        cert: cert.clone(),
        key: key.clone(),
        compaction_interval: None,
    })
}

/// A prefix of keys: a slash in front, none at the end, empty for none at all.
pub(super) fn key_prefix(given: &str) -> String {
    match given.trim_matches('/') {
        "" => String::new(),
        path => format!("/{path}"),
    }
}

/// A number of bytes, as a quantity of memory.
fn bytes(text: &str) -> Result<usize, ValueError> {
    let quantity = Quantity::parse(text)?;
    usize::try_from(quantity.value()).map_err(|_| ValueError::Negative)
}

/// Where the embedded store of a data folder is.
pub(super) fn store_folder(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}

fn check_url(flag: &'static str, server: &str) -> Result<(), OptionError> {
    let host = server
        .strip_prefix("http://")
        .or_else(|| server.strip_prefix("https://"));
    match host.map(|host| host.trim_end_matches('/')) {
        Some(host) if !host.is_empty() && !host.contains(['/', ' ', '?', '#', '@']) => Ok(()),
        _ => Err(OptionError::flag(
            flag,
            format!("{server:?} is not a URL like https://10.0.0.1:2379"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        etcd: Etcd,
    }

    fn store(args: &[&str]) -> Result<StoreConfig, String> {
        let only = Only::try_parse_from(["x"].iter().chain(args)).unwrap();
        only.etcd.store(Path::new("/data")).map_err(|error| error.to_string())
    }

    #[test]
    fn servers_choose_etcd_and_their_absence_the_embedded_store() {
        assert!(matches!(store(&[]), Ok(StoreConfig::Embedded { dir, .. }) if dir == Path::new("/data/store")));
        assert!(matches!(
            store(&["--storage-backend=memory"]),
            Ok(StoreConfig::Memory { .. })
        ));
        let Ok(StoreConfig::Etcd(etcd)) = store(&["--etcd-servers=http://a:2379,http://b:2379"]) else {
            panic!()
        };
        assert_eq!(etcd.endpoints, ["http://a:2379", "http://b:2379"]);
    }

    #[test]
    fn history_is_kept_for_the_interval_of_compaction() {
        let age = |args: &[&str]| match store(args) {
            Ok(StoreConfig::Embedded { history, .. } | StoreConfig::Memory { history }) => history.age,
            Ok(StoreConfig::Etcd(etcd)) => etcd.compaction_interval,
            Err(error) => panic!("{error}"),
        };
        let (seconds, etcd) = (Duration::from_secs, "--etcd-servers=http://a:1");
        assert_eq!(age(&[]), Some(seconds(300)));
        assert_eq!(age(&[etcd]), Some(seconds(300)));
        assert_eq!(age(&["--etcd-compaction-interval=1m30s"]), Some(seconds(90)));
        assert_eq!(age(&["--etcd-compaction-interval=0"]), None);
        assert_eq!(age(&[etcd, "--etcd-compaction-interval=0s"]), None);
        for wrong in ["-1s", "5", ""] {
            let flag = format!("--etcd-compaction-interval={wrong}");
            assert!(Only::try_parse_from(["x", &flag]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn mistakes_name_the_flag() {
        for (args, error) in [
            (&["--storage-backend=etcd3"][..], "--etcd-servers: must be specified"),
            (
                &["--storage-backend=etcd2"],
                "--storage-backend: invalid, allowed values: embedded, memory, etcd3",
            ),
            (
                &["--storage-backend=memory", "--etcd-servers=http://a:1"],
                "--etcd-servers: needs --storage-backend=etcd3",
            ),
            (
                &["--etcd-servers=a:2379"],
                r#"--etcd-servers: "a:2379" is not a URL like https://10.0.0.1:2379"#,
            ),
            (
                &["--etcd-servers=http://a:1", "--etcd-certfile=x"],
                "--etcd-certfile: needs --etcd-keyfile",
            ),
        ] {
            assert_eq!(store(args).unwrap_err(), error, "{args:?}");
        }
    }

    #[test]
    fn resources_may_have_servers_of_their_own() {
        let placement = |args: &[&str]| {
            let only = Only::try_parse_from(["x"].iter().chain(args)).unwrap();
            only.etcd.placement().map_err(|error| error.to_string())
        };
        let servers = "--etcd-servers=http://a:1";
        let given = placement(&[
            servers,
            "--etcd-servers-overrides=/events#http://b:1;http://c:1,apps/x#http://d:1",
        ]);
        let overrides = given.unwrap().overrides;
        let shown = overrides
            .iter()
            .map(|own| (own.group.as_str(), own.resource.as_str(), own.etcd.endpoints.len()));
        assert_eq!(shown.collect::<Vec<_>>(), [("", "events", 2), ("apps", "x", 1)]);
        let format = "invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated";
        for (args, error) in [
            (
                &["--etcd-servers-overrides=/events"][..],
                format!("--etcd-servers-overrides: {format}"),
            ),
            (
                &["--etcd-servers-overrides=events#http://a:1"],
                format!("--etcd-servers-overrides: {format}"),
            ),
            (
                &["--etcd-servers-overrides=a/b/c#http://a:1"],
                format!("--etcd-servers-overrides: {format}"),
            ),
            (
                &["--etcd-servers-overrides=/events#http://a:1"],
                "--etcd-servers-overrides: needs --etcd-servers".to_owned(),
            ),
            (
                &[servers, "--etcd-servers-overrides=/events#b"],
                r#"--etcd-servers-overrides: "b" is not a URL like https://10.0.0.1:2379"#.to_owned(),
            ),
            (
                &["--storage-media-type=application/xml"],
                "--storage-media-type: \"application/xml\" invalid, allowed values: application/json, \
                 application/vnd.kubernetes.protobuf, application/yaml"
                    .to_owned(),
            ),
        ] {
            assert_eq!(placement(args).unwrap_err(), error, "{args:?}");
        }
    }

    #[test]
    fn memory_is_a_quantity() {
        for (text, want) in [("64Mi", Ok(64 << 20)), ("1k", Ok(1000)), ("0", Ok(0))] {
            assert_eq!(bytes(text), want);
        }
        assert_eq!(bytes("-1"), Err(ValueError::Negative));
        assert!(bytes("much").is_err());
    }

    #[test]
    fn prefixes_begin_with_a_slash() {
        for (flag, want) in [("registry", "/registry"), ("/a/b/", "/a/b"), ("/", ""), ("", "")] {
            let only = Only::try_parse_from(["x", &format!("--etcd-prefix={flag}")]).unwrap();
            assert_eq!(only.etcd.prefix(), want);
        }
    }
}
