//! What every store promises, and what each one promises beyond.

mod cases;
mod contract;
