//! The admin's kubeconfig, with everything embedded so that the file alone is enough.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// What goes into a kubeconfig.
#[derive(Clone, Copy, Debug)]
pub struct Kubeconfig<'a> {
    /// Name of the cluster, the user (with `-admin`) and the context.
    pub name: &'a str,
    /// Where the server listens.
    pub address: SocketAddr,
    /// PEM text of the authority that vouches for the server.
    pub authority_pem: &'a str,
    /// The name to expect in the server's certificate where that isn't its address.
    pub server_name: Option<&'a str>,
    pub client_certificate_pem: &'a str,
    pub client_key_pem: &'a str,
}

impl Kubeconfig<'_> {
    /// The file's text: JSON, which is YAML too, so that no value needs quoting rules of its own.
    pub fn render(&self) -> String {
        let user = format!("{}-admin", self.name);
        let mut cluster = json!({
            "server": server_url(self.address),
            "certificate-authority-data": STANDARD.encode(self.authority_pem),
        });
        if let Some(name) = self.server_name {
            cluster["tls-server-name"] = json!(name);
        }
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": user, "user": {
                "client-certificate-data": STANDARD.encode(self.client_certificate_pem),
                "client-key-data": STANDARD.encode(self.client_key_pem),
            }}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": user}}],
            "current-context": self.name,
        });
        format!("{config:#}\n")
    }
}

/// The URL that clients on this machine use: the loopback address where the server listens on all.
pub fn server_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_embedded() {
        let text = Kubeconfig {
            name: "keelson",
            address: "0.0.0.0:6443".parse().unwrap(),
            authority_pem: "CA",
            server_name: None,
            client_certificate_pem: "CERT",
            client_key_pem: "KEY",
        }
        .render();
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:6443");
        assert_eq!(config["clusters"][0]["cluster"]["certificate-authority-data"], "Q0E=");
        assert_eq!(config["users"][0]["user"]["client-key-data"], "S0VZ");
        assert_eq!(config["contexts"][0]["context"]["user"], config["users"][0]["name"]);
    }

    #[test]
    fn urls_reach_the_server_from_here() {
        for (address, url) in [
            ("0.0.0.0:1", "https://127.0.0.1:1"),
            ("[::]:2", "https://[::1]:2"),
            ("10.1.2.3:3", "https://10.1.2.3:3"),
        ] {
            assert_eq!(server_url(address.parse().unwrap()), url);
        }
    }
}
