//! A store whose writes a test meddles with: other writers are faster, the store fails, or takes its time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use keelson_server::server::Config;
use keelson_storage::{Entry, Expect, ListOptions, Store, StoreError, Write, Written};

use crate::forwarded::forwarded;

/// What becomes of a write.
pub enum Meddling {
    /// It is made as it comes.
    Nothing,
    /// Another writer was faster, and put this there.
    Put(Bytes),
    /// Another writer was faster, and wrote again what is there.
    Touched,
    /// Another writer was faster, and removed what is there.
    Removed,
    /// It is not made.
    Failed(StoreError),
    /// It is made after a while.
    Late(Duration),
}

/// See the module's description.
pub struct Meddled {
    pub store: Arc<dyn Store>,
    plan: Mutex<VecDeque<Meddling>>,
}

impl Meddled {
    /// In the place of a configuration's store.
    pub fn of(config: &mut Config) -> Arc<Meddled> {
        let meddled = Arc::new(Meddled {
            store: config.storage.store.clone(),
            plan: Mutex::default(),
        });
        config.storage.store = meddled.clone();
        meddled
    }

    /// What becomes of the next writes; later ones are made as they come.
    pub fn plan(&self, meddlings: impl IntoIterator<Item = Meddling>) {
        *self.plan.lock().unwrap() = meddlings.into_iter().collect();
    }

    /// Writes that are planned for and have not come.
    pub fn planned(&self) -> usize {
        self.plan.lock().unwrap().len()
    }

    /// What is stored of the object of this name.
    pub async fn entry(&self, name: &str) -> Option<Entry> {
        let all = self.store.list("/registry/shop/", ListOptions::default()).await;
        let mut all = all.unwrap().entries.into_iter();
        all.find(|entry| entry.key.ends_with(&format!("/default/{name}")))
    }

    async fn written(&self, key: &str, write: Write) {
        let there = self.store.get(key).await.unwrap().entry;
        let expect = there.map_or(Expect::Absent, |entry| Expect::Revision(entry.mod_revision));
        let written = self.store.write(key, expect, write).await.unwrap();
        assert!(matches!(written, Written::Done { .. }));
    }
}

impl Store for Meddled {
    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>> {
        let meddling = self.plan.lock().unwrap().pop_front().unwrap_or(Meddling::Nothing);
        let there = |value| Write::Put { value, lease: None };
        async move {
            match meddling {
                Meddling::Nothing => {}
                Meddling::Put(value) => self.written(key, there(value)).await,
                Meddling::Touched => {
                    let entry = self.store.get(key).await?.entry.expect("nothing is there");
                    self.written(key, there(entry.value.clone())).await;
                }
                Meddling::Removed => self.written(key, Write::Delete).await,
                Meddling::Failed(error) => return Err(error),
                Meddling::Late(by) => tokio::time::sleep(by).await,
            }
            self.store.write(key, expect, write).await
        }
        .boxed()
    }

    forwarded!(
        get,
        list,
        snapshot,
        held,
        events,
        watch,
        request_progress,
        current_revision,
        compact,
        grant,
        health,
        close,
    );
}
