//! Sweeps the cluster of the current kubeconfig once.

use std::time::{SystemTime, UNIX_EPOCH};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let deleted = janitor::sweep(&kube::Client::try_default().await?, now).await?;
    println!("deleted {deleted}");
    Ok(())
}
