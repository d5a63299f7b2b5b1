//! Runs random traffic with faults against servers that it starts, and checks what the clients saw.
//!
//! A seed decides what is asked and which faults come when; how the processes' threads meet it does not decide, so that
//! a seed that found something may have to be run more than once to find it again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test program: it says what it does, and what fails here fails the run, as it should"
)]

mod attack;
mod crash;
mod disk;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use run::situations::Situation;
use run::{Settings, Store};

/// Traffic and faults against servers that this program starts, and a check of everything that their clients saw.
#[derive(Parser)]
struct Args {
    /// The server's program. Default: the keelson beside this program.
    #[arg(long, global = true)]
    server: Option<PathBuf>,
    /// The first seed; random if absent.
    #[arg(long, global = true)]
    seed: Option<u64>,
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Random traffic with faults on each store, and a check of what clients saw.
    Traffic(Traffic),
    /// A server with an embedded store that is killed and ended, again and again, after loads of all kinds.
    Crash {
        /// How often it is ended.
        #[arg(long, default_value_t = 50)]
        rounds: u64,
        /// So many objects are there from the beginning, and no round touches them.
        #[arg(long, default_value_t = 0)]
        held: u64,
        /// The restarts that are measured at the end have so many objects more; 0: none are measured.
        #[arg(long, default_value_t = 10_000)]
        objects: u64,
    },
    /// A server whose disk fails, or is full, and works again.
    Disk,
    /// Floods of frames, slow clients, masses of watches and connections, on a server under load (of a release build).
    Attack {
        /// The attacks; all of them if absent.
        attacks: Vec<attack::Attack>,
        /// Seconds of each.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Milliseconds within which 99 of 100 reads of a quiet user are answered.
        #[arg(long, default_value_t = 90)]
        p99: u64,
    },
}

#[derive(clap::Args)]
struct Traffic {
    /// etcd's program. Default: ETCD_BIN. Without one the etcd store is left out, unless KEELSON_REQUIRE_ETCD=1.
    #[arg(long)]
    etcd: Option<PathBuf>,
    /// The stores to run on.
    #[arg(long, value_delimiter = ',', default_value = "memory,embedded,etcd")]
    stores: Vec<Store>,
    /// Seconds of traffic of each run.
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// What is not to happen beside the ordinary traffic.
    #[arg(long, value_delimiter = ',')]
    without: Vec<Situation>,
    /// So many seeds, one after the other, on each store.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Goes on with further seeds until so many minutes are over.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let beside = || std::env::current_exe().unwrap().with_file_name("keelson");
    let program = args.server.unwrap_or_else(beside);
    assert!(program.is_file(), "there is no server at {}", program.display());
    let seed = args
        .seed
        .unwrap_or_else(|| u64::from(SmallRng::from_os_rng().next_u32()));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    match args.what {
        What::Traffic(args) => runtime.block_on(traffic(program, args, seed)),
        What::Crash { rounds, held, objects } => {
            let plan = crash::Plan {
                rounds,
                held,
                objects,
                seed,
            };
            runtime.block_on(crash::run(&program, plan));
            ExitCode::SUCCESS
        }
        What::Attack { attacks, seconds, p99 } => {
            let plan = attack::Plan {
                attacks,
                time: Duration::from_secs(seconds),
                p99: Duration::from_millis(p99),
            };
            ExitCode::from(u8::from(!runtime.block_on(attack::run(&program, plan))))
        }
        What::Disk => {
            runtime.block_on(disk::run(&program));
            runtime.block_on(disk::full::run(&program));
            ExitCode::SUCCESS
        }
    }
}

async fn traffic(program: PathBuf, args: Traffic, first: u64) -> ExitCode {
    let required = std::env::var_os("KEELSON_REQUIRE_ETCD").is_some_and(|value| value == "1");
    let etcd = args.etcd.or_else(|| std::env::var_os("ETCD_BIN").map(PathBuf::from));
    let mut failed = 0;
    let begin = Instant::now();
    let goes_on = |seed: &u64| *seed < first + args.seeds || begin.elapsed() < Duration::from_secs(60 * args.minutes);
    let mut runs = 0;
    for seed in (first..).take_while(goes_on) {
        for store in &args.stores {
            if *store == Store::Etcd && etcd.is_none() {
                assert!(!required, "etcd is missing, and it must not be: set ETCD_BIN");
                println!("Etcd: skipped, there is no ETCD_BIN");
                continue;
            }
            let settings = Settings {
                program: program.clone(),
                etcd: etcd.clone(),
                store: *store,
                time: Duration::from_secs(args.seconds),
                seed,
                situations: Situation::all_but(&args.without),
            };
            runs += 1;
            failed += usize::from(!run::run(settings).await);
        }
    }
    let minutes = begin.elapsed().as_secs() / 60;
    println!("{failed} of {runs} runs with violations, {minutes} minutes");
    ExitCode::from(u8::from(failed > 0))
}
