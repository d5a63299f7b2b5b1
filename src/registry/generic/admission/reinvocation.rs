//! Reinvocation: plug-ins that mutate are called a second time when what others made of the object asks for it.

use std::any::Any;

/// What the two rounds of one request know of each other.
#[derive(Default)]
pub struct Reinvocation {
    is_wanted: bool,
    is_second: bool,
    /// By the name of a plug-in.
    kept: Vec<(&'static str, Box<dyn Any>)>,
}

impl Reinvocation {
    /// All plug-ins are to be called once more when all were called. In the second round this changes nothing.
    pub fn request(&mut self) {
        self.is_wanted = true;
    }

    /// This is the second round.
    pub fn is_second(&self) -> bool {
        self.is_second
    }

    /// Whether there is a second round; it begins then.
    pub(super) fn begin(&mut self) -> bool {
        self.is_second = self.is_wanted;
        self.is_second
    }

    /// Takes out what a plug-in kept in the round before.
    pub fn take<T: Any>(&mut self, plugin: &str) -> Option<T> {
        let place = self.kept.iter().position(|(name, _)| *name == plugin)?;
        let kept = self.kept.swap_remove(place).1.downcast::<T>();
        kept.ok().map(|kept| *kept)
    }

    /// Keeps something for the round that may follow.
    pub fn keep<T: Any>(&mut self, plugin: &'static str, what: T) {
        self.kept.push((plugin, Box::new(what)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_two_rounds_at_most() {
        let mut reinvocation = Reinvocation::default();
        assert!(!reinvocation.begin());
        reinvocation.request();
        assert!(!reinvocation.is_second());
        assert!(reinvocation.begin() && reinvocation.is_second());
        reinvocation.keep("a", 1u8);
        assert_eq!(reinvocation.take::<u8>("b"), None);
        assert_eq!(reinvocation.take::<u8>("a"), Some(1));
        assert_eq!(reinvocation.take::<u8>("a"), None);
    }
}
