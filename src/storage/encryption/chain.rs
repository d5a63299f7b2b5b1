//! Transformers behind prefixes: the first one writes, any one reads.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};

use super::{Opened, TransformError, Transformer};

/// The providers of a resource, or the keys of a provider.
pub(super) struct Chain {
    links: Vec<Link>,
    /// What is wrong with a value that has none of the prefixes.
    unknown: TransformError,
}

pub(super) struct Link {
    /// Empty: values as they are.
    pub prefix: Vec<u8>,
    pub transformer: Box<dyn Transformer>,
}

impl Chain {
    pub fn new(links: Vec<Link>, unknown: TransformError) -> Chain {
        Chain { links, unknown }
    }
}

impl Transformer for Chain {
    fn prepare(&self, stored: &Bytes) -> Option<BoxFuture<'static, ()>> {
        let fit = self.links.iter().filter(|link| stored.starts_with(&link.prefix));
        let asked: Vec<_> = fit
            .filter_map(|link| link.transformer.prepare(&stored.slice(link.prefix.len()..)))
            .collect();
        (!asked.is_empty()).then(|| join_all(asked).map(drop).boxed())
    }

    fn open(&self, stored: &Bytes, key: &str) -> Result<Opened, TransformError> {
        let mut errors: Vec<TransformError> = Vec::new();
        for (n, link) in self.links.iter().enumerate() {
            if !stored.starts_with(&link.prefix) {
                continue;
            }
            match link.transformer.open(&stored.slice(link.prefix.len()..), key) {
                Ok(opened) => {
                    return Ok(Opened {
                        stale: opened.stale || n > 0,
                        ..opened
                    });
                }
                // Values as they are fit anything; that one is none says nothing.
                Err(_) if link.prefix.is_empty() => {}
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        match (errors.pop(), errors.is_empty()) {
            (None, _) => Err(self.unknown.clone()),
            (Some(only), true) => Err(only),
            (Some(last), false) => {
                errors.push(last);
                Err(TransformError::Several(errors))
            }
        }
    }

    fn seal(&self, value: &[u8], key: &str) -> Result<Vec<u8>, TransformError> {
        let first = self.links.first().ok_or(TransformError::NoPrefix)?;
        let sealed = first.transformer.seal(value, key)?;
        Ok([&first.prefix[..], &sealed].concat())
    }
}
