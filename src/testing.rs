//! Test servers: a whole server on a thread of the test's process, on a free port, with its objects in memory. It takes
//! some milliseconds to start, needs no other program, and is gone with everything it made when it is dropped.
//!
//! ```no_run
//! use keelson::Server;
//! use keelson::testing::TestServer;
//!
//! let server = TestServer::start(|| Server::new("test").kubernetes())?;
//! // What speaks to clusters takes `server.kubeconfig()`, or the URL, the authority and the token:
//! println!("{} {}", server.url(), server.token());
//! # Ok::<(), keelson::testing::TestServerError>(())
//! ```

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use keelson_net::tls::{TlsError, files};
use keelson_server::lifecycle::HookState;
use keelson_server::server::Running;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::Server;
use keelson_options::{OptionError, Settings, server_url};

/// How long a server may take until it is ready.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between looks at whether it is.
const PERIOD: Duration = Duration::from_millis(1);
/// The user of the token, who may do everything.
const USER: &str = "test-admin,test-admin,system:masters";

/// Why a test server was not started.
#[derive(Debug, thiserror::Error)]
pub enum TestServerError {
    /// An argument is wrong, or something that the server needs could not be made.
    #[error("{0}")]
    Server(String),
    /// A post-start hook failed: its name, and why.
    #[error("the hook {0} failed: {1}")]
    Hook(String, String),
    /// Post-start hooks take too long.
    #[error("the server is not ready in time")]
    Late,
    /// The system gives no thread, or no folder.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

impl From<OptionError> for TestServerError {
    fn from(error: OptionError) -> TestServerError {
        TestServerError::Server(error.to_string())
    }
}

impl From<TlsError> for TestServerError {
    fn from(error: TlsError) -> TestServerError {
        TestServerError::Server(error.to_string())
    }
}

/// A server that runs in this process until it is dropped.
pub struct TestServer {
    ready: Ready,
    token: String,
    folder: Folder,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What is known when it is ready.
struct Ready {
    url: String,
    kubeconfig: String,
    authority: String,
}

/// A folder that is removed with all that is in it.
struct Folder(PathBuf);

impl TestServer {
    /// Starts the server that `make` makes, and returns when it is ready (`/readyz`). `make` is called on the thread of
    /// the server.
    ///
    /// # Errors
    /// It does not start, or does not become ready.
    pub fn start(make: impl FnOnce() -> Server + Send + 'static) -> Result<TestServer, TestServerError> {
        TestServer::start_with(make, &[])
    }

    /// The same with flags of its command line, such as `--storage-backend=embedded` or `--feature-gates=…`.
    ///
    /// # Errors
    /// It does not start, or does not become ready.
    pub fn start_with(
        make: impl FnOnce() -> Server + Send + 'static,
        flags: &[&str],
    ) -> Result<TestServer, TestServerError> {
        let folder = Folder::make()?;
        let token = random()?;
        let tokens = folder.0.join("tokens.csv");
        files::write_private(&tokens, format!("{token},{USER}\n").as_bytes())?;
        let mut arguments = vec![
            format!("--data-dir={}", folder.0.display()),
            format!("--token-auth-file={}", tokens.display()),
            "--storage-backend=memory".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let run = move || run(make(), arguments, &tell, stopped);
        let thread = std::thread::Builder::new().name("test-server".to_owned()).spawn(run)?;
        let ready = told
            .recv()
            .unwrap_or(Err(TestServerError::Server("it panicked".to_owned())))?;
        Ok(TestServer {
            ready,
            token,
            folder,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens: `https://127.0.0.1:` and its port.
    pub fn url(&self) -> &str {
        &self.ready.url
    }

    /// A bearer token of a user of the group `system:masters`, who may do everything.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The authority that vouches for the server, as PEM text.
    pub fn certificate_authority(&self) -> &str {
        &self.ready.authority
    }

    /// A kubeconfig that is enough by itself, with a client certificate of a user who may do everything.
    pub fn kubeconfig(&self) -> &str {
        &self.ready.kubeconfig
    }

    /// The file of the same, for programs: what `KUBECONFIG` is set to.
    pub fn kubeconfig_file(&self) -> PathBuf {
        self.folder.0.join("kubeconfig")
    }

    /// Ends it, and waits until it has ended. Dropping it does the same.
    pub fn stop(self) {}
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // What it panicked with was printed.
            let _ = thread.join();
        }
    }
}

/// The thread of a server.
fn run(
    server: Server,
    arguments: Vec<String>,
    tell: &mpsc::Sender<Result<Ready, TestServerError>>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return drop(tell.send(Err(error.into()))),
    };
    LocalSet::new().block_on(&runtime, async {
        let running = match start(server, arguments).await {
            Ok((running, ready)) => {
                // Whoever does not listen has dropped the other end of `stopped` too.
                let _ = tell.send(Ok(ready));
                running
            }
            Err(error) => return drop(tell.send(Err(error))),
        };
        let _ = stopped.await;
        running.stop().await;
    });
}

async fn start(server: Server, arguments: Vec<String>) -> Result<(Running, Ready), TestServerError> {
    let mut settings = server.settings(arguments.into_iter().map(Into::into).collect())?;
    settings.serving.address.set_port(0);
    let (running, credentials) = server.start(&settings).await?;
    match ready(&settings, &running, credentials.kubeconfig.as_deref()).await {
        Ok(ready) => Ok((running, ready)),
        Err(error) => {
            running.stop().await;
            Err(error)
        }
    }
}

/// Waits for the hooks, and writes the port that the system gave into the kubeconfig.
async fn ready(settings: &Settings, running: &Running, file: Option<&Path>) -> Result<Ready, TestServerError> {
    let hooks = tokio::time::timeout(PATIENCE, hooks(running)).await;
    hooks.map_err(|_| TestServerError::Late)??;
    let url = server_url(running.local_addr());
    let mut kubeconfig = String::new();
    if let Some(file) = file {
        let written = std::fs::read_to_string(file)?;
        let quoted = |url: &str| format!("{url:?}");
        kubeconfig = written.replace(&quoted(&server_url(settings.serving.address)), &quoted(&url));
        std::fs::write(file, &kubeconfig)?;
    }
    let authority = std::fs::read_to_string(settings.data_dir.join("pki/ca.crt"))?;
    Ok(Ready {
        url,
        kubeconfig,
        authority,
    })
}

async fn hooks(running: &Running) -> Result<(), TestServerError> {
    loop {
        let states = running.state.hooks.states();
        for (name, state) in &states {
            if let HookState::Failed(why) = state {
                return Err(TestServerError::Hook(name.clone(), why.clone()));
            }
        }
        if states.iter().all(|(_, state)| *state == HookState::Done) {
            return Ok(());
        }
        tokio::time::sleep(PERIOD).await;
    }
}

impl Folder {
    fn make() -> Result<Folder, TestServerError> {
        let folder = std::env::temp_dir().join(format!("keelson-test-{}", random()?));
        files::create_private_folder(&folder)?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed is the system's to clear away.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What nobody guesses, in hexadecimal.
fn random() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Two at a time, each with a port, a folder and an authority of its own, which are gone when they are.
    #[test]
    fn servers_come_and_go_in_a_process() {
        let begin = Instant::now();
        let make = || TestServer::start(|| Server::new("one").kubernetes()).unwrap();
        let (one, two) = (make(), make());
        println!("{:?} for two servers", begin.elapsed());
        assert_ne!(one.url(), two.url());
        assert_ne!(one.certificate_authority(), two.certificate_authority());
        assert!(one.kubeconfig().contains(one.url()) && one.url().starts_with("https://127.0.0.1:"));
        assert_eq!(
            std::fs::read_to_string(one.kubeconfig_file()).unwrap(),
            one.kubeconfig()
        );
        let (file, address) = (
            one.kubeconfig_file(),
            one.url().trim_start_matches("https://").to_owned(),
        );
        std::net::TcpStream::connect(&address).unwrap();
        one.stop();
        assert!(!file.exists() && std::net::TcpStream::connect(&address).is_err());
        std::net::TcpStream::connect(two.url().trim_start_matches("https://")).unwrap();
    }

    #[test]
    fn mistakes_are_told() {
        let error = TestServer::start_with(|| Server::new("one"), &["--secure-prot=1"])
            .err()
            .unwrap();
        assert!(error.to_string().contains("--secure-prot"), "{error}");
    }
}
