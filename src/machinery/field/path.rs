//! The path of a field, printed as `spec.containers[0].ports[name]`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Bytes of a key that a path keeps: more than an error shows of the path.
const MAX_KEY: usize = 2048;

/// The path of a field from the root of an object. Cloning and extending it is cheap: a path shares its parents.
#[derive(Clone, Default)]
pub struct Path(Option<Arc<Node>>);

struct Node {
    parent: Path,
    step: Step,
}

enum Step {
    Name(Cow<'static, str>),
    Index(usize),
    Key(String),
}

impl Path {
    /// A path of one or more names; dots are kept as they are, so `metadata.name` is fine.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Path {
        Path::root().child(name)
    }

    /// The object itself. Printed as `<nil>`, as API clients know it.
    pub fn root() -> Path {
        Path(None)
    }

    /// The field `name` below this one.
    #[must_use]
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Path {
        self.step(Step::Name(name.into()))
    }

    /// Element `index` of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Path {
        self.step(Step::Index(index))
    }

    /// The entry `key` of this map. A key that is longer than what an error shows of a whole path is cut, so that the
    /// paths of many errors below one long key cost no more than what is shown of them.
    #[must_use]
    pub fn key<'k>(&self, key: impl Into<Cow<'k, str>>) -> Path {
        let key = match key.into() {
            Cow::Borrowed(key) => key[..key.floor_char_boundary(MAX_KEY)].to_owned(),
            Cow::Owned(mut key) => {
                key.truncate(key.floor_char_boundary(MAX_KEY));
                key
            }
        };
        self.step(Step::Key(key))
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        self.0.is_none()
    }

    fn step(&self, step: Step) -> Path {
        Path(Some(Arc::new(Node {
            parent: self.clone(),
            step,
        })))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str("<nil>");
        }
        let mut nodes = Vec::new();
        let mut at = self;
        while let Some(node) = &at.0 {
            nodes.push(&**node);
            at = &node.parent;
        }
        for node in nodes.iter().rev() {
            match &node.step {
                Step::Name(name) if name.is_empty() => f.write_str("[]")?,
                Step::Name(name) if node.parent.is_root() => f.write_str(name)?,
                Step::Name(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<&Path> for String {
    fn from(path: &Path) -> String {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_KEY, Path};

    #[test]
    fn paths_print_as_clients_know_them() {
        let spec = Path::new("spec");
        let port = spec.child("containers").index(0).child("ports").key("http");
        assert_eq!(port.to_string(), "spec.containers[0].ports[http]");
        assert_eq!(Path::root().child("spec").to_string(), "spec");
        assert_eq!(Path::root().index(3).to_string(), "[3]");
        assert_eq!(Path::root().index(3).child("a").to_string(), "[3].a");
        assert_eq!(Path::new("").to_string(), "[]");
        let long = "é".repeat(MAX_KEY);
        for path in [spec.key(&long), spec.key(long)] {
            assert_eq!(path.to_string().len(), "spec[]".len() + MAX_KEY);
        }
        assert_eq!(Path::root().to_string(), "<nil>");
        assert_eq!(spec.to_string(), "spec", "extending a path leaves it as it was");
    }
}
