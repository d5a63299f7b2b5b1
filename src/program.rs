//! A whole program around a server: command line, log, files, store, signals, exit status.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::scheme::Scheme;
use keelson_net::listener::{Goaway, ListenerConfig, raise_descriptor_limit};
use keelson_net::tls::TlsState;
use keelson_registry::admission::Plugin;
use keelson_registry::controller::Controller;
use keelson_registry::{KindCode, Placement, StoreOverride};
use keelson_server::admission;
use keelson_server::audit::{Audit, AuditError};
use keelson_server::server::{AccessConfig, Config, Hook, ResourceConfig, Running, ServerError, StorageConfig, start};
use keelson_storage::encryption::{Encryption, RELOAD_INTERVAL};
use keelson_storage::{Store, StoreConfig};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;

use crate::authorization::{Authorized, Authorizers};
use crate::certificates::Certificates;
use crate::crd;
use crate::kubernetes::Kubernetes;
use crate::plugins::switched;
use crate::stored::Kinds;
use crate::{authentication, logging, version};
use keelson_kube::{BuiltIn, CodeOptions};
use keelson_options::provision::{Credentials, provision};
use keelson_options::{EncryptionFile, Invocation, OptionError, PlacementSettings, Settings, StoreCommand, parse};

/// A server made from definitions, as a program: it has the flags, files and behaviour of `keelson` itself.
///
/// ```no_run
/// # mod api { pub static SCHEME: keelson_machinery::scheme::Scheme =
/// #     keelson_machinery::scheme::Scheme { groups: &[], types: &[], definitions: &[],
/// #         name_description: "", creation_description: "" }; }
/// fn main() -> std::process::ExitCode {
///     keelson::Server::new("widgets").scheme(&api::SCHEME).run()
/// }
/// ```
pub struct Server {
    name: &'static str,
    about: &'static str,
    pub(crate) schemes: Vec<&'static Scheme>,
    pub(crate) code: KindCode,
    pub(crate) hooks: Vec<Hook>,
    plugins: Vec<Arc<dyn Plugin>>,
    /// The kinds of Kubernetes itself.
    pub(crate) kubernetes: Option<&'static Kubernetes>,
    /// Of those some, beside its own.
    pub(crate) built_in: Vec<BuiltIn>,
    /// Controllers run, on one server where several share a store.
    pub(crate) elects: bool,
}

impl Server {
    /// A program of this name, which is also that of its data folder and of the cluster in its kubeconfig.
    pub fn new(name: &'static str) -> Server {
        Server {
            name,
            about: "Serves the kinds of its definition files as a Kubernetes-style API.",
            schemes: Vec::new(),
            code: KindCode::default(),
            hooks: Vec::new(),
            plugins: Vec::new(),
            kubernetes: None,
            built_in: Vec::new(),
            elects: false,
        }
    }

    /// The first line of `--help`.
    #[must_use]
    pub fn about(mut self, text: &'static str) -> Server {
        self.about = text;
        self
    }

    /// Adds the kinds of Kubernetes itself, as far as they are built, with their rules and what they need at start.
    #[cfg(feature = "kubernetes")]
    #[must_use]
    pub fn kubernetes(mut self) -> Server {
        self.kubernetes = Some(&crate::kubernetes::ALL);
        self
    }

    /// Adds the kinds of one build of definitions. May be called several times.
    #[must_use]
    pub fn scheme(mut self, scheme: &'static Scheme) -> Server {
        self.schemes.push(scheme);
        self
    }

    /// Adds the code of kinds whose definitions don't say everything. May be called several times; what is registered
    /// twice, or for no kind, ends the program with a line that names it.
    #[must_use]
    pub fn code(mut self, code: KindCode) -> Server {
        self.code.merge(code);
        self
    }

    /// Adds an admission plug-in, behind those that are built in.
    #[must_use]
    pub fn admission(mut self, plugin: impl Plugin + 'static) -> Server {
        self.plugins.push(Arc::new(plugin));
        self
    }

    /// Adds work that is done once, when the server is up; `/readyz` waits for it.
    #[must_use]
    pub fn hook(mut self, hook: Hook) -> Server {
        self.hooks.push(hook);
        self
    }

    /// Adds a controller, which runs as long as the server does; where several servers share a store, on one of them:
    /// then a server without the kinds of Kubernetes has leases as well.
    #[must_use]
    pub fn controller(mut self, controller: impl Controller) -> Server {
        self.elects = true;
        self.hook(Hook::controller(controller))
    }

    /// Runs with the arguments of the process until a signal ends it.
    pub fn run(self) -> ExitCode {
        self.run_with(std::env::args_os().skip(1))
    }

    /// Runs with these arguments (without the program's name) until SIGTERM or SIGINT. The status is 0 after such an
    /// end, after `--help` and `--version`, and 1 after a mistake, which one line on standard error names.
    pub fn run_with(self, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
        match self.execute(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "Error: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn execute(self, arguments: impl IntoIterator<Item = OsString>) -> Result<(), OptionError> {
        let options = match parse(self.name, self.about, arguments)? {
            Invocation::Serve(options) => options,
            Invocation::Help(text) => return print(&text),
            Invocation::Crd(command) => return print(&crd::run(&command, &self.schemes())?),
            Invocation::Store(command) => return self.store(&command),
            Invocation::Version => return print(&format!("{}\n", version::line(self.name))),
        };
        let settings = options.complete(self.name, &self.schemes(), |name| std::env::var(name).ok())?;
        logging::start(settings.log, self.name);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| OptionError::CommandLine(format!("starting: {error}")))?;
        LocalSet::new().block_on(&runtime, self.serve(&settings))
    }

    fn store(self, command: &StoreCommand) -> Result<(), OptionError> {
        print(&format!("{}\n", command.run()?))?;
        match command.objects() {
            Some(objects) => print(&format!("{}\n", self.kinds().run(&objects)?)),
            None => Ok(()),
        }
    }

    /// What it would serve, with the code that objects are read by.
    fn kinds(mut self) -> Kinds {
        self.register_built_in(&CodeOptions::default());
        Kinds {
            schemes: self.schemes(),
            code: self.code,
        }
    }

    async fn serve(self, settings: &Settings) -> Result<(), OptionError> {
        let mut signals = Signals::new()?;
        raise_descriptor_limit();
        let (running, credentials) = self.start(settings).await?;
        announce(settings, &credentials, &running)?;
        signals.wait().await;
        tracing::info!("Shutting down");
        // A second signal ends a shutdown that takes too long for whoever sent it.
        tokio::select! {
            () = running.stop() => Ok(()),
            () = signals.wait() => Err(OptionError::CommandLine("ended by a second signal".to_owned())),
        }
    }

    /// Starts it within a `LocalSet`; it serves when this returns, and its hooks run.
    pub(crate) async fn start(self, settings: &Settings) -> Result<(Running, Credentials), OptionError> {
        // First, since it takes the folder: nothing in one that another server uses is written.
        let store = open("--data-dir", settings.storage.store.clone()).await?;
        let credentials = provision(settings, SystemTime::now())?;
        let stored = Stored {
            store,
            encryption: encryption(settings.storage.encryption.as_ref())?,
            placement: placement(&settings.storage.placement).await?,
        };
        let certificates = Certificates::load(settings, &credentials)?;
        let authenticators = authentication::authentication(settings, &credentials, &certificates)?;
        let about = Authorized {
            roles: self.roles(),
            nodes: self.kubernetes.map(|all| all.node_authorizer),
        };
        let authorizers = Authorizers::new(&settings.authorization, &settings.egress, about)?;
        let access = Access {
            authentication: authenticators.authentication.clone(),
            authorization: authorizers.authorization.clone(),
        };
        let config = self.config(settings, &certificates, access, stored)?;
        let running = start(config).map_err(|error| match error {
            ServerError::Listen(error) => OptionError::flag("--bind-address, --secure-port", error.to_string()),
            other => OptionError::CommandLine(other.to_string()),
        })?;
        certificates.follow(settings, running.shutdown());
        authenticators.follow(settings, running.shutdown());
        authorizers.follow(running.shutdown());
        Ok((running, credentials))
    }

    /// What these arguments ask for, if that is to serve.
    pub(crate) fn settings(&self, arguments: Vec<OsString>) -> Result<Settings, OptionError> {
        match parse(self.name, self.about, arguments)? {
            Invocation::Serve(options) => options.complete(self.name, &self.schemes(), |name| std::env::var(name).ok()),
            _ => Err(OptionError::CommandLine("these arguments ask for no server".to_owned())),
        }
    }

    fn config(
        mut self,
        settings: &Settings,
        certificates: &Certificates,
        access: Access,
        stored: Stored,
    ) -> Result<Config, OptionError> {
        let metrics = self.install_built_in(settings, stored.store.is_shared());
        let mut plugins = match self.kubernetes {
            Some(all) => (all.plugins)(&settings.egress),
            None => admission::plugins(),
        };
        plugins.append(&mut self.plugins);
        let admission = switched(plugins, &settings.admission)?;
        Ok(Config {
            resources: ResourceConfig {
                schemes: self.schemes(),
                code: self.code,
                runtime: settings.runtime.clone(),
                admission,
                known_versions: self.kubernetes.map_or(&[], |all| all.known_versions),
            },
            storage: StorageConfig {
                store: stored.store,
                encryption: stored.encryption,
                placement: stored.placement,
                prefix: settings.storage.prefix.clone(),
                cache_bytes: settings.storage.cache_bytes,
            },
            access: AccessConfig {
                authentication: access.authentication,
                authorization: access.authorization,
                flow_control: self.kubernetes.map(|all| (all.flow_control)()),
            },
            audit: audit(settings)?,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            version: version::current(),
            flags: settings.flags.clone(),
            hooks: self.hooks,
            metrics,
            listener: listener(settings, certificates.tls.clone()),
            requests: settings.requests.clone(),
            advertise: settings
                .serving
                .advertised
                .map_or_else(String::new, |ip| ip.to_string()),
        })
    }
}

/// What is recorded, and where.
fn audit(settings: &Settings) -> Result<Audit, OptionError> {
    let audit = settings.audit.clone();
    let log = audit.log.as_ref().and_then(|log| log.path.clone()).unwrap_or_default();
    Audit::start(audit, Arc::new(SystemClock)).map_err(|error| match error {
        AuditError::Log(error) => OptionError::file("--audit-log-path", &log, error),
        AuditError::Webhook(_) => OptionError::flag("--audit-webhook-config-file", error.to_string()),
    })
}

/// Who may come in, and who may do what.
struct Access {
    authentication: Authentication,
    authorization: Authorization,
}

/// Everything about where objects are kept.
struct Stored {
    store: Arc<dyn Store>,
    encryption: Arc<Encryption>,
    placement: Placement,
}

/// `flag` says where a store is that lies on this machine.
async fn open(flag: &'static str, config: StoreConfig) -> Result<Arc<dyn Store>, OptionError> {
    let flag = match config {
        StoreConfig::Etcd(_) => "--etcd-servers",
        _ => flag,
    };
    let opened = keelson_storage::open(config).await;
    opened.map_err(|error| OptionError::flag(flag, format!("opening the store: {error}")))
}

/// Opens the stores of resources that have their own.
async fn placement(settings: &PlacementSettings) -> Result<Placement, OptionError> {
    let mut overrides = Vec::new();
    for own in &settings.overrides {
        overrides.push(StoreOverride {
            group: own.group.clone(),
            resource: own.resource.clone(),
            store: open("--etcd-servers-overrides", StoreConfig::Etcd(own.etcd.clone())).await?,
        });
    }
    Ok(Placement {
        media: settings.media,
        overrides,
        health_timeout: settings.health_timeout,
        ready_timeout: settings.ready_timeout,
        size_interval: settings.size_interval,
    })
}

/// How values are stored. A file that is followed is read again for as long as this thread's `LocalSet` runs.
fn encryption(file: Option<&EncryptionFile>) -> Result<Arc<Encryption>, OptionError> {
    let Some(file) = file else {
        return Ok(Encryption::none());
    };
    let encryption = Encryption::new(file.configuration.clone())
        .map_err(|error| OptionError::CommandLine(format!("starting a thread for a KMS: {error}")))?;
    if file.followed {
        let (path, encryption) = (file.path.clone(), encryption.clone());
        tokio::task::spawn_local(async move {
            loop {
                tokio::time::sleep(RELOAD_INTERVAL).await;
                encryption.reload(EncryptionFile::read(&path)).await;
            }
        });
    }
    Ok(encryption)
}

/// Where and how to listen.
fn listener(settings: &Settings, tls: Arc<TlsState>) -> ListenerConfig {
    let mut config = ListenerConfig::new(settings.serving.address, Some(tls));
    if let Some(count) = settings.serving.http2_max_streams {
        config.limits.http2_max_streams = count;
    }
    let longest = settings.requests.timeout.max(settings.requests.shutdown.watch_grace);
    config.limits.drain_timeout = longest;
    config.goaway = settings.serving.goaway_chance.map(|chance| Goaway {
        chance,
        entropy: Arc::new(SystemEntropy),
    });
    config
}

/// Logs what is odd or without effect, and prints the line that makes kubectl use this server.
fn announce(settings: &Settings, credentials: &Credentials, running: &Running) -> Result<(), OptionError> {
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    if !settings.unused.is_empty() {
        tracing::warn!(
            flags = settings.unused.join(","),
            "Flags that are checked but have no effect yet"
        );
    }
    tracing::info!(address = %running.local_addr(), "Serving securely");
    match &credentials.kubeconfig {
        Some(path) => print(&format!("export KUBECONFIG={}\n", shell_word(&path.to_string_lossy()))),
        None => Ok(()),
    }
}

/// A word that a shell takes as it is.
fn shell_word(text: &str) -> String {
    match text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-+@%,:=".contains(c))
    {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn print(text: &str) -> Result<(), OptionError> {
    let mut out = std::io::stdout().lock();
    // Whoever closed the pipe has read enough.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(())
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Signals, OptionError> {
        let of = |kind| signal(kind).map_err(|error| OptionError::CommandLine(format!("signals: {error}")));
        Ok(Signals {
            terminate: of(SignalKind::terminate())?,
            interrupt: of(SignalKind::interrupt())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use keelson_machinery::object::Object;
    use keelson_registry::Strategy;

    use super::*;
    use crate::api::coordination_k8s_io::v1::Lease;
    use crate::api::core::v1::ConfigMap;

    struct Lenient;

    impl Strategy for Lenient {
        type Object = dyn Object;
    }

    /// The line with which a server with this code ends.
    fn end(register: impl FnOnce(&mut KindCode)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut code = KindCode::default();
        register(&mut code);
        // Nobody else takes the port until it is let go here.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let arguments = [
            "--storage-backend=memory".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--data-dir={}", folder.path().display()),
        ];
        let server = Server::new("ending").kubernetes().code(code);
        server
            .execute(arguments.map(OsString::from))
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn code_that_does_not_fit_ends_the_program_with_its_kind() {
        assert_eq!(
            end(|code| drop(code.kind::<Lease>().any_strategy(Lenient))),
            "strategy of coordination.k8s.io/v1, Kind=Lease: registered twice",
            "the one that is built in stays"
        );
        assert_eq!(
            end(|code| drop(code.named("apps", "deploymets").any_strategy(Lenient))),
            "strategy of deploymets.apps: no definition has this kind"
        );
        assert_eq!(
            end(|code| {
                code.kind::<ConfigMap>().kept([keelson_registry::Kept::at("dta")]);
            }),
            "kept fields of v1, Kind=ConfigMap: its objects have no field dta"
        );
    }

    #[test]
    fn printed_paths_can_be_pasted() {
        assert_eq!(shell_word("/home/a/kubeconfig"), "/home/a/kubeconfig");
        assert_eq!(shell_word("/home/a b/it's"), r"'/home/a b/it'\''s'");
    }
}
