//! Pods that are deleted by steps: with grace or without, held by a finalizer or not, by requests that are interrupted,
//! while others change them.

use std::time::Duration;

use http::Method;
use keelson_history::{Act, Grace, Key, Life, Step, Version};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::Shared;
use super::client::{Client, Failure};
use super::object::Kind;
use super::pod::{self, TOUCHES};
use super::vanish;
use super::world::{Phase, World};
use super::writers::{self, Manner, Sent};

/// The pause between two steps, in milliseconds.
const PAUSE: u64 = 20;
/// A deletion that gets no answer is tried so often.
const ATTEMPTS: usize = 20;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// A client and its pod.
struct Owner<'a> {
    world: &'a World,
    rng: SmallRng,
    clients: Vec<Client>,
    number: usize,
    key: Key,
    /// How often the pod was touched.
    touches: u32,
}

/// A step that is to be made, and how.
struct Plan {
    act: Act,
    manner: Manner,
    sent: Sent,
}

/// Makes pods and deletes them.
pub async fn delete(world: Shared, number: usize, mut rng: SmallRng) {
    let targets = world.targets.iter();
    let clients = targets.map(|target| Client::new(target.clone(), rng.random()));
    let mut owner = Owner {
        world: &world,
        clients: clients.collect(),
        rng,
        number,
        key: 0,
        touches: 0,
    };
    while world.phase() == Phase::Running {
        // A pod lives in one timeline.
        let turn = world.gate.read().await;
        owner.key = world.new_key();
        owner.live().await;
        drop(turn);
        tokio::time::sleep(Duration::from_millis(PAUSE)).await;
    }
}

impl Owner<'_> {
    async fn live(&mut self) {
        self.touches = 0;
        let held = self.rng.random_ratio(1, 3);
        let made = self.step(Act::Create, Manner::Patient, held).await;
        if !matches!(made, Life::Shown(_)) {
            return;
        }
        if self.rng.random_ratio(1, 4) {
            self.delete(Grace::Own).await;
        }
        self.delete(Grace::Now).await;
        if held {
            self.until_done(Act::Release).await;
        }
        self.step(Act::Read, Manner::Patient, false).await;
    }

    /// First perhaps by a request that is interrupted, perhaps while somebody else changes the pod.
    async fn delete(&mut self, grace: Grace) {
        let manner = match self.rng.random_range(0..4) {
            0 => Manner::Hurried(self.rng.random_range(1..=8)),
            1 => vanish::leaving(&mut self.rng),
            _ => Manner::Patient,
        };
        match self.rng.random_ratio(1, 3) {
            true => self.delete_and_touch(grace, manner).await,
            false => drop(self.step(Act::Delete(grace), manner, false).await),
        }
        self.step(Act::Read, Manner::Patient, false).await;
        if manner != Manner::Patient {
            self.until_done(Act::Delete(grace)).await;
            self.step(Act::Read, Manner::Patient, false).await;
        }
    }

    async fn delete_and_touch(&mut self, grace: Grace, manner: Manner) {
        let (delete, touch) = (
            self.plan(Act::Delete(grace), manner, false),
            self.plan(Act::Touch, Manner::Patient, false),
        );
        let server = self.rng.random_range(0..self.clients.len());
        let mut other = Client::new(self.world.targets[server].clone(), false);
        // connected before the deletion is sent
        let _ = other.get("/livez").await;
        let (world, number, key) = (self.world, self.number, self.key);
        let first = self.rng.random_range(0..self.clients.len());
        let client = &mut self.clients[first];
        tokio::join!(
            make(world, client, (number, first), key, delete),
            make(world, &mut other, (number, server), key, touch)
        );
    }

    /// Until it is answered, or is not to be.
    async fn until_done(&mut self, act: Act) {
        for _ in 0..ATTEMPTS {
            let life = self.step(act, Manner::Patient, false).await;
            if matches!(life, Life::Shown(_) | Life::Absent) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10 * PAUSE)).await;
        }
    }

    async fn step(&mut self, act: Act, manner: Manner, held: bool) -> Life {
        let plan = self.plan(act, manner, held);
        let server = self.rng.random_range(0..self.clients.len());
        let client = &mut self.clients[server];
        make(self.world, client, (self.number, server), self.key, plan).await
    }

    fn plan(&mut self, act: Act, manner: Manner, held: bool) -> Plan {
        self.touches += u32::from(act == Act::Touch);
        let sent = sent(self.key, act, held, self.touches.min(TOUCHES));
        Plan { act, manner, sent }
    }
}

/// Makes a step and records it.
async fn make(world: &World, client: &mut Client, who: (usize, usize), key: Key, plan: Plan) -> Life {
    let Plan { act, manner, sent } = plan;
    let begin = world.now();
    let answer = writers::answer(world, client, who.1, sent, manner).await;
    let life = life(world, act, answer);
    world.steps.lock().unwrap().push(Step {
        client: who.0,
        key,
        act,
        begin,
        end: world.now(),
        life,
    });
    life
}

fn sent(key: Key, act: Act, held: bool, touch: u32) -> Sent {
    let path = Kind::Pod.object(key);
    let (method, path, kind, body) = match act {
        Act::Create => {
            let path = Kind::Pod.path().to_owned();
            (Method::POST, path, JSON, pod::pod(key, held).to_string())
        }
        Act::Delete(Grace::Now) => (Method::DELETE, path, JSON, json!({"gracePeriodSeconds": 0}).to_string()),
        Act::Delete(Grace::Own) => (Method::DELETE, path, JSON, String::new()),
        Act::Touch => (Method::PATCH, path, MERGE, pod::touch(touch).to_string()),
        Act::Release => (Method::PATCH, path, MERGE, pod::release().to_string()),
        Act::Read => (Method::GET, path, JSON, String::new()),
    };
    Sent {
        method,
        path,
        kind,
        body,
    }
}

fn life(world: &World, act: Act, answer: Result<(u16, Value), Failure>) -> Life {
    let (status, body) = match answer {
        Ok(answer) => answer,
        Err(Failure::NotSent) => return Life::Refused,
        Err(Failure::Lost) => return Life::Unknown,
    };
    match (status, act) {
        (200..300, _) => {
            // What a deletion answers may be of a revision that nobody is told of otherwise.
            if !matches!(act, Act::Delete(_) | Act::Release) {
                world.lane(Kind::Pod).read(world, &body);
            }
            Life::Shown(pod::state(&body))
        }
        (404, Act::Create) => Life::Refused,
        (404, _) => Life::Absent,
        (408, _) => Life::Unknown,
        (400..500, _) => Life::Refused,
        _ => Life::Unknown,
    }
}

/// Makes a pod that stays.
pub async fn make_last(world: &World, client: &mut Client) -> Option<(Key, Version)> {
    let pod = pod::pod(world.new_key(), false).to_string();
    let (_, made) = client.call(Method::POST, Kind::Pod.path(), JSON, pod).await.ok()?;
    world.lane(Kind::Pod).read(world, &made)
}

/// Reads every pod that was made in this timeline, for the last time.
pub async fn look_back(world: &World) {
    let mut client = Client::new(world.targets[0].clone(), false);
    let since = world.border().map_or(0, |border| border.up);
    let keys: Vec<Key> = {
        let steps = world.steps.lock().unwrap();
        let made = steps
            .iter()
            .filter(|step| step.act == Act::Create && step.begin >= since);
        made.map(|step| step.key).collect()
    };
    for key in keys {
        let begin = world.now();
        let Ok((status, body)) = client.get(&Kind::Pod.object(key)).await else {
            continue;
        };
        let life = match status {
            200 => Life::Shown(pod::state(&body)),
            404 => Life::Absent,
            _ => continue,
        };
        world.steps.lock().unwrap().push(Step {
            client: usize::MAX,
            key,
            act: Act::Read,
            begin,
            end: world.now(),
            life,
        });
    }
}
