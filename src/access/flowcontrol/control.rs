//! Flow control as a whole: which level a request belongs to, what work it is, and its seat there. The configuration is
//! what the store holds at this moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use actix_web::http::header::HeaderValue;
use arc_swap::{ArcSwap, Guard};

use super::classify;
use super::dealer::flow_hash;
use super::level::{Asked, Level, Stopwatch};
use super::limits;
use super::queues::Arrival;
use super::spec::{self, LevelSpec, ReadFlowControl, Schema};
use super::stats::{SchemaStats, SortRatios};
use super::watchers::{OpenWatch, Watchers};
use super::work::{self, Collection, Stored, Work};
use crate::lister::{Change, Feed, Listers};
use crate::request_info::{Query, RequestInfo};
use crate::user::User;

/// How often seats are shared out anew by what levels needed.
pub const PERIOD: Duration = Duration::from_secs(10);
/// How long the measured size of a resource's objects is believed.
const SIZE_AGE: Duration = Duration::from_secs(60);
/// How many objects of a resource are measured.
const SIZE_SAMPLE: usize = 1_000;

/// The levels of a server, shared by its workers.
pub struct FlowControl {
    reader: Box<dyn ReadFlowControl>,
    sources: OnceLock<Vec<(Kind, Box<dyn Feed>)>>,
    configuration: Mutex<Configuration>,
    plan: ArcSwap<Plan>,
    stopwatch: Stopwatch,
    watchers: Arc<Watchers>,
    sorts: Mutex<SortRatios>,
    /// By the resource's keys: when it was measured, and what one object had on average, in bytes.
    sizes: Mutex<HashMap<String, (Duration, u64)>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Schema,
    Level,
}

/// What the store holds, and the levels made of it.
struct Configuration {
    schemas: BTreeMap<Box<str>, Schema>,
    levels: BTreeMap<Box<str>, LevelSpec>,
    /// With those that only wait for the end of their last requests.
    live: BTreeMap<String, Arc<Level>>,
    /// Seats of the whole server.
    server_limit: u32,
    /// The part of its target that a level gets.
    fraction: f64,
}

/// The configuration as requests need it.
#[derive(Default)]
pub struct Plan {
    /// In the order in which they are asked.
    pub schemas: Vec<Planned>,
    /// Sorted by name.
    pub levels: Vec<Arc<Level>>,
}

/// A schema and its level.
pub struct Planned {
    pub schema: Schema,
    pub uid: HeaderValue,
    pub level: Arc<Level>,
    pub level_uid: HeaderValue,
    pub stats: Arc<SchemaStats>,
}

impl FlowControl {
    /// A server that serves so many requests at once, those that read and those that may change something. It has the
    /// mandatory levels until [`FlowControl::attach`].
    pub fn new(reader: Box<dyn ReadFlowControl>, max_reads: usize, max_writes: usize) -> FlowControl {
        let count = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
        let (reads, writes) = (count(max_reads), count(max_writes));
        let control = FlowControl {
            reader,
            sources: OnceLock::new(),
            configuration: Mutex::new(Configuration {
                schemas: BTreeMap::new(),
                levels: BTreeMap::new(),
                live: BTreeMap::new(),
                server_limit: reads.saturating_add(writes),
                fraction: 1.0,
            }),
            plan: ArcSwap::default(),
            stopwatch: Stopwatch::start(),
            watchers: Arc::default(),
            sorts: Mutex::new(SortRatios::new(reads, writes)),
            sizes: Mutex::default(),
        };
        control.rebuild(&mut control.configuration());
        control
    }

    /// Hands over the objects of the server, once, before any request.
    pub fn attach(&self, listers: &dyn Listers) {
        self.sources.get_or_init(|| {
            let known = [(Kind::Level, spec::LEVELS), (Kind::Schema, spec::SCHEMAS)];
            let of = |(kind, plural)| Some((kind, listers.feed(spec::GROUP, plural)?));
            known.into_iter().filter_map(of).collect()
        });
    }

    fn configuration(&self) -> MutexGuard<'_, Configuration> {
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan as the store has it now.
    pub fn plan(&self) -> Guard<Arc<Plan>> {
        for (kind, feed) in self.sources.get().into_iter().flatten() {
            feed.catch_up(&mut |changes| {
                let mut configuration = self.configuration();
                changes
                    .into_iter()
                    .for_each(|change| self.take(&mut configuration, *kind, change));
                self.rebuild(&mut configuration);
            });
        }
        self.plan.load()
    }

    fn take(&self, configuration: &mut Configuration, kind: Kind, change: Change) {
        let Configuration { schemas, levels, .. } = configuration;
        match (kind, change) {
            (Kind::Schema, Change::Reset) => schemas.clear(),
            (Kind::Level, Change::Reset) => levels.clear(),
            (Kind::Schema, Change::Put(place, object)) => drop(match self.reader.schema(&*object) {
                Some(schema) => schemas.insert(place.name, schema),
                None => schemas.remove(&place.name),
            }),
            (Kind::Level, Change::Put(place, object)) => drop(match self.reader.level(&*object) {
                Some(level) => levels.insert(place.name, level),
                None => levels.remove(&place.name),
            }),
            (Kind::Schema, Change::Gone(place)) => drop(schemas.remove(&place.name)),
            (Kind::Level, Change::Gone(place)) => drop(levels.remove(&place.name)),
        }
    }

    /// Makes the plan of a changed configuration.
    fn rebuild(&self, configuration: &mut Configuration) {
        let mut levels = configuration.levels.clone();
        for level in LevelSpec::mandatory() {
            levels.entry(level.name.as_str().into()).or_insert(level);
        }
        let mut schemas = configuration.schemas.clone();
        for schema in Schema::mandatory() {
            schemas.entry(schema.name.as_str().into()).or_insert(schema);
        }
        for (name, spec) in &levels {
            match configuration.live.get(&**name) {
                Some(level) => level.configure(spec),
                None => {
                    let level = Level::new(spec.clone(), self.stopwatch);
                    configuration.live.insert(name.to_string(), Arc::new(level));
                }
            }
        }
        configuration
            .live
            .retain(|name, level| levels.contains_key(name.as_str()) || !level.quiesce());
        configuration.share(false);
        let before = self.plan.load();
        let planned = |schema: Schema| {
            let spec = levels.get(schema.level.as_str())?;
            let level = configuration.live.get(&schema.level)?.clone();
            let known = before.schemas.iter().find(|planned| planned.is_of(&schema, &level));
            let stats = known.map_or_else(
                || Arc::new(SchemaStats::new(&schema.name, schema.distinguisher)),
                |planned| planned.stats.clone(),
            );
            Some(Planned {
                uid: header(&schema.uid),
                level_uid: header(&spec.uid),
                level,
                stats,
                schema,
            })
        };
        let mut schemas: Vec<Planned> = schemas.into_values().filter_map(planned).collect();
        classify::sort(&mut schemas, |planned| &planned.schema);
        self.plan.store(Arc::new(Plan {
            schemas,
            levels: configuration.live.values().cloned().collect(),
        }));
    }

    /// Shares seats out anew by what levels needed since the last call; meant to be called each [`PERIOD`].
    pub fn adjust(&self) {
        let mut configuration = self.configuration();
        let gone = |level: &Arc<Level>| level.with(|state, _| state.quiescing && state.queues.is_idle());
        if configuration.live.values().any(gone) {
            self.rebuild(&mut configuration);
        }
        configuration.share(true);
    }

    /// The part of its target that each level gets that neither bound stops.
    pub fn fraction(&self) -> f64 {
        self.configuration().fraction
    }

    /// What work a request is in its level. `collection` is what it lists from.
    pub fn estimate(
        &self,
        planned: &Planned,
        info: &RequestInfo,
        query: &Query,
        collection: Option<&dyn Collection>,
    ) -> Work {
        if work::begins_with_list(info, query) {
            let stored = collection.map(|collection| self.stored(collection)).unwrap_or_default();
            return Work::of_list(info, query, stored, planned.level.max_seats());
        }
        if work::is_write(info) {
            let watches = self.watchers.interested(info);
            planned
                .stats
                .count(|counted| counted.watches.observe(f64::from(watches)));
            if watches > 0 {
                return Work::of_write(watches, planned.level.max_seats());
            }
        }
        Work::ONE
    }

    fn stored(&self, collection: &dyn Collection) -> Stored {
        let Some(objects) = collection.count() else {
            return Stored::default();
        };
        let prefix = collection.prefix();
        let now = self.stopwatch.now();
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((measured, average_bytes)) = sizes.get(prefix).copied()
            && average_bytes > 0
            && now.saturating_sub(measured) < SIZE_AGE
        {
            return Stored { objects, average_bytes };
        }
        let average_bytes = collection.average_bytes(SIZE_SAMPLE);
        // Those of resources that have gone too.
        sizes.retain(|_, (measured, _)| now.saturating_sub(*measured) < SIZE_AGE);
        sizes.insert(prefix.to_owned(), (now, average_bytes));
        Stored { objects, average_bytes }
    }

    /// Counts a watch as open until it is dropped.
    pub fn open_watch(&self, info: &RequestInfo) -> OpenWatch {
        self.watchers.open(info)
    }

    /// Counts requests by whether they may change something.
    pub fn count_sort<R>(&self, change: impl FnOnce(&mut SortRatios, Duration) -> R) -> R {
        let mut sorts = self.sorts.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut sorts, self.stopwatch.now())
    }

    pub fn stopwatch(&self) -> Stopwatch {
        self.stopwatch
    }
}

impl Configuration {
    /// Gives the levels their seats.
    fn share(&mut self, ends_period: bool) {
        let levels: Vec<&Arc<Level>> = self.live.values().collect();
        let specs: Vec<LevelSpec> = levels
            .iter()
            .map(|level| level.with(|state, _| state.spec.clone()))
            .collect();
        for (level, bounds) in levels.iter().zip(limits::bounds(specs.iter(), self.server_limit)) {
            level.set_bounds(bounds);
        }
        let needs: Vec<_> = levels.iter().map(|level| level.need(ends_period)).collect();
        let shared = limits::share(&needs);
        for (level, (target, limit)) in levels.iter().zip(shared.levels) {
            level.set_limit(target, limit);
        }
        self.fraction = shared.fraction;
    }
}

impl Plan {
    /// Which schema takes a request. Every request has one, but for those whose sender is in no group at all.
    pub fn classify(&self, user: &User, info: &RequestInfo) -> Option<&Planned> {
        let taken = self.schemas.iter().find(|planned| planned.schema.takes(user, info));
        taken.or_else(|| {
            self.schemas
                .iter()
                .find(|planned| planned.schema.name == spec::CATCH_ALL)
        })
    }
}

impl Planned {
    fn is_of(&self, schema: &Schema, level: &Arc<Level>) -> bool {
        let same_flows = self.schema.distinguisher == schema.distinguisher;
        self.schema.name == schema.name && same_flows && Arc::ptr_eq(&self.level, level)
    }

    /// A request as its level takes it in.
    pub fn arrival(&self, work: Work, user: &Arc<User>, info: &Arc<RequestInfo>) -> Arrival<Asked> {
        Arrival {
            hash: flow_hash(&self.schema.name, self.schema.flow(user, info)),
            work,
            tag: Asked {
                schema: self.stats.clone(),
                user: user.clone(),
                info: info.clone(),
            },
        }
    }
}

/// Uids are made by the server, and fit.
fn header(uid: &str) -> HeaderValue {
    HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""))
}
