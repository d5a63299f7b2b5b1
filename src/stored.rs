//! The objects of a store at rest: `store check` decodes each of them, `store migrate` writes each as it is stored
//! today.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::scheme::Scheme;
use keelson_options::{OptionError, StoredObjects};
use keelson_registry::cache::Budget;
use keelson_registry::{Backend, CorruptObjects, KindCode, Registry, Resource, RuntimeConfig};
use keelson_storage::embedded::offline;
use keelson_storage::encryption::{Encryption, PREFIX};
use keelson_storage::memory::MemoryStore;
use keelson_storage::{Entry, HistoryLimits, ListOptions, Store, StoreConfig};

/// How many keys one message names.
const MAX_NAMED: usize = 20;
/// Objects between two lines of progress.
const PROGRESS: usize = 10_000;

/// The kinds of a program, and the code that belongs to them.
pub(crate) struct Kinds {
    pub schemes: Vec<&'static Scheme>,
    pub code: KindCode,
}

/// What was done with the objects of known kinds.
#[derive(Default)]
struct Tally {
    objects: usize,
    rewritten: usize,
    encrypted: usize,
    corrupt: Vec<String>,
}

impl Kinds {
    /// Does what was asked for; a line about what came of it.
    pub(crate) fn run(&self, command: &StoredObjects) -> Result<String, OptionError> {
        match command {
            StoredObjects::Check { folder, prefix } => self.check(folder, prefix),
            StoredObjects::Migrate { folder, prefix } => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.map_err(failed)?.block_on(self.migrate(folder, prefix))
            }
        }
    }

    fn registry(&self, store: Arc<dyn Store>, prefix: &str) -> Result<Registry, OptionError> {
        let backend = Backend {
            store,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            budget: Budget::new(0),
            encryption: Encryption::none(),
            placement: Arc::default(),
            corrupt: CorruptObjects::default(),
        };
        let registry = Registry::new(&self.schemes, &self.code, &backend, prefix, &RuntimeConfig::all());
        registry.map_err(failed)
    }

    fn check(&self, folder: &Path, prefix: &str) -> Result<String, OptionError> {
        let nothing = MemoryStore::new(HistoryLimits::default()).map_err(failed)?;
        let registry = self.registry(Arc::new(nothing), prefix)?;
        let held = offline::entries(folder).map_err(failed)?;
        let mut tally = Tally::default();
        for resource in registry.resources() {
            for entry in held.range(&resource.key_prefix, &resource.key_prefix) {
                tally.count(&resource, &entry);
            }
        }
        let told = format!(
            "{} objects of known kinds can be decoded{}",
            tally.decoded(),
            tally.others()
        );
        tally.verdict(told)
    }

    async fn migrate(&self, folder: &Path, prefix: &str) -> Result<String, OptionError> {
        let config = StoreConfig::Embedded {
            dir: folder.to_owned(),
            history: HistoryLimits::default(),
        };
        let store = keelson_storage::open(config).await.map_err(failed)?;
        let registry = self.registry(store.clone(), prefix)?;
        let mut tally = Tally::default();
        for resource in registry.resources() {
            let listed = store.list(&resource.key_prefix, ListOptions::default()).await;
            for entry in listed.map_err(failed)?.entries {
                if tally.count(&resource, &entry) && resource.rewrite(&entry).await.map_err(failed)? {
                    tally.rewritten += 1;
                }
                if tally.objects % PROGRESS == 0 {
                    // Whoever closed it wants to read nothing.
                    let _ = writeln!(
                        std::io::stderr(),
                        "{} objects, {} rewritten",
                        tally.objects,
                        tally.rewritten
                    );
                }
            }
        }
        store.close().await;
        let (done, all) = (tally.rewritten, tally.decoded());
        let told = format!(
            "{}: {done} of {all} objects rewritten{}",
            folder.display(),
            tally.others()
        );
        tally.verdict(told)
    }
}

impl Tally {
    /// Whether the entry can be decoded.
    fn count(&mut self, resource: &Resource, entry: &Entry) -> bool {
        self.objects += 1;
        if entry.value.starts_with(PREFIX) {
            self.encrypted += 1;
            return false;
        }
        match resource.decode(entry) {
            Ok(_) => true,
            Err(error) => {
                self.corrupt.push(error.message);
                false
            }
        }
    }

    fn decoded(&self) -> usize {
        self.objects - self.encrypted - self.corrupt.len()
    }

    fn others(&self) -> String {
        match self.encrypted {
            0 => String::new(),
            count => format!("; {count} are encrypted and were not looked into"),
        }
    }

    /// What is told, unless something can't be decoded.
    fn verdict(self, told: String) -> Result<String, OptionError> {
        if self.corrupt.is_empty() {
            return Ok(told);
        }
        let count = self.corrupt.len();
        let mut text = format!("{told}; {count} can't be decoded (each can be deleted with ");
        text.push_str("ignoreStoreReadErrorWithClusterBreakingPotential):");
        for line in self.corrupt.iter().take(MAX_NAMED) {
            text.push_str("\n  ");
            text.push_str(line);
        }
        if count > MAX_NAMED {
            text.push_str(&format!("\n  and {} more", count - MAX_NAMED));
        }
        Err(OptionError::CommandLine(text))
    }
}

fn failed(error: impl ToString) -> OptionError {
    OptionError::CommandLine(error.to_string())
}
