//! The schemas of definitions, read: a request validates one, controllers serve it a moment later, and versions often
//! say the same. All of them share what was read once.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use keelson_api::apiextensions_k8s_io::v1::JSONSchemaProps;
use keelson_machinery::lazy::Lazy;
use keelson_machinery::reflect::Bytes;
use keelson_machinery::structural::{JsonSchema, SchemaError};

/// Bytes of texts that are kept for a while although nobody uses them.
const MAX_RECENT: usize = 4 << 20;
/// The same of those that were validated and are not served yet: somebody will use them in a moment, or never.
const MAX_AWAITED: usize = 8 << 20;

/// A schema that a definition says. What it is read as is kept only as long as somebody uses it: a resource without
/// objects has no need of it.
#[derive(Debug)]
pub struct Schema {
    /// JSON, as the definition shows it.
    pub text: Bytes,
    parsed: Mutex<Weak<JsonSchema>>,
}

impl Schema {
    /// What it says.
    pub fn parsed(&self) -> Arc<JsonSchema> {
        let mut known = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = known.upgrade() {
            return parsed;
        }
        // It was read before.
        let parsed = Arc::new(JsonSchema::parse(&self.text).unwrap_or_default());
        *known = Arc::downgrade(&parsed);
        parsed
    }
}

/// Schemas that are in use, and those that were lately.
struct Pool {
    /// By the hash of their texts.
    known: HashMap<u64, Vec<Weak<Schema>>>,
    /// How many places `known` had when it was cleaned.
    cleaned: usize,
    awaited: Recent,
    served: Recent,
}

impl Default for Pool {
    fn default() -> Self {
        Pool {
            known: HashMap::new(),
            cleaned: 0,
            awaited: Recent::of(MAX_AWAITED),
            served: Recent::of(MAX_RECENT),
        }
    }
}

/// Schemas that were read lately, and what they were read as.
struct Recent {
    /// The oldest first.
    queue: VecDeque<(Arc<Schema>, Arc<JsonSchema>)>,
    /// Bytes of their texts, and how many there may be.
    bytes: usize,
    most: usize,
}

impl Recent {
    fn of(most: usize) -> Recent {
        let queue = VecDeque::new();
        Recent { queue, bytes: 0, most }
    }

    fn push(&mut self, schema: Arc<Schema>, parsed: Arc<JsonSchema>) {
        self.bytes += schema.text.len();
        self.queue.push_back((schema, parsed));
        while self.bytes > self.most
            && let Some((oldest, _)) = self.queue.pop_front()
        {
            self.bytes -= oldest.text.len();
        }
    }

    fn take(&mut self, schema: &Arc<Schema>) -> Option<(Arc<Schema>, Arc<JsonSchema>)> {
        let place = self.queue.iter().position(|(known, _)| Arc::ptr_eq(known, schema))?;
        let taken = self.queue.remove(place)?;
        self.bytes -= taken.0.text.len();
        Some(taken)
    }
}

static POOL: Mutex<Option<Pool>> = Mutex::new(None);

/// The schema that a definition says, and what it is read as.
///
/// # Errors
/// Schemas that nest too deep.
pub fn read(schema: &Lazy<JSONSchemaProps>) -> Result<(Arc<Schema>, Arc<JsonSchema>), SchemaError> {
    let text = schema.text();
    let hash = hash_of(text);
    if let Some(found) = with_pool(|pool| pool.find(hash, text)) {
        let parsed = found.parsed();
        return Ok((found, parsed));
    }
    // Nobody waits while it is read.
    let parsed = Arc::new(JsonSchema::parse(text)?);
    let schema = Arc::new(Schema {
        text: text.clone(),
        parsed: Mutex::new(Arc::downgrade(&parsed)),
    });
    with_pool(|pool| pool.keep(hash, (&schema, &parsed)));
    Ok((schema, parsed))
}

/// Says that a schema is served: it need not be read again for that.
pub fn served(schema: &Arc<Schema>) {
    with_pool(|pool| pool.served(schema));
}

/// Of a long text by its ends: what differs in between alone is compared.
fn hash_of(text: &[u8]) -> u64 {
    const END: usize = 4 << 10;
    let mut hasher = DefaultHasher::new();
    text.len().hash(&mut hasher);
    let (begin, rest) = text.split_at(text.len().min(END));
    begin.hash(&mut hasher);
    rest[rest.len().saturating_sub(END)..].hash(&mut hasher);
    hasher.finish()
}

fn with_pool<T>(act: impl FnOnce(&mut Pool) -> T) -> T {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    act(pool.get_or_insert_default())
}

impl Pool {
    fn find(&self, hash: u64, text: &[u8]) -> Option<Arc<Schema>> {
        let mut alike = self.known.get(&hash)?.iter().filter_map(Weak::upgrade);
        alike.find(|schema| schema.text == text)
    }

    fn keep(&mut self, hash: u64, (schema, parsed): (&Arc<Schema>, &Arc<JsonSchema>)) {
        self.known.entry(hash).or_default().push(Arc::downgrade(schema));
        self.awaited.push(schema.clone(), parsed.clone());
        if self.known.len() > 2 * self.cleaned + 64 {
            self.known.retain(|_, alike| {
                alike.retain(|schema| schema.strong_count() > 0);
                !alike.is_empty()
            });
            self.cleaned = self.known.len();
        }
    }

    fn served(&mut self, schema: &Arc<Schema>) {
        if let Some((schema, parsed)) = self.awaited.take(schema) {
            self.served.push(schema, parsed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelson_machinery::json;

    fn schema(text: &str) -> Arc<Schema> {
        let mut props = JSONSchemaProps::default();
        json::read(text.as_bytes(), &mut props).unwrap();
        read(&props.into()).unwrap().0
    }

    #[test]
    fn what_says_the_same_is_read_once() {
        let text = r#"{"type":"object","properties":{"what-says-the-same":{"type":"string"}}}"#;
        let (one, other) = (schema(text), schema(&format!(" {text}")));
        assert!(Arc::ptr_eq(&one, &other));
        let different = schema(&text.replace("string", "integer"));
        assert!(!Arc::ptr_eq(&one, &different) && different.text != one.text);
        assert!(one.parsed().property("what-says-the-same").is_some());
    }

    #[test]
    fn what_nobody_uses_is_let_go() {
        let mut pool = Pool::default();
        let made = |n: usize| {
            Arc::new(Schema {
                text: [&n.to_le_bytes()[..], &vec![0; MAX_RECENT / 8]].concat().into(),
                parsed: Mutex::default(),
            })
        };
        let used = made(0);
        pool.keep(0, (&used, &Arc::default()));
        for n in 1..500 {
            let made = made(n);
            pool.keep(n as u64, (&made, &Arc::default()));
            pool.served(&made);
        }
        assert_eq!(pool.awaited.queue.len(), 1, "the first one is awaited");
        assert!(pool.served.bytes <= MAX_RECENT && pool.served.queue.len() <= 8 && pool.known.len() < 200);
        pool.served(&used);
        assert!(pool.awaited.queue.is_empty() && pool.awaited.bytes == 0);
        (500..1000).for_each(|n| pool.keep(n, (&made(n as usize), &Arc::default())));
        assert!(pool.awaited.bytes <= MAX_AWAITED && pool.awaited.queue.len() <= 16 && pool.known.len() < 400);
        assert!(pool.find(0, &used.text).is_some() && pool.find(1, &made(1).text).is_none());
    }
}
