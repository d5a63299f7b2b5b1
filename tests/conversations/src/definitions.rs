//! Definitions of custom resources, all at once: how long two servers take to serve them, what that costs, and whether
//! both publish the same of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use crate::case::{Recorded, case_files};
use crate::client::{Address, Client, Connector, Received, Sent};
use crate::compare::differences;
use crate::fault::Fault;
use crate::users;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// How long a server may take until it serves all of them.
const PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(20);
/// How long a server is left alone before it is looked at.
const REST: Duration = Duration::from_secs(2);
/// Differences of one document that are told.
const TOLD: usize = 8;

/// What is loaded, and where.
#[derive(clap::Args)]
#[group(skip)]
pub struct Definitions {
    /// Processes of the real kube-apiserver and its etcd, whose CPU time and memory are told.
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    oracle_pids: Vec<u32>,
    /// The same of the server.
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    server_pids: Vec<u32>,
    /// Clients that create them at once.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Cases, or folders of them, that create definitions.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// Loads the definitions that the cases create into both servers, tells what it took, and compares the documents of
/// their groups: whether all are the same.
///
/// # Errors
/// A file can't be read, a server can't be asked, or does not serve them.
pub async fn compare(settings: &Definitions, theirs: Address, ours: Address) -> Result<bool, Fault> {
    let definitions = created(&settings.paths)?;
    let versions = versions(&definitions);
    let server = |address, pids: &[u32]| -> Result<Server, Fault> {
        Ok(Server {
            client: Client::new(address, Connector::new(None)?),
            pids: pids.to_vec(),
        })
    };
    let theirs = server(theirs, &settings.oracle_pids)?;
    let ours = server(ours, &settings.server_pids)?;
    let mut documents = Vec::new();
    for (name, server) in [("kube-apiserver", &theirs), ("server", &ours)] {
        server.load(name, &definitions, settings.clients).await?;
        documents.push(server.documents(name, &versions).await?);
    }
    let [wanted, got] = &documents[..] else {
        return Ok(false);
    };
    let mut same = 0;
    for (version, wanted) in wanted {
        let found = differences(wanted, &got[version]);
        same += usize::from(found.is_empty());
        for difference in found.iter().take(TOLD) {
            println!("DIFFERS {version}: {difference}");
        }
    }
    println!("{same} of {} documents are the same", wanted.len());
    Ok(same == wanted.len())
}

/// The definitions that the cases create, each once.
fn created(paths: &[PathBuf]) -> Result<Vec<Value>, Fault> {
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    for file in case_files(paths).map_err(Fault::unusable)? {
        let case = Recorded::read(&file).map_err(Fault::Unusable)?.case;
        for step in case.steps {
            let is_made = step.expect.as_ref().is_some_and(|expect| expect["status"] == 201);
            let (true, "POST", Some(DEFINITIONS), Some(body)) =
                (is_made, step.method.as_str(), step.path.as_deref(), step.body)
            else {
                continue;
            };
            let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            found.entry(name).or_insert(body);
        }
    }
    Ok(found.into_values().collect())
}

/// The groups and versions that are served of them, as paths say them.
fn versions(definitions: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for spec in definitions.iter().map(|definition| &definition["spec"]) {
        let group = spec["group"].as_str().unwrap_or_default();
        let served = spec["versions"].as_array().into_iter().flatten();
        let served = served.filter(|version| version["served"] == true);
        found.extend(served.map(|version| format!("{group}/{}", version["name"].as_str().unwrap_or_default())));
    }
    found
}

struct Server {
    client: Client,
    pids: Vec<u32>,
}

impl Server {
    /// Creates the definitions and waits until discovery has all of their resources.
    async fn load(&self, name: &str, definitions: &[Value], clients: usize) -> Result<(), Fault> {
        let before = self.used();
        let begin = Instant::now();
        let answers = stream::iter(definitions).map(|definition| self.create(definition));
        let answers: Vec<Result<(), Fault>> = answers.buffer_unordered(clients).collect().await;
        answers.into_iter().collect::<Result<Vec<()>, _>>()?;
        let created = begin.elapsed();
        let wanted = resources(definitions);
        while !wanted.is_subset(&self.discovered().await?) {
            if begin.elapsed() > PATIENCE {
                return Err(Fault::unusable(format!("{name} does not serve all definitions")));
            }
            tokio::time::sleep(PAUSE).await;
        }
        let served = begin.elapsed();
        tokio::time::sleep(REST).await;
        let used = self.used().since(before);
        let bytes: usize = definitions.iter().map(|definition| definition.to_string().len()).sum();
        println!(
            "{name}: {} definitions of {} KiB together: created in {created:?}, all in discovery after {served:?}; \
             {used}",
            definitions.len(),
            bytes / 1024
        );
        Ok(())
    }

    async fn create(&self, definition: &Value) -> Result<(), Fault> {
        let answer = self
            .ask("POST", DEFINITIONS, "application/json", Some(definition))
            .await?;
        match answer.status {
            201 => Ok(()),
            status => {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                Err(Fault::unusable(format!(
                    "a definition is refused with {status}: {text}"
                )))
            }
        }
    }

    /// `group/version/resource` of all that aggregated discovery names.
    async fn discovered(&self) -> Result<BTreeSet<String>, Fault> {
        let answer = self.ask("GET", "/apis", DISCOVERY, None).await?;
        let document: Value = serde_json::from_slice(&answer.body).map_err(Fault::unusable)?;
        let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let mut found = BTreeSet::new();
        for group in list(&document, "items") {
            for version in list(&group, "versions") {
                let names =
                    [&group["metadata"]["name"], &version["version"]].map(|name| name.as_str().unwrap_or_default());
                for resource in list(&version, "resources") {
                    found.insert(format!(
                        "{}/{}",
                        names.join("/"),
                        resource["resource"].as_str().unwrap_or_default()
                    ));
                }
            }
        }
        Ok(found)
    }

    /// The OpenAPI v3 documents of these groups and versions, when they are there.
    async fn documents(&self, name: &str, versions: &BTreeSet<String>) -> Result<BTreeMap<String, Value>, Fault> {
        let before = self.used();
        let (begin, mut bytes, mut longest) = (Instant::now(), 0, Duration::ZERO);
        let mut found = BTreeMap::new();
        for version in versions {
            let path = format!("/openapi/v3/apis/{version}");
            loop {
                let asked = Instant::now();
                let answer = self.ask("GET", &path, "application/json", None).await?;
                longest = longest.max(asked.elapsed());
                if answer.status == 200 {
                    bytes += answer.body.len();
                    let mut document = serde_json::from_slice(&answer.body).map_err(Fault::unusable)?;
                    without_prose(&mut document);
                    found.insert(version.clone(), document);
                    break;
                }
                if begin.elapsed() > PATIENCE {
                    return Err(Fault::unusable(format!("{name} has no {path}")));
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        let used = self.used().since(before);
        println!(
            "{name}: {} documents of OpenAPI v3, {} KiB together, the slowest after {longest:?}; {used}",
            found.len(),
            bytes / 1024
        );
        Ok(found)
    }

    async fn ask(&self, method: &str, path: &str, accept: &str, body: Option<&Value>) -> Result<Received, Fault> {
        let headers = [
            ("Authorization", format!("Bearer {}", users::ADMIN_TOKEN)),
            ("Accept", accept.to_owned()),
            ("Content-Type", "application/json".to_owned()),
        ];
        let sent = Sent {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
            body: body.map(|body| body.to_string().into_bytes()),
        };
        self.client.send(&sent, None).await
    }

    /// What its processes have used.
    fn used(&self) -> Used {
        self.pids
            .iter()
            .fold(Used::default(), |all, pid| all.with(&Used::of(*pid)))
    }
}

/// Takes out what is told about operations and about the types of Kubernetes itself: a server says that in its own words.
/// What definitions say stays.
fn without_prose(document: &mut Value) {
    clear_descriptions(&mut document["paths"]);
    let types = document["components"]["schemas"].as_object_mut().into_iter().flatten();
    types
        .filter(|(name, _)| name.starts_with("io.k8s."))
        .for_each(|(_, schema)| clear_descriptions(schema));
}

fn clear_descriptions(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| key != "description" || !value.is_string());
            members.values_mut().for_each(clear_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(clear_descriptions),
        _ => {}
    }
}

/// `group/version/resource` of all that is served of them.
fn resources(definitions: &[Value]) -> BTreeSet<String> {
    let each = definitions.iter().flat_map(|definition| {
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        versions(std::slice::from_ref(definition))
            .into_iter()
            .map(move |version| format!("{version}/{plural}"))
    });
    each.collect()
}

/// CPU time and memory of processes.
#[derive(Clone, Copy, Default)]
struct Used {
    cpu: Duration,
    resident: u64,
}

impl Used {
    /// Of one process; nothing where the system does not tell.
    fn of(pid: u32) -> Used {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let (stat, status) = (read("stat"), read("status"));
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        // User and system time, in hundredths of a second.
        let ticks = fields
            .split(' ')
            .skip(11)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok());
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
        Used {
            cpu: Duration::from_millis(ticks.sum::<u64>() * 10),
            resident: resident.unwrap_or_default(),
        }
    }

    fn with(self, other: &Used) -> Used {
        Used {
            cpu: self.cpu + other.cpu,
            resident: self.resident + other.resident,
        }
    }

    /// What came since then.
    fn since(self, before: Used) -> Used {
        Used {
            cpu: self.cpu.saturating_sub(before.cpu),
            resident: self.resident.saturating_sub(before.resident),
        }
    }
}

impl std::fmt::Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of CPU, {} KiB more resident", self.cpu, self.resident)
    }
}
