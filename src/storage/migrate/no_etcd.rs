//! Migration from etcd in a program that was built without it: etcd can't be reached.

use super::{Exported, Filler, Options, Progress};
use crate::embedded::offline::Contents;
use crate::{EtcdConfig, Revision, StoreError};

pub(super) enum Source {}

impl Source {
    pub async fn connect(_: &EtcdConfig) -> Result<Source, StoreError> {
        Err(absent())
    }

    pub async fn read(&self, _: &Options, _: &mut Filler, _: Progress<'_>) -> Result<Revision, StoreError> {
        match *self {}
    }
}

pub(super) async fn write(_: &EtcdConfig, _: &Contents, _: &Options, _: Progress<'_>) -> Result<Exported, StoreError> {
    Err(absent())
}

fn absent() -> StoreError {
    StoreError::Unavailable("etcd: this program was built without it".to_owned())
}
