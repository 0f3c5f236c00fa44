//! Packages of firmware and software.

use hub::Error;
use hub::attributes::Scope;
use hub::ota::{ChecksumAlgorithm, OtaError, Package, PackageFields, PackageRequest};
use hub::registry::{
    DeviceChange, PackageChange, PackageIds, PackageKind, PageRequest, ProfileFields, RegistryError, User,
};
use uuid::Uuid;

use super::*;

const MIB: usize = 1024 * 1024;

fn fields<'a>(title: &'a str, version: &'a str) -> PackageFields<'a> {
    let kind = PackageKind::Firmware;
    PackageFields { profile: None, kind, title, version, tag: None, url: None, additional_info: None }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n / 7) as u8).collect()
}

/// A package with bytes.
async fn uploaded(fixture: &Fixture, version: &str, bytes: &[u8]) -> Arc<Package> {
    let caller = fixture.administrator();
    let package = fixture.hub.add_package(&caller, &fields("pump", version)).unwrap();
    let mut upload = fixture.hub.upload_package(&caller, package.id, ChecksumAlgorithm::Crc32).unwrap();
    for part in bytes.chunks(100_000) {
        upload.add(part).await.unwrap();
    }
    upload.finish(None, "pump.bin", "application/octet-stream").await.unwrap()
}

fn give(fixture: &Fixture, firmware: Option<Uuid>) -> Result<Arc<Device>, Error> {
    let packages = PackageChange { firmware: Some(firmware), software: None };
    let change = DeviceChange { name: "car", packages, ..DeviceChange::default() };
    fixture.hub.change_device(&fixture.administrator(), fixture.device.id, change)
}

fn shared(fixture: &Fixture) -> Vec<(String, Value)> {
    let found = fixture.hub.attributes(&fixture.administrator(), &fixture.device, Scope::Shared, None);
    found.unwrap().into_iter().map(|one| (one.key.to_string(), one.value)).collect()
}

fn chunk(fixture: &Fixture, chunk_bytes: usize, chunk: u64) -> Result<Vec<u8>, OtaError> {
    let device = fixture.hub.registry().device_by_id(fixture.device.id).unwrap();
    fixture.hub.package_chunk(&device, PackageRequest { kind: PackageKind::Firmware, chunk_bytes, chunk })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_reads_its_package_in_chunks_of_any_length() {
    let fixture = fixture();
    let all = bytes(2 * MIB + 12_345);
    let package = uploaded(&fixture, "1", &all).await;
    assert!(matches!(chunk(&fixture, 10, 0), Err(OtaError::NotFound(_))), "it has none yet");
    give(&fixture, Some(package.id)).unwrap();
    for length in [1_000, 65_536, 65_537, MIB] {
        let mut read = Vec::new();
        for number in 0.. {
            read.extend(chunk(&fixture, length, number).unwrap());
            if read.len() >= all.len() {
                break;
            }
        }
        assert!(read == all, "chunks of {length} bytes");
        let last = all.len().div_ceil(length) as u64;
        assert!(matches!(chunk(&fixture, length, last), Err(OtaError::NotFound(_))));
    }
    assert!(matches!(chunk(&fixture, MIB + 1, 0), Err(OtaError::OverLimit { .. })));
    assert!(
        matches!(chunk(&fixture, 0, 0), Err(OtaError::OverLimit { .. })),
        "the whole is too long for one"
    );
    let small = uploaded(&fixture, "2", b"small").await;
    give(&fixture, Some(small.id)).unwrap();
    assert_eq!(chunk(&fixture, 0, 0).unwrap(), b"small");
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_attributes_follow_the_package_of_device_and_profile() {
    let fixture = fixture();
    let admin = fixture.administrator();
    let (one, two) = (uploaded(&fixture, "1", b"one").await, uploaded(&fixture, "2", b"two").await);
    let profile = fixture.device.profile.id;
    let of_profile = |firmware| {
        let packages = PackageChange { firmware: Some(firmware), software: None };
        let fields = ProfileFields { name: "default", packages, ..ProfileFields::default() };
        fixture.hub.change_profile(&admin, profile, fields, None).unwrap()
    };
    let version =
        || shared(&fixture).into_iter().find(|(key, _)| key == "fw_version").map(|(_, value)| value);
    of_profile(Some(one.id));
    let text = |text: &str| Value::String(text.to_owned());
    let expected = [
        ("fw_checksum", text(&one.file.as_ref().unwrap().checksum)),
        ("fw_checksum_algorithm", text("CRC32")),
        ("fw_size", Value::I64(3)),
        ("fw_tag", text("pump 1")),
        ("fw_title", text("pump")),
        ("fw_version", text("1")),
    ];
    assert_eq!(shared(&fixture), expected.map(|(key, value)| (key.to_owned(), value)));
    give(&fixture, Some(two.id)).unwrap();
    assert_eq!(version(), Some(text("2")));
    of_profile(None);
    assert_eq!(version(), Some(text("2")), "the device has its own");
    of_profile(Some(one.id));
    give(&fixture, None).unwrap();
    assert_eq!(version(), Some(text("1")));
    of_profile(None);
    assert_eq!(shared(&fixture), []);
    let url =
        fixture.hub.add_package(&admin, &PackageFields { url: Some("https://x/y"), ..fields("far", "3") });
    give(&fixture, Some(url.unwrap().id)).unwrap();
    assert!(shared(&fixture).contains(&("fw_url".to_owned(), text("https://x/y"))));
    assert!(chunk(&fixture, 1, 0).unwrap_err().to_string().contains("fw_url"));
    let new = NewDevice {
        name: "van",
        packages: PackageIds { firmware: Some(two.id), software: None },
        ..NewDevice::default()
    };
    let van = fixture.hub.add_device(&admin, new).unwrap().device;
    let found =
        fixture.hub.attributes(&admin, &van, Scope::Shared, Some(&["fw_version".to_owned()])).unwrap();
    assert_eq!(found[0].value, text("2"));
    let series = fixture.hub.series_of(&van).unwrap();
    let state = fixture.hub.latest(&admin, series, Some(&["fw_state".to_owned()])).unwrap();
    assert_eq!(state[0].value, text("INITIATED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_assigned_deleted_or_uploaded_is_refused() {
    let fixture = fixture();
    let (hub, admin) = (&fixture.hub, fixture.administrator());
    let refused = |result: Result<Arc<Device>, Error>, part: &str| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    };
    let empty = hub.add_package(&admin, &fields("pump", "0")).unwrap();
    refused(give(&fixture, Some(empty.id)), "no bytes yet");
    refused(give(&fixture, Some(Uuid::from_u128(5))), "no package");
    let software =
        PackageFields { kind: PackageKind::Software, url: Some("https://x"), ..fields("app", "1") };
    let software = hub.add_package(&admin, &software).unwrap();
    refused(give(&fixture, Some(software.id)), "its type is SOFTWARE");
    let other = hub.add_profile(&admin, ProfileFields { name: "truck", ..ProfileFields::default() }).unwrap();
    let of_other = PackageFields { profile: Some(other.id), url: Some("https://x"), ..fields("other", "1") };
    let of_other = hub.add_package(&admin, &of_other).unwrap();
    refused(give(&fixture, Some(of_other.id)), "another profile");
    let twice = hub.add_package(&admin, &fields("pump", "0")).unwrap_err();
    assert!(matches!(twice, OtaError::Registry(RegistryError::Exists { .. })), "{twice}");
    let package = uploaded(&fixture, "1", b"one").await;
    let again = hub.upload_package(&admin, package.id, ChecksumAlgorithm::Md5).unwrap_err().to_string();
    assert!(again.contains("never change"), "{again}");
    give(&fixture, Some(package.id)).unwrap();
    let used = hub.delete_package(&admin, package.id).unwrap_err();
    assert!(matches!(used, OtaError::Registry(RegistryError::StillUsed { count: 1, .. })), "{used}");
    give(&fixture, None).unwrap();
    hub.delete_package(&admin, package.id).unwrap();
    assert!(hub.package(&admin, package.id).is_err());
    let mut first = hub.upload_package(&admin, empty.id, ChecksumAlgorithm::Sha256).unwrap();
    let second = hub.upload_package(&admin, empty.id, ChecksumAlgorithm::Sha256).unwrap_err().to_string();
    assert!(second.contains("another request"), "{second}");
    assert!(hub.delete_package(&admin, empty.id).unwrap_err().to_string().contains("being uploaded"));
    first.add(b"bytes").await.unwrap();
    let wrong = first.finish(Some("00"), "a", "b/c").await.unwrap_err().to_string();
    assert!(wrong.contains("SHA256 checksum is"), "{wrong}");
    assert_eq!(hub.package(&admin, empty.id).unwrap().file, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_does_not_end_leaves_nothing_after_the_cleaning() {
    let fixture = fixture();
    let (hub, admin) = (&fixture.hub, fixture.administrator());
    let kept = uploaded(&fixture, "1", &bytes(MIB)).await;
    let package = hub.add_package(&admin, &fields("pump", "2")).unwrap();
    let mut upload = hub.upload_package(&admin, package.id, ChecksumAlgorithm::Sha512).unwrap();
    upload.add(&bytes(2 * MIB)).await.unwrap();
    assert_eq!(hub.clean_packages().unwrap(), 0, "it is under way");
    drop(upload);
    assert_eq!((hub.clean_packages().unwrap(), hub.clean_packages().unwrap()), (1, 0));
    give(&fixture, Some(kept.id)).unwrap();
    assert_eq!(chunk(&fixture, MIB, 0).unwrap(), bytes(MIB));
    // A shorter upload after one that did not end.
    let mut upload = hub.upload_package(&admin, package.id, ChecksumAlgorithm::Sha512).unwrap();
    upload.add(&bytes(2 * MIB)).await.unwrap();
    drop(upload);
    let mut upload = hub.upload_package(&admin, package.id, ChecksumAlgorithm::Sha512).unwrap();
    upload.add(b"short").await.unwrap();
    upload.finish(None, "s", "text/plain").await.unwrap();
    assert_eq!(hub.package_bytes(&admin, package.id, 0, MIB).unwrap(), b"short");
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_there_after_a_start_and_an_unfinished_change_is_told() {
    let fixture = fixture();
    let package = uploaded(&fixture, "1", b"one").await;
    give(&fixture, Some(package.id)).unwrap();
    // A crash after the registry has the package and before the attributes: the record of the change is there.
    let keys = ["fw_title", "fw_version"].map(str::to_owned);
    fixture.hub.delete_attributes(&fixture.administrator(), &fixture.device, Scope::Shared, &keys).unwrap();
    let mut batch = kv::WriteBatch::new();
    let key = [&[0][..], fixture.device.id.as_bytes()].concat();
    batch.put(kv::Space::new("package_changes"), key, fixture.device.tenant.as_bytes().to_vec());
    kv::KeyValueStore::commit(&*fixture.kv, &batch).unwrap();
    let Fixture { store, kv, hub, device, _directory: directory } = fixture;
    // A crash closes nothing.
    drop(hub);
    let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
    let (shared_store, limits): (Arc<dyn Store>, _) = (Arc::clone(&store) as _, IngestLimits::default());
    let hub =
        Hub::start(shared_store, Arc::clone(&kv) as _, registry, limits, Arc::new(Metrics::new())).unwrap();
    let fixture = Fixture { store, kv, hub, device, _directory: directory };
    assert_eq!(fixture.hub.resume_package_changes().unwrap(), 1);
    assert_eq!(fixture.hub.resume_package_changes().unwrap(), 0);
    assert!(shared(&fixture).contains(&("fw_title".to_owned(), Value::String("pump".into()))));
    assert_eq!(chunk(&fixture, 10, 0).unwrap(), b"one");
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_for_administrators_and_readers_of_their_tenant() {
    let fixture = fixture();
    let (hub, admin) = (&fixture.hub, fixture.administrator());
    let package = uploaded(&fixture, "1", b"one").await;
    let foreign = hub.add_tenant(&admin, "other", "root@other.example", "a long password").unwrap();
    let tenant = fixture.device.tenant;
    let user = |tenant, role, customer| {
        Caller::user(&User { tenant, role, customer, login: "ann".into(), ..User::default() })
    };
    let all = PageRequest { page_size: 10, ..PageRequest::default() };
    for (caller, reads) in [
        (Caller::public(tenant), true),
        (user(tenant, Role::Viewer, None), true),
        (user(tenant, Role::Operator, None), true),
        // No device of the customer has it.
        (user(tenant, Role::Customer, Some(Uuid::from_u128(3))), false),
        (Caller::local(foreign.id), false),
    ] {
        let who = format!("{} of {}", caller.role(), caller.tenant());
        assert_eq!(hub.package(&caller, package.id).is_ok(), reads, "{who}");
        let page = hub.packages_page(&caller, all, |_| true).unwrap();
        assert_eq!(page.data.len(), usize::from(reads), "{who}");
        assert!(hub.package_bytes(&caller, package.id, 0, 1).is_err(), "{who}");
        assert!(hub.change_package(&caller, package.id, &fields("pump", "1")).is_err(), "{who}");
        assert!(hub.upload_package(&caller, package.id, ChecksumAlgorithm::Md5).is_err(), "{who}");
        assert!(hub.delete_package(&caller, package.id).is_err(), "{who}");
        let may_add = caller.role() == Role::Administrator;
        assert_eq!(hub.add_package(&caller, &fields("new", "1")).is_ok(), may_add, "{who}");
    }
    let info = PackageFields { additional_info: Some("{}"), ..fields("pump", "1") };
    assert_eq!(hub.change_package(&admin, package.id, &info).unwrap().additional_info.as_deref(), Some("{}"));
    assert!(hub.change_package(&admin, package.id, &fields("pump", "2")).is_err());
    hub.delete_tenant(&admin, "other").unwrap();
    hub.drop_deleted_tables().unwrap();
    assert_eq!(hub.packages_page(&Caller::local(foreign.id), all, |_| true).unwrap().data.len(), 0);
}
