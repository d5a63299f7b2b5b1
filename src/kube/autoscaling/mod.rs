//! autoscaling: conversion of HorizontalPodAutoscaler.

mod annotations;
pub mod convert;
mod metrics;
