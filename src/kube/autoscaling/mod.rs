//! autoscaling: conversion of HorizontalPodAutoscaler.

pub mod convert;
