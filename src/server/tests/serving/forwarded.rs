//! Stores that stand before another one: the methods that they hand on to it as they are.

/// These methods of `Store`, of a type whose field `store` has the other one.
macro_rules! forwarded {
    ($($method:ident),* $(,)?) => { $(crate::forwarded::forwarded_method!($method);)* };
}

macro_rules! forwarded_method {
    (get) => {
        fn get<'a>(
            &'a self,
            key: &'a str,
        ) -> futures_util::future::BoxFuture<'a, Result<keelson_storage::Got, keelson_storage::StoreError>> {
            self.store.get(key)
        }
    };
    (list) => {
        fn list<'a>(
            &'a self,
            prefix: &'a str,
            options: keelson_storage::ListOptions,
        ) -> futures_util::future::BoxFuture<'a, Result<keelson_storage::Listed, keelson_storage::StoreError>> {
            self.store.list(prefix, options)
        }
    };
    (write) => {
        fn write<'a>(
            &'a self,
            key: &'a str,
            expect: keelson_storage::Expect,
            write: keelson_storage::Write,
        ) -> futures_util::future::BoxFuture<'a, Result<keelson_storage::Written, keelson_storage::StoreError>> {
            self.store.write(key, expect, write)
        }
    };
    (snapshot) => {
        fn snapshot<'a>(
            &'a self,
            prefix: &'a str,
        ) -> futures_util::future::BoxFuture<'a, Result<keelson_storage::Snapshot, keelson_storage::StoreError>> {
            self.store.snapshot(prefix)
        }
    };
    (held) => {
        fn held(&self, prefix: &str) -> Option<keelson_storage::Snapshot> {
            self.store.held(prefix)
        }
    };
    (events) => {
        fn events(
            &self,
            prefix: &str,
            after: keelson_storage::Position,
            until: keelson_storage::Revision,
            limit: usize,
        ) -> Option<Vec<keelson_storage::Event>> {
            self.store.events(prefix, after, until, limit)
        }
    };
    (watch) => {
        fn watch<'a>(
            &'a self,
            prefix: &'a str,
            after: keelson_storage::Revision,
        ) -> futures_util::future::BoxFuture<'a, Result<keelson_storage::WatchStream, keelson_storage::StoreError>> {
            self.store.watch(prefix, after)
        }
    };
    (request_progress) => {
        fn request_progress(&self) -> futures_util::future::BoxFuture<'_, Result<(), keelson_storage::StoreError>> {
            self.store.request_progress()
        }
    };
    (snapshot_to) => {
        fn snapshot_to<'a>(
            &'a self,
            file: &'a std::path::Path,
        ) -> futures_util::future::BoxFuture<'a, Result<(), keelson_storage::StoreError>> {
            self.store.snapshot_to(file)
        }
    };
    (current_revision) => {
        fn current_revision(
            &self,
        ) -> futures_util::future::BoxFuture<'_, Result<keelson_storage::Revision, keelson_storage::StoreError>> {
            self.store.current_revision()
        }
    };
    (compact) => {
        fn compact(
            &self,
            revision: keelson_storage::Revision,
        ) -> futures_util::future::BoxFuture<'_, Result<(), keelson_storage::StoreError>> {
            self.store.compact(revision)
        }
    };
    (grant) => {
        fn grant(
            &self,
            ttl: std::time::Duration,
        ) -> futures_util::future::BoxFuture<'_, Result<keelson_storage::LeaseId, keelson_storage::StoreError>> {
            self.store.grant(ttl)
        }
    };
    (health) => {
        fn health(&self) -> futures_util::future::BoxFuture<'_, Result<(), keelson_storage::StoreError>> {
            self.store.health()
        }
    };
    (close) => {
        fn close(&self) -> futures_util::future::BoxFuture<'_, ()> {
            self.store.close()
        }
    };
}

pub(crate) use {forwarded, forwarded_method};
