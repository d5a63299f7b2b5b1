//! The ledger: takes amounts from quotas, by writing how much is used into their status before an object is written.
//!
//! One thread writes for the whole server, the requests that wait for a namespace at once, so that many writers cost
//! few writes of quotas. Each write compares: whatever else changes a quota, no more is taken than there is, also by
//! several servers on one store. What a request took that came to nothing is given back, unless somebody else has
//! written the quota since: then the used amounts may have been counted anew without it, and giving it back would count
//! it twice.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use keelson_api::core::v1::ResourceQuota;
use keelson_machinery::status::StatusError;
use keelson_registry::{Client, TypedObjects, Verbs};
use tokio::sync::{mpsc, oneshot};

use super::amounts::Amounts;
use super::check::{Taken, take};

/// Who owns the status of quotas in `managedFields`.
const MANAGER: &str = "kube-apiserver";

/// Why nothing was taken.
pub enum Refused {
    /// A quota would be exceeded; the words for the client.
    Exceeded(String),
    /// A quota could not be written.
    Failed(StatusError),
}

/// What was taken from one quota.
pub struct Entry {
    quota: String,
    uid: String,
    amounts: Amounts,
    /// The span of time in which nobody else has written the quota.
    span: u64,
}

/// Takes amounts for the server that `verbs` are of.
#[derive(Default)]
pub struct Ledger {
    verbs: Mutex<Weak<Verbs>>,
    orders: Mutex<Option<mpsc::UnboundedSender<Order>>>,
}

struct Order {
    namespace: String,
    what: What,
}

enum What {
    Take(Take),
    GiveBack(Vec<Entry>),
}

struct Take {
    taken: Vec<Taken>,
    is_bounded: bool,
    answer: oneshot::Sender<Result<Vec<Entry>, Refused>>,
}

impl Ledger {
    /// Writes through these.
    pub fn attach(&self, verbs: &Arc<Verbs>) {
        *self.verbs.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(verbs);
    }

    /// Takes from quotas of a namespace: all, or nothing. `is_bounded`: not more than there is.
    ///
    /// # Errors
    /// There is not enough, or a quota can't be written.
    pub async fn take(&self, namespace: &str, taken: Vec<Taken>, is_bounded: bool) -> Result<Receipt, Refused> {
        let (answer, answered) = oneshot::channel();
        let orders = self.orders().map_err(failed)?;
        let what = What::Take(Take {
            taken,
            is_bounded,
            answer,
        });
        let order = Order {
            namespace: namespace.to_owned(),
            what,
        };
        orders
            .send(order)
            .map_err(|_| failed("the thread of quotas has ended"))?;
        let answered = answered.await.map_err(|_| failed("the thread of quotas has ended"))?;
        answered.map(|entries| Receipt {
            namespace: namespace.to_owned(),
            entries,
            orders,
        })
    }

    /// The thread begins with the first order.
    fn orders(&self) -> std::io::Result<mpsc::UnboundedSender<Order>> {
        let mut held = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = held.as_ref().filter(|orders| !orders.is_closed()) {
            return Ok(orders.clone());
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        let verbs = self.verbs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || tokio::task::LocalSet::new().block_on(&runtime, follow(receiver, verbs));
        std::thread::Builder::new().name("quotas".to_owned()).spawn(run)?;
        *held = Some(sender.clone());
        Ok(sender)
    }
}

fn failed(why: impl std::fmt::Display) -> Refused {
    Refused::Failed(StatusError::internal_error(why))
}

/// What was taken from quotas of a namespace. Dropped, it is given back.
pub struct Receipt {
    namespace: String,
    entries: Vec<Entry>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Receipt {
    /// It stays taken.
    pub fn keep(mut self) {
        self.entries.clear();
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        if entries.is_empty() {
            return;
        }
        let order = Order {
            namespace: std::mem::take(&mut self.namespace),
            what: What::GiveBack(entries),
        };
        // A server that ends counts no more.
        let _ = self.orders.send(order);
    }
}

/// The orders that wait, by namespace, and the namespaces that are being worked on.
#[derive(Default)]
struct Backlog {
    waiting: HashMap<String, Vec<What>>,
    busy: HashSet<String>,
}

async fn follow(mut orders: mpsc::UnboundedReceiver<Order>, verbs: Weak<Verbs>) {
    let backlog = Rc::new(RefCell::new(Backlog::default()));
    let book = Rc::new(Book {
        verbs,
        spans: RefCell::default(),
    });
    while let Some(order) = orders.recv().await {
        let namespace = order.namespace;
        let mut held = backlog.borrow_mut();
        held.waiting.entry(namespace.clone()).or_default().push(order.what);
        if held.busy.insert(namespace.clone()) {
            tokio::task::spawn_local(work(backlog.clone(), book.clone(), namespace));
        }
    }
}

/// Does what waits for a namespace, until nothing does.
async fn work(backlog: Rc<RefCell<Backlog>>, book: Rc<Book>, namespace: String) {
    loop {
        let waiting = {
            let mut held = backlog.borrow_mut();
            let waiting = held.waiting.remove(&namespace);
            if waiting.is_none() {
                held.busy.remove(&namespace);
            }
            waiting
        };
        match waiting {
            Some(all) => book.process(&namespace, all).await,
            None => return,
        }
    }
}

/// What is known of the quotas that were written here.
struct Book {
    verbs: Weak<Verbs>,
    /// By uid: the version that was written last, and the number of its span.
    spans: RefCell<HashMap<String, (String, u64)>>,
}

/// A request while it takes.
struct Taking {
    take: Take,
    entries: Vec<Entry>,
    refused: Option<Refused>,
}

impl Taking {
    /// What it takes of a quota, if it has not been refused.
    fn wants(&self, quota: &str) -> Option<&Amounts> {
        let of = |taken: &&Taken| taken.quota == quota;
        let taken = self.take.taken.iter().find(of).filter(|_| self.refused.is_none());
        taken.map(|taken| &taken.amounts)
    }
}

/// What became of a request at one quota.
enum Fate {
    Taken(Amounts),
    Exceeded(String),
}

impl Book {
    async fn process(&self, namespace: &str, all: Vec<What>) {
        let (mut takings, mut returned) = (Vec::new(), Vec::new());
        for what in all {
            match what {
                What::GiveBack(entries) => returned.extend(entries),
                What::Take(take) => takings.push(Taking {
                    take,
                    entries: Vec::new(),
                    refused: None,
                }),
            }
        }
        let objects = self.objects(namespace);
        let names: BTreeSet<String> = {
            let wanted = takings
                .iter()
                .flat_map(|taking| &taking.take.taken)
                .map(|taken| taken.quota.clone());
            wanted.chain(returned.iter().map(|entry| entry.quota.clone())).collect()
        };
        for name in names {
            match &objects {
                Ok(objects) => self.write(objects, &name, &mut takings, &returned).await,
                Err(error) => refuse(&mut takings, &name, error),
            }
        }
        let mut back = Vec::new();
        for taking in takings {
            back.extend(answer(taking));
        }
        if let Ok(objects) = &objects {
            let names: BTreeSet<String> = back.iter().map(|entry| entry.quota.clone()).collect();
            for name in names {
                self.write(objects, &name, &mut [], &back).await;
            }
        }
    }

    fn objects(&self, namespace: &str) -> Result<TypedObjects<ResourceQuota>, StatusError> {
        let verbs = self.verbs.upgrade();
        let verbs = verbs.ok_or_else(|| StatusError::internal_error("the server is ending"))?;
        let client = Client::of_server(verbs, MANAGER);
        client.of::<ResourceQuota>(namespace)?.subresource("status")
    }

    /// Takes from one quota for all who want of it, and gives back what was returned.
    async fn write(
        &self,
        objects: &TypedObjects<ResourceQuota>,
        name: &str,
        takings: &mut [Taking],
        returned: &[Entry],
    ) {
        let (mut fates, mut uid, mut span) = (Vec::new(), String::new(), 0);
        let updated = objects.update(name, |quota| {
            (uid, span) = (quota.metadata.uid.clone(), self.span_of(quota));
            let back = returned
                .iter()
                .filter(|entry| (&entry.uid, entry.span) == (&uid, span) && entry.quota == name);
            back.for_each(|entry| give_back(quota, &entry.amounts));
            fates = takings.iter().map(|taking| fate(quota, taking)).collect();
        });
        match updated.await {
            Ok(quota) => self.wrote(&quota, span),
            // A quota that is gone bounds nothing.
            Err(error) if error.code == 404 => return,
            Err(error) => return refuse(takings, name, &error),
        }
        for (taking, fate) in takings.iter_mut().zip(fates) {
            match fate {
                None => {}
                Some(Fate::Exceeded(why)) => taking.refused = Some(Refused::Exceeded(why)),
                Some(Fate::Taken(amounts)) => taking.entries.push(Entry {
                    quota: name.to_owned(),
                    uid: uid.clone(),
                    amounts,
                    span,
                }),
            }
        }
    }

    /// A version that was not written here begins another span.
    fn span_of(&self, quota: &ResourceQuota) -> u64 {
        let spans = self.spans.borrow();
        match spans.get(&quota.metadata.uid) {
            Some((version, span)) if *version == quota.metadata.resource_version => *span,
            Some((_, span)) => span + 1,
            None => 0,
        }
    }

    fn wrote(&self, quota: &ResourceQuota, span: u64) {
        /// Quotas that are remembered; of more, all are forgotten, and what was taken of them stays taken.
        const MOST: usize = 10_000;
        let mut spans = self.spans.borrow_mut();
        if spans.len() >= MOST {
            spans.clear();
        }
        let version = quota.metadata.resource_version.clone();
        spans.insert(quota.metadata.uid.clone(), (version, span));
    }
}

/// Takes for a request, if it wants anything of the quota.
fn fate(quota: &mut ResourceQuota, taking: &Taking) -> Option<Fate> {
    let amounts = taking.wants(&quota.metadata.name)?;
    Some(match take(quota, amounts, taking.take.is_bounded) {
        Ok(used) => {
            quota.status.used = used;
            Fate::Taken(amounts.clone())
        }
        Err(exceeded) => Fate::Exceeded(exceeded.to_string()),
    })
}

fn give_back(quota: &mut ResourceQuota, amounts: &Amounts) {
    for (name, amount) in amounts {
        if let Some(used) = quota.status.used.get_mut(name) {
            let left = used.minus(amount);
            *used = if left.is_negative() { Default::default() } else { left };
        }
    }
}

/// Refuses all who want of a quota.
fn refuse(takings: &mut [Taking], name: &str, error: &StatusError) {
    for taking in takings {
        if taking.wants(name).is_some() {
            taking.refused = Some(Refused::Failed(error.clone()));
        }
    }
}

/// Tells a request what became of it. Returns what it has to give back.
fn answer(taking: Taking) -> Vec<Entry> {
    match taking.refused {
        Some(refused) => {
            // Who does not wait any longer does not mind.
            let _ = taking.take.answer.send(Err(refused));
            taking.entries
        }
        None => match taking.take.answer.send(Ok(taking.entries)) {
            Err(Ok(entries)) => entries,
            Ok(()) | Err(Err(_)) => Vec::new(),
        },
    }
}
