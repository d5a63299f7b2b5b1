//! Choosing the entries of a list.

use std::collections::VecDeque;

use keelson_base::cooperative::Slices;
use keelson_machinery::selector::label::Operator;
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, ListOptions, Recent, Revision, Snapshot};

use super::Resource;
use super::derive::History;
use crate::cache::{Found, Items, Objects, Term, Wanted};

/// How often a newer snapshot is taken because indexes had gone beyond it.
const SNAPSHOTS: usize = 4;

/// What a list asks for.
pub struct Query<'a> {
    /// Empty: of all namespaces.
    pub namespace: &'a str,
    /// Those whose labels it selects.
    pub labels: &'a LabelSelector,
    /// Those whose fields it selects.
    pub fields: &'a FieldSelector,
    /// At most so many; 0: all.
    pub limit: usize,
    /// As of this revision; `None`: now.
    pub revision: Option<Revision>,
    /// From this key on.
    pub from: Option<String>,
    /// Keys from `from` on, if an earlier page has counted them.
    pub left: Option<usize>,
}

impl Query<'_> {
    fn is_selective(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_everything()
    }
}

/// The entries of a list.
pub struct Chosen {
    /// In the order of their keys.
    pub items: Items,
    /// As of which revision.
    pub revision: Revision,
    /// Where the next page begins; `None`: this is the last.
    pub next: Option<Next>,
}

/// The page after a limited one.
pub struct Next {
    /// The last key of this page.
    pub last: String,
    /// How many keys follow, selected or not; `None`: not counted, since selectors leave it open.
    pub left: Option<usize>,
}

impl Resource {
    /// The entries that a query selects, in the order of their keys.
    pub async fn select(&self, query: &Query<'_>) -> Result<Chosen, StatusError> {
        let store = &self.backend.store;
        for _ in 0..SNAPSHOTS {
            let recent = store.recent(&self.key_prefix).await;
            let snapshot = match recent.map_err(|e| self.store_error(e))? {
                Recent::Held(snapshot) => snapshot,
                Recent::Behind(revision) => return self.select_elsewhere(query, revision).await,
            };
            if query.revision.is_some_and(|revision| revision != snapshot.revision()) {
                return self.select_past(query).await;
            }
            if let Some(chosen) = self.select_in(query, &snapshot).await? {
                return Ok(chosen);
            }
        }
        // Writers and other readers were faster each time: without indexes, then.
        let snapshot = store
            .snapshot(&self.key_prefix)
            .await
            .map_err(|e| self.store_error(e))?;
        self.scan(query, &snapshot).await
    }

    /// `None`: a newer snapshot is needed.
    async fn select_in(&self, query: &Query<'_>, snapshot: &Snapshot) -> Result<Option<Chosen>, StatusError> {
        if !query.is_selective() {
            return self.page(query, snapshot).map(Some);
        }
        let prefix = self.prefix(query.namespace)?;
        if let Some(name) = query.fields.required_value("metadata.name")
            && (!self.hub.namespaced || !query.namespace.is_empty())
        {
            let entry = snapshot.get(&format!("{prefix}{name}"));
            return self.filter(query, snapshot, entry.into_iter()).await.map(Some);
        }
        let history = History {
            resource: self,
            snapshot,
        };
        let objects = Objects {
            snapshot,
            root: &self.key_prefix,
            source: &history,
        };
        match self.indexes.find(&self.wanted(query), &objects, &prefix).await? {
            Found::Keys(keys) => {
                let entries = keys.iter().filter_map(|key| snapshot.get(key));
                self.filter(query, snapshot, entries).await.map(Some)
            }
            Found::Scan => self.scan(query, snapshot).await.map(Some),
            Found::Stale => Ok(None),
        }
    }

    /// A page without selectors: nothing is looked at but its entries.
    fn page(&self, query: &Query<'_>, snapshot: &Snapshot) -> Result<Chosen, StatusError> {
        let prefix = self.prefix(query.namespace)?;
        let from = query.from.clone().unwrap_or_else(|| prefix.clone());
        let mut next = None;
        if query.limit > 0 {
            let mut rest = snapshot.range(&prefix, &from).skip(query.limit - 1);
            let (last, more) = (rest.next(), rest.next().is_some());
            if let Some(last) = last.filter(|_| more) {
                let all = query.left.unwrap_or_else(|| match query.from {
                    None => snapshot.count(&prefix),
                    Some(_) => snapshot.range(&prefix, &from).count(),
                });
                next = Some(Next {
                    last: last.key.to_string(),
                    left: Some(all.saturating_sub(query.limit)),
                });
            }
        }
        Ok(Chosen {
            items: Items::Range {
                snapshot: snapshot.clone(),
                prefix,
                next: from,
                left: if query.limit > 0 { query.limit } else { usize::MAX },
            },
            revision: snapshot.revision(),
            next,
        })
    }

    async fn scan(&self, query: &Query<'_>, snapshot: &Snapshot) -> Result<Chosen, StatusError> {
        let prefix = self.prefix(query.namespace)?;
        let from = query.from.as_deref().unwrap_or(&prefix);
        self.filter(query, snapshot, snapshot.range(&prefix, from)).await
    }

    /// The selected ones among entries in the order of their keys.
    async fn filter(
        &self,
        query: &Query<'_>,
        snapshot: &Snapshot,
        entries: impl Iterator<Item = Entry>,
    ) -> Result<Chosen, StatusError> {
        let mut chosen = VecDeque::new();
        let mut next = None;
        let mut slices = Slices::begin();
        let wanted = |entry: &Entry| query.from.as_deref().is_none_or(|from| *entry.key >= *from);
        let mut entries = self.readable(entries.filter(wanted));
        while let Some(entry) = entries.next().await? {
            slices.between().await;
            if !self.selects(query, &entry)? {
                continue;
            }
            chosen.push_back(entry);
            if chosen.len() == query.limit {
                next = self.next_after(query, snapshot, &chosen)?;
                break;
            }
        }
        Ok(Chosen {
            items: Items::These(chosen),
            revision: snapshot.revision(),
            next,
        })
    }

    /// There is another page if any key follows, whether or not it is selected.
    fn next_after(
        &self,
        query: &Query<'_>,
        snapshot: &Snapshot,
        chosen: &VecDeque<Entry>,
    ) -> Result<Option<Next>, StatusError> {
        let Some(last) = chosen.back().map(|entry| entry.key.to_string()) else {
            return Ok(None);
        };
        let after = format!("{last}\0");
        let more = snapshot.range(&self.prefix(query.namespace)?, &after).next().is_some();
        Ok(more.then_some(Next { last, left: None }))
    }

    fn selects(&self, query: &Query<'_>, entry: &Entry) -> Result<bool, StatusError> {
        self.matches(query.labels, query.fields, entry)
    }

    /// Whether selectors select an entry.
    pub fn matches(&self, labels: &LabelSelector, fields: &FieldSelector, entry: &Entry) -> Result<bool, StatusError> {
        let meta = self.meta(entry)?;
        let by_labels = labels.matches_by(|key| meta.label(key));
        Ok(by_labels && (fields.is_everything() || fields.matches(|label| self.field(entry, meta, label))))
    }

    /// The terms of the selectors that an index may answer.
    fn wanted<'a>(&self, query: &'a Query<'_>) -> Vec<Wanted<'a>> {
        let fields = query.fields.terms().iter().filter(|term| !term.negated);
        let fields = fields.filter_map(|term| {
            let place = self.selectable.iter().position(|path| *path == term.field)?;
            Some(Wanted {
                term: Term::Field(place),
                values: vec![&term.value],
            })
        });
        let labels = query.labels.requirements().iter();
        let labels =
            labels.filter(|r| matches!(r.operator(), Operator::In | Operator::Equals | Operator::DoubleEquals));
        let labels = labels.map(|r| Wanted {
            term: Term::Label(r.key().into()),
            values: r.values().iter().map(String::as_str).collect(),
        });
        fields.chain(labels).collect()
    }

    /// What memory can't say: the store reads where it lies, and no more than is asked for. A list of the newest state
    /// may be one that others have read meanwhile, if it shows `at_least` this revision.
    async fn select_elsewhere(&self, query: &Query<'_>, at_least: Revision) -> Result<Chosen, StatusError> {
        let name = query.fields.required_value("metadata.name");
        let in_place = !self.hub.namespaced || !query.namespace.is_empty();
        match name.filter(|_| in_place && query.revision.is_none()) {
            Some(name) => self.select_one(query, name).await,
            None => self.select_listed(query, Some(at_least)).await,
        }
    }

    /// The object of a name, if it is selected.
    async fn select_one(&self, query: &Query<'_>, name: &str) -> Result<Chosen, StatusError> {
        let key = format!("{}{name}", self.prefix(query.namespace)?);
        let got = self.backend.store.get(&key).await.map_err(|e| self.store_error(e))?;
        let mut items = VecDeque::new();
        if let Some(entry) = got.entry {
            self.prepare(&entry).await?;
            let is_wanted = query.from.as_deref().is_none_or(|from| *entry.key >= *from);
            if is_wanted && self.selects(query, &entry)? {
                items.push_back(entry);
            }
        }
        Ok(Chosen {
            items: Items::These(items),
            revision: got.revision,
            next: None,
        })
    }

    /// A list at a revision that is not the newest: the store looks into its history.
    async fn select_past(&self, query: &Query<'_>) -> Result<Chosen, StatusError> {
        self.select_listed(query, None).await
    }

    async fn select_listed(&self, query: &Query<'_>, at_least: Option<Revision>) -> Result<Chosen, StatusError> {
        let prefix = self.prefix(query.namespace)?;
        let options = ListOptions {
            revision: query.revision,
            at_least,
            limit: if query.is_selective() { 0 } else { query.limit },
            from: query.from.clone(),
        };
        let listed = self
            .backend
            .store
            .list(&prefix, options)
            .await
            .map_err(|e| self.store_error(e))?;
        let mut chosen = VecDeque::new();
        let mut looked_at = 0;
        let mut slices = Slices::begin();
        let mut entries = self.readable(listed.entries.iter().cloned());
        while query.limit == 0 || chosen.len() < query.limit {
            let Some(entry) = entries.next().await? else {
                break;
            };
            looked_at += 1;
            slices.between().await;
            if !query.is_selective() || self.selects(query, &entry)? {
                chosen.push_back(entry);
            }
        }
        let left = listed.count.saturating_sub(looked_at);
        let last = looked_at.checked_sub(1).and_then(|i| listed.entries.get(i));
        let next = last.filter(|_| left > 0).map(|last| Next {
            last: last.key.to_string(),
            left: (!query.is_selective()).then_some(left),
        });
        Ok(Chosen {
            items: Items::These(chosen),
            revision: listed.revision,
            next,
        })
    }
}

#[cfg(test)]
mod tests;
