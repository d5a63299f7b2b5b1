//! The group rbac.authorization.k8s.io.

pub mod binding;
