//! Promises of the connection layer, over real sockets with real clients.

// `cfg(test)` always holds here; clippy wants to see it before it takes the helpers for test code.
#[cfg(test)]
mod floods;
#[cfg(test)]
mod http1;
#[cfg(test)]
mod http2;
#[cfg(test)]
mod setting;
#[cfg(test)]
mod smuggling;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod upgrade;
