use std::time::Duration;

use bytes::Bytes;

use super::Service;
use super::fake::FakeKms;
use super::message::{DecryptResponse, EncryptResponse};
use crate::encryption::{Kms, TransformError, Transformer};

fn kms(fake: &FakeKms) -> Kms {
    Kms {
        name: "test".to_owned(),
        endpoint: fake.socket.clone(),
        timeout: Duration::from_secs(5),
    }
}

async fn started(fake: &FakeKms) -> std::sync::Arc<Service> {
    let service = Service::start(&kms(fake)).unwrap();
    service.health().await.unwrap();
    service
}

fn seal(service: &std::sync::Arc<Service>, value: &str) -> Bytes {
    service.seal(value.as_bytes(), "/k").unwrap().into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn values_come_back_and_the_service_is_asked_once_per_seed() {
    let fake = FakeKms::start();
    let writer = started(&fake).await;
    let values: Vec<Bytes> = (0..10).map(|n| seal(&writer, &format!("value {n}"))).collect();
    assert_eq!(fake.script().encrypted, 1);
    assert!(values.windows(2).all(|pair| pair[0] != pair[1]));

    let reader = started(&fake).await;
    for (n, stored) in values.iter().enumerate() {
        let opened = reader.open(stored, "/k").unwrap();
        assert_eq!(opened.value, format!("value {n}"));
        assert!(!opened.stale, "another server's seed under the same key");
    }
    assert_eq!(fake.script().decrypted, 1);
    assert_eq!(
        reader.open(&values[0], "/other").err(),
        Some(TransformError::Authentication),
        "a value is bound to its key"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_former_key_encrypted_is_stale() {
    let fake = FakeKms::start();
    let service = started(&fake).await;
    let old = seal(&service, "a");
    fake.script().key_id = "key-2".to_owned();
    let service = started(&fake).await;
    assert!(service.open(&old, "/k").unwrap().stale);
    let new = seal(&service, "a");
    assert!(!service.open(&new, "/k").unwrap().stale);
    assert!(new.windows(5).any(|bytes| bytes == b"key-2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_service_that_does_not_do_its_part_is_named() {
    let fake = FakeKms::start();
    let stored = seal(&started(&fake).await, "a");
    fake.script().healthz = "tired".to_owned();
    let service = Service::start(&kms(&fake)).unwrap();
    let reason = service.health().await.unwrap_err().to_string();
    assert!(
        reason == "kmsv2 Provider test is not healthy, error: got unexpected healthz status: tired",
        "{reason}"
    );
    let refused = service.seal(b"a", "/k").unwrap_err().to_string();
    assert!(refused.contains("KMS Provider test"), "{refused}");

    fake.script().lost.push("key-1".to_owned());
    let failed = service.open(&stored, "/k").err().unwrap().to_string();
    assert!(
        failed.ends_with("rpc error: code = Internal desc = key key-1 is gone"),
        "{failed}"
    );

    let socket = fake.socket.clone();
    drop(fake);
    let service = Service::start(&Kms {
        name: "test".to_owned(),
        endpoint: socket,
        timeout: Duration::from_secs(5),
    });
    let reason = service.unwrap().health().await.unwrap_err().to_string();
    assert!(
        reason.contains("code = Unavailable") && reason.contains("kms.sock"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_service_that_hangs_is_not_asked_for_every_value() {
    let fake = FakeKms::start();
    let stored = seal(&started(&fake).await, "a");
    fake.script().delay = Duration::from_secs(60);
    let service = Service::start(&Kms {
        timeout: Duration::from_millis(100),
        ..kms(&fake)
    })
    .unwrap();
    let first = service.open(&stored, "/k").err().unwrap();
    let began = std::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(service.open(&stored, "/k").err().as_ref(), Some(&first));
    }
    // One more attempt would take as long as the timeout; a hundred would take ten seconds.
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// Values of three servers, under a key each, and a service that does not know their seeds and gets no answer about the
/// second one.
async fn of_three_keys(fake: &FakeKms) -> ([Bytes; 3], std::sync::Arc<Service>) {
    let mut values = Vec::new();
    for key in ["key-1", "key-2", "key-3"] {
        fake.script().key_id = key.to_owned();
        values.push(seal(&started(fake).await, key));
    }
    fake.script().silent.push("key-2".to_owned());
    fake.script().key_id = "key-4".to_owned();
    (values.try_into().unwrap(), started(fake).await)
}

/// What no wait for the service may take.
const SOON: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_seed_that_is_waited_for_holds_up_no_other() {
    let fake = FakeKms::start();
    let ([known, silent, new], service) = of_three_keys(&fake).await;
    assert_eq!(service.open(&known, "/k").unwrap().value, "key-1");
    let waiting = {
        let service = service.clone();
        std::thread::spawn(move || service.open(&silent, "/k").err())
    };
    // It is asked by then.
    std::thread::sleep(Duration::from_millis(200));
    let began = std::time::Instant::now();
    assert_eq!(service.open(&known, "/k").unwrap().value, "key-1");
    assert_eq!(service.open(&new, "/k").unwrap().value, "key-3");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let refused = waiting.join().unwrap().unwrap().to_string();
    assert!(refused.contains("context deadline exceeded"), "{refused}");
}

/// On one thread: others have their turn while the service is asked, and it is asked once.
#[tokio::test]
async fn a_seed_can_be_awaited() {
    let fake = FakeKms::start();
    let ([known, silent, _], service) = of_three_keys(&fake).await;
    let (first, second) = (service.prepare(&known).unwrap(), service.prepare(&known));
    first.await;
    if let Some(second) = second {
        second.await;
    }
    assert!(service.prepare(&known).is_none());
    assert_eq!(service.open(&known, "/k").unwrap().value, "key-1");
    assert_eq!(fake.script().decrypted, 1);
    let mut hanging = service.prepare(&silent).unwrap();
    let others = tokio::time::timeout(Duration::from_millis(50), &mut hanging).await;
    assert!(others.is_err());
    hanging.await;
    let began = std::time::Instant::now();
    let refused = service.open(&silent, "/k").err().unwrap().to_string();
    assert!(refused.contains("context deadline exceeded"), "{refused}");
    assert!(began.elapsed() < SOON, "it was told before");
}

/// Written by kube-apiserver v1.36.3, with this fake as its service; in base64, without the prefix.
const RECORDED: &str = include_str!("recorded.txt");

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn values_of_kube_apiserver_are_read() {
    use base64::Engine;
    let stored = base64::engine::general_purpose::STANDARD
        .decode(RECORDED.trim())
        .unwrap();
    let fake = FakeKms::start();
    let opened = started(&fake)
        .await
        .open(&stored.into(), "/registry/secrets/default/one");
    let opened = opened.unwrap();
    assert!(opened.value.starts_with(b"k8s\0\n\x0c\n\x02v1\x12\x06Secret"));
    assert!(opened.value.windows(5).any(|bytes| bytes == b"hello"));
    assert!(!opened.stale);
}

/// Nothing is written under a seed whose encrypted form could not be read again, and nothing is read under a seed that
/// is not the one of its writer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn answers_that_make_no_sense_are_refused() {
    let honest = FakeKms::start();
    let stored = seal(&started(&honest).await, "a");
    let answers: [fn(&mut EncryptResponse); 6] = [
        |answer| answer.key_id.clear(),
        |answer| answer.key_id = "k".repeat(1025),
        |answer| answer.ciphertext.clear(),
        |answer| answer.ciphertext = vec![1; 1025],
        |answer| drop(answer.annotations.insert("nodots".to_owned(), vec![1])),
        |answer| {
            drop(
                answer
                    .annotations
                    .insert("large.example.com".to_owned(), vec![1; 40_000]),
            )
        },
    ];
    for (n, encrypts) in answers.into_iter().enumerate() {
        let fake = FakeKms::start();
        fake.script().encrypts = encrypts;
        let service = Service::start(&kms(&fake)).unwrap();
        let _ = service.health().await;
        assert!(service.seal(b"a", "/k").is_err(), "answer {n}");
    }
    let answers: [fn(&mut DecryptResponse); 5] = [
        |answer| answer.plaintext.clear(),
        |answer| answer.plaintext.push(1),
        |answer| answer.plaintext.truncate(5),
        |answer| answer.plaintext[0] ^= 1,
        |answer| answer.plaintext = vec![0; answer.plaintext.len()],
    ];
    for (n, decrypts) in answers.into_iter().enumerate() {
        honest.script().decrypts = decrypts;
        assert!(started(&honest).await.open(&stored, "/k").is_err(), "answer {n}");
    }
    honest.script().decrypts = |_| ();
    assert_eq!(started(&honest).await.open(&stored, "/k").unwrap().value, "a");
}

/// A service that encrypts under another key than it says it would: values come back, and are written anew when it is
/// of one mind again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_key_that_is_not_the_one_that_was_told_is_noted_with_the_value() {
    let fake = FakeKms::start();
    fake.script().encrypts = |answer| answer.key_id = "key-of-tomorrow".to_owned();
    let service = Service::start(&kms(&fake)).unwrap();
    let _ = service.health().await;
    if let Ok(stored) = service.seal(b"a", "/k") {
        assert!(stored.windows(15).any(|bytes| bytes == b"key-of-tomorrow"));
        fake.script().encrypts = |_| ();
        let opened = started(&fake).await.open(&stored.into(), "/k").unwrap();
        assert_eq!((opened.value, opened.stale), ("a".into(), true));
    }
}
