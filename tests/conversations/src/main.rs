//! Plays recorded conversations against a server, or records them anew.

#![allow(clippy::print_stdout, reason = "a program that says what it does")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser};
use keelson_conversations::batch;
use keelson_conversations::case::{Recorded, case_files};
use keelson_conversations::client::Address;
use keelson_conversations::definitions::{self, Definitions};
use keelson_conversations::fault::Fault;
use keelson_conversations::generate::{self, Differ};
use keelson_conversations::play::{Player, Target, Thoroughness};
use keelson_conversations::{record, report, suite, users};

/// Recorded conversations with kube-apiserver.
#[derive(Parser)]
enum Command {
    /// Plays cases against a server and says where its answers differ.
    Play(Play),
    /// Writes a server's answers into the cases. Only sensible with a real kube-apiserver.
    Record(Cases),
    /// Writes cases in the layout of all, with their expected answers folded.
    Fold {
        /// Files of cases, or folders of them.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Generates cases about admission, records them from a real kube-apiserver and plays them against a server.
    Differ {
        /// The URL of the real kube-apiserver.
        #[arg(long, value_name = "URL")]
        oracle: Address,
        /// The server's URL.
        #[arg(long, value_name = "URL")]
        server: Address,
        /// Cases at once.
        #[arg(long, default_value_t = 4)]
        jobs: usize,
        #[command(flatten)]
        differ: Differ,
    },
    /// Has a real kube-apiserver and a server load all definitions that cases create, tells what it took, and compares
    /// the OpenAPI documents of their groups.
    Definitions {
        /// The URL of the real kube-apiserver.
        #[arg(long, value_name = "URL")]
        oracle: Address,
        /// The server's URL.
        #[arg(long, value_name = "URL")]
        server: Address,
        #[command(flatten)]
        definitions: Definitions,
    },
    /// Copies an area's files with `{area}` filled in, and prints the flags that its server is started with.
    Flags {
        /// The area's folder.
        area: PathBuf,
        /// Where the copy goes.
        copy: PathBuf,
        /// The flags that the area's file FLAGS changes.
        #[arg(last = true)]
        base: Vec<String>,
    },
}

#[derive(Args)]
struct Play {
    #[command(flatten)]
    cases: Cases,
    /// Differences in texts for humans count too.
    #[arg(long)]
    strict: bool,
    /// Only the totals.
    #[arg(short, long)]
    quiet: bool,
    /// Writes the outcome of every case to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Args)]
struct Cases {
    /// The server's URL.
    #[arg(long, value_name = "URL")]
    server: Address,
    /// The bearer token of a member of system:masters.
    #[arg(long, default_value = users::ADMIN_TOKEN)]
    token: String,
    /// The bearer token of another user; alice and bob have theirs.
    #[arg(long, value_name = "NAME=TOKEN", value_parser = pair)]
    user: Vec<(String, String)>,
    /// The authorities of the server's certificate (PEM). Without it any certificate is taken.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The server's audit log, for cases that read it.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// The server's etcd, for cases that read it; without it they are left out.
    #[arg(long, value_name = "URL")]
    etcd: Option<Address>,
    /// The copy of the area that the server reads (see `flags`), for areas with files of their own.
    #[arg(long, value_name = "FOLDER")]
    copy: Option<PathBuf>,
    /// Cases at once.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Files of cases, or folders of them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, token) = text.split_once('=').ok_or("NAME=TOKEN is expected")?;
    Ok((name.to_owned(), token.to_owned()))
}

fn main() -> ExitCode {
    let command = Command::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = runtime.map_err(Fault::unusable).and_then(|runtime| match command {
        Command::Play(play) => runtime.block_on(run(play)),
        Command::Record(cases) => runtime.block_on(record_all(cases)),
        Command::Differ {
            oracle,
            server,
            jobs,
            differ,
        } => runtime.block_on(compared(oracle, server, jobs, &differ)),
        Command::Definitions {
            oracle,
            server,
            definitions,
        } => runtime.block_on(definitions::compare(&definitions, oracle, server)),
        Command::Fold { paths } => fold(&paths),
        Command::Flags { area, copy, base } => flags(&area, &copy, &base),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            println!("conversations: {fault}");
            ExitCode::from(2)
        }
    }
}

async fn run(play: Play) -> Result<bool, Fault> {
    let jobs = play.cases.jobs;
    let (player, cases) = prepared(play.cases).await?;
    let cases = cases.into_iter().map(|case| (case, Thoroughness::Whole)).collect();
    let outcomes = batch::play(&Arc::new(player), cases, jobs).await;
    for outcome in outcomes
        .iter()
        .filter(|outcome| !play.quiet && !outcome.passed(play.strict))
    {
        println!("FAIL {}", outcome.differences(play.strict));
    }
    println!("{}", report::totals(&outcomes, play.strict));
    if let Some(file) = &play.report {
        report::write(file, &outcomes, play.strict).map_err(Fault::unusable)?;
    }
    Ok(outcomes.iter().all(|outcome| outcome.passed(play.strict)))
}

async fn record_all(cases: Cases) -> Result<bool, Fault> {
    let (player, cases) = prepared(cases).await?;
    let mut well = true;
    for recorded in cases {
        match record::record(&player, &recorded).await {
            Ok(()) => println!("recorded {}", recorded.label()),
            Err(fault) => {
                well = false;
                println!("FAIL {}: {fault}", recorded.label());
            }
        }
    }
    Ok(well)
}

async fn compared(oracle: Address, server: Address, jobs: usize, differ: &Differ) -> Result<bool, Fault> {
    let player = |server| {
        Player::connect(Target {
            server,
            ca: None,
            tokens: users::tokens(),
            audit_log: None,
            etcd: None,
            copy: None,
        })
    };
    generate::differ(differ, player(oracle).await?, player(server).await?, jobs).await
}

/// A player, and the cases that it can play.
async fn prepared(options: Cases) -> Result<(Player, Vec<Arc<Recorded>>), Fault> {
    let mut tokens = users::tokens();
    tokens.insert("admin".into(), options.token);
    tokens.extend(options.user.into_iter().collect::<BTreeMap<_, _>>());
    let player = Player::connect(Target {
        server: options.server,
        ca: options.ca,
        tokens,
        audit_log: options.audit_log,
        etcd: options.etcd,
        copy: options.copy,
    })
    .await?;
    let mut cases = Vec::new();
    for file in case_files(&options.paths).map_err(Fault::unusable)? {
        let recorded = Recorded::read(&file).map_err(Fault::Unusable)?;
        match player.can_play(&recorded) {
            true => cases.push(Arc::new(recorded)),
            false => println!("skipped: {} reads etcd, and there is no --etcd", recorded.label()),
        }
    }
    Ok((player, cases))
}

fn fold(paths: &[PathBuf]) -> Result<bool, Fault> {
    for file in case_files(paths).map_err(Fault::unusable)? {
        record::fold_file(&Recorded::read(&file).map_err(Fault::Unusable)?)?;
    }
    Ok(true)
}

fn flags(area: &std::path::Path, copy: &std::path::Path, base: &[String]) -> Result<bool, Fault> {
    let copy = std::path::absolute(copy).map_err(Fault::unusable)?;
    for flag in suite::flags_of(area, &copy, base)? {
        println!("{flag}");
    }
    Ok(true)
}
