use std::collections::HashSet;
use std::sync::Arc;

use model::{Blame, Durability};
use uuid::Uuid;

use super::*;

#[test]
fn an_added_device_is_found_by_id_name_and_token() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let added = registry.add_device(tenant, new_device("truck 7")).unwrap();
    assert!(added.created);
    assert_eq!(added.credentials.id().len(), 20);
    let profile = &added.device.profile;
    let facts = (profile.name.as_str(), profile.table.name(), profile.durability);
    assert_eq!(facts, ("default", "telemetry", Durability::Fsync));
    assert_eq!(registry.device_by_token(added.credentials.id()), Some(Arc::clone(&added.device)));
    assert_eq!(registry.device_by_id(added.device.id), Some(Arc::clone(&added.device)));
    assert_eq!(registry.device_by_name(tenant, "truck 7"), Some(Arc::clone(&added.device)));
    assert_eq!(registry.credentials_of(added.device.id).unwrap(), added.credentials);
    assert_eq!(registry.device_by_token("nobody's"), None);
    assert_eq!(registry.device_by_name(Uuid::nil(), "truck 7"), None);
}

#[test]
fn names_of_any_script_survive_a_restart() {
    let fixture = Fixture::new();
    let names = ["Lkw Größe", "грузовик", "卡车-7", "🚚", "a'b\"; DROP TABLE device; --", "%s\\"];
    let registry = fixture.open();
    for name in names {
        registry.add_device(registry.default_tenant(), new_device(name)).unwrap();
    }
    let before = everything(&registry);
    drop(registry);
    let registry = fixture.open();
    assert_eq!(everything(&registry), before);
    let found =
        registry.devices_page(registry.default_tenant(), page(0, 10, Some("ГРУЗ")), |_| true).unwrap();
    assert_eq!(found.data[0].name, "грузовик");
}

#[test]
fn bad_names_and_tokens_are_refused_with_the_reason() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let add = |name: &str, token: Option<&str>| {
        let refused =
            registry.add_device(registry.default_tenant(), NewDevice { name, token, ..NewDevice::default() });
        let error = refused.unwrap_err();
        assert_eq!(error.blame(), Blame::Caller, "{error}");
        error.to_string()
    };
    assert!(add("", None).contains("empty"));
    assert!(add("a\nb", None).contains("U+000A"));
    assert!(add(&"n".repeat(256), None).contains("limit is 255"));
    assert!(add("a", Some("")).contains("visible ASCII"));
    assert!(add("a", Some("to ken")).contains("visible ASCII"));
    assert!(add("a", Some("tökén")).contains("visible ASCII"));
    assert!(add("a", Some(&"t".repeat(256))).contains("limit is 255"));
    let unknown = NewDevice { name: "a", profile: Some("lorry"), token: None, ..NewDevice::default() };
    let error = registry.add_device(registry.default_tenant(), unknown).unwrap_err().to_string();
    assert!(error.contains("no profile \"lorry\""), "{error}");
    let error = registry.add_device(Uuid::nil(), new_device("a")).unwrap_err().to_string();
    assert!(error.contains("no tenant"), "{error}");
    assert_eq!(registry.device_count(), 0);
}

#[test]
fn duplicates_are_refused_without_naming_the_token() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let with_token = |name| NewDevice { name, token: Some("secret-1"), ..NewDevice::default() };
    registry.add_device(tenant, with_token("one")).unwrap();
    let same_name = registry.add_device(tenant, new_device("one")).unwrap_err().to_string();
    assert!(same_name.contains("the device \"one\" exists already"), "{same_name}");
    let same_token = registry.add_device(tenant, with_token("two")).unwrap_err().to_string();
    assert!(same_token.contains("\"two\" is that of the device \"one\""), "{same_token}");
    assert!(!same_token.contains("secret-1"));
    assert_eq!(registry.device_count(), 1);
}

#[test]
fn twenty_thousand_devices_are_one_request() {
    let fixture = Fixture::new();
    let bulk =
        BulkDevices { count: 20_000, prefix: "dev-", token_prefix: Some("tok"), ..BulkDevices::default() };
    let registry = fixture.open();
    let added = registry.add_devices(registry.default_tenant(), bulk).unwrap();
    assert_eq!(
        (added.len(), added[19_999].device.name.as_str(), &**added[19_999].credentials.id()),
        (20_000, "dev-19999", "tok19999")
    );
    drop(registry);
    let registry = fixture.open();
    assert_eq!(registry.device_count(), 20_000);
    for new in &added {
        assert_eq!(registry.device_by_token(new.credentials.id()).as_ref(), Some(&new.device));
    }
    let profiles: HashSet<_> = added.iter().map(|new| Arc::as_ptr(&new.device.profile)).collect();
    assert_eq!(profiles.len(), 1, "devices share their profile");
}

#[test]
fn a_bulk_request_is_all_or_nothing_and_may_be_repeated() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let bulk =
        BulkDevices { count: 10, start_index: 5, prefix: "d", token_prefix: Some("t"), ..Default::default() };
    registry
        .add_device(tenant, NewDevice { name: "d14", token: Some("t14"), ..NewDevice::default() })
        .unwrap();
    let error = registry.add_devices(tenant, bulk).unwrap_err().to_string();
    assert!(error.contains("\"d14\" exists"), "{error}");
    assert_eq!(registry.device_count(), 1);

    let again = BulkDevices { existing_ok: true, ..bulk };
    let created = |added: &[Provisioned]| added.iter().filter(|new| new.created).count();
    assert_eq!(created(&registry.add_devices(tenant, again).unwrap()), 9);
    let before = everything(&registry);
    assert_eq!(created(&registry.add_devices(tenant, again).unwrap()), 0);
    assert_eq!(
        created(&registry.add_devices(tenant, BulkDevices { token_prefix: None, ..again }).unwrap()),
        0
    );
    assert_eq!(everything(&registry), before);

    let other_token = BulkDevices { token_prefix: Some("x"), ..again };
    assert!(registry.add_devices(tenant, other_token).unwrap_err().to_string().contains("\"d5\" exists"));
    let other_device = BulkDevices { prefix: "other", ..again };
    let error = registry.add_devices(tenant, other_device).unwrap_err().to_string();
    assert!(error.contains("\"other5\" is that of the device \"d5\""), "{error}");
    registry.add_profile(tenant, "fast", "fast", Durability::Os).unwrap();
    let other_profile = BulkDevices { profile: Some("fast"), ..again };
    assert!(registry.add_devices(tenant, other_profile).unwrap_err().to_string().contains("\"d5\" exists"));
    assert_eq!(everything(&registry), before);
}

#[test]
fn too_large_bulk_requests_are_refused() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let add = |bulk| registry.add_devices(tenant, bulk).map(|added| added.len());
    let error = add(BulkDevices { count: usize::MAX, prefix: "d", ..Default::default() }).unwrap_err();
    assert!(error.to_string().contains("the limit is 1000000"), "{error}");
    let error = add(BulkDevices { count: 2, start_index: u64::MAX - 2, prefix: "d", ..Default::default() });
    assert_eq!(error.unwrap(), 2, "the last numbers that fit");
    let error = add(BulkDevices { count: 2, start_index: u64::MAX, prefix: "d", ..Default::default() });
    assert!(error.unwrap_err().to_string().contains("no room"));
    assert_eq!(add(BulkDevices { count: 0, prefix: "d", ..Default::default() }).unwrap(), 0);
}

#[test]
fn pages_cover_everything_once_in_order() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    registry.add_devices(tenant, BulkDevices { count: 25, prefix: "Bus-", ..Default::default() }).unwrap();
    registry.add_device(tenant, new_device("Tram")).unwrap();
    let get = |number, filter| registry.devices_page(tenant, page(number, 10, filter), |_| true).unwrap();
    let facts =
        |page: &Page<Arc<Device>>| (page.data.len(), page.total_pages, page.total_elements, page.has_next);
    let pages = [get(0, None), get(1, None), get(2, None)];
    assert_eq!(pages.each_ref().map(facts), [(10, 3, 26, true), (10, 3, 26, true), (6, 3, 26, false)]);
    let names: Vec<_> = pages.iter().flat_map(|page| &page.data).map(|device| device.name.clone()).collect();
    assert!(names.is_sorted() && names.iter().collect::<HashSet<_>>().len() == 26);
    assert_eq!(facts(&get(3, None)), (0, 3, 26, false));
    assert_eq!(facts(&get(usize::MAX, None)), (0, 3, 26, false));
    assert_eq!(facts(&get(0, Some("bus-1"))), (10, 2, 11, true));
    assert_eq!(facts(&get(1, Some("bus-1"))), (1, 2, 11, false));
    assert_eq!(facts(&get(0, Some("ship"))), (0, 0, 0, false));
    assert_eq!(facts(&get(0, Some(""))), (10, 3, 26, true));
    let sized = |page_size| {
        registry.devices_page(tenant, page(0, page_size, None), |_| true).unwrap_err().to_string()
    };
    assert!(sized(0).contains("ask for 1 to"));
    assert!(sized(usize::MAX).contains("limit is 100000"));
}

#[test]
fn replaced_tokens_and_deleted_devices_are_refused_and_the_doors_are_notified() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let one = registry.add_device(tenant, new_device("one")).unwrap();
    let two = registry.add_device(tenant, new_device("two")).unwrap();
    let generation = registry.generation();
    let token = registry.set_token(one.device.id, Some("chosen")).unwrap();
    assert_eq!((&*token, registry.generation() > generation), ("chosen", true));
    assert_eq!(registry.device_by_token(one.credentials.id()), None);
    assert_eq!(registry.device_by_token("chosen").unwrap().name, "one");
    registry.set_token(one.device.id, Some("chosen")).unwrap();
    let error = registry.set_token(two.device.id, Some("chosen")).unwrap_err();
    assert!(matches!(error, RegistryError::CredentialsTaken { .. }), "{error}");
    assert_eq!(registry.set_token(one.device.id, None).unwrap().len(), 20);

    let generation = registry.generation();
    registry.delete_device(two.device.id).unwrap();
    assert!(registry.generation() > generation);
    assert_eq!(registry.device_by_token(two.credentials.id()), None);
    assert_eq!(registry.device_by_name(tenant, "two"), None);
    assert!(registry.delete_device(two.device.id).unwrap_err().to_string().contains("no device"));
    let before = everything(&registry);
    drop(registry);
    let registry = fixture.open();
    assert_eq!(everything(&registry), before);
    let again = NewDevice { name: "two", token: Some(two.credentials.id()), ..NewDevice::default() };
    assert_ne!(registry.add_device(tenant, again).unwrap().device.id, two.device.id);
}

#[test]
fn a_renamed_device_keeps_its_id_and_token_and_the_doors_are_notified() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let one = registry.add_device(tenant, new_device("one")).unwrap();
    registry.add_device(tenant, new_device("two")).unwrap();
    let generation = registry.generation();
    let renamed = registry.rename_device(one.device.id, "three").unwrap();
    assert_eq!((renamed.id, renamed.name.as_str()), (one.device.id, "three"));
    assert!(registry.generation() > generation);
    assert_eq!(registry.device_by_name(tenant, "one"), None);
    assert_eq!(registry.device_by_token(one.credentials.id()), Some(Arc::clone(&renamed)));
    assert_eq!(registry.rename_device(one.device.id, "three").unwrap(), renamed, "nothing to do");
    let error = |device, name| registry.rename_device(device, name).unwrap_err().to_string();
    assert!(error(one.device.id, "two").contains("\"two\" exists already"));
    assert!(error(one.device.id, "").contains("empty"));
    assert!(error(Uuid::nil(), "x").contains("no device"));
    let before = everything(&registry);
    drop(registry);
    assert_eq!(everything(&fixture.open()), before);
}

#[test]
fn a_changed_profile_changes_its_devices_and_only_those() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    registry.add_profile(tenant, "truck", "trucks", Durability::Fsync).unwrap();
    let truck = NewDevice { name: "t1", profile: Some("truck"), token: None, ..NewDevice::default() };
    let truck = registry.add_device(tenant, truck).unwrap();
    let other = registry.add_device(tenant, new_device("o1")).unwrap();
    let generation = registry.generation();
    registry.set_profile(tenant, "truck", "lorries", Durability::Memory).unwrap();
    assert!(registry.generation() > generation);
    let check = |registry: &Registry| {
        let changed = registry.device_by_token(truck.credentials.id()).unwrap();
        let facts = (changed.profile.table.name(), changed.profile.durability);
        assert_eq!(facts, ("lorries", Durability::Memory));
        assert_eq!(registry.device_by_id(changed.id), Some(Arc::clone(&changed)));
        assert_eq!(registry.device_by_name(tenant, "t1"), Some(changed));
        assert_eq!(registry.device_by_token(other.credentials.id()).as_ref(), Some(&other.device));
        let names: Vec<_> = registry.profiles(tenant).iter().map(|profile| profile.name.clone()).collect();
        assert_eq!(names, ["default", "truck"]);
    };
    check(&registry);
    drop(registry);
    check(&fixture.open());
}

#[test]
fn bad_profiles_are_refused() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let add =
        |name, table| registry.add_profile(tenant, name, table, Durability::Os).unwrap_err().to_string();
    assert!(add("default", "x").contains("the profile \"default\" exists already"));
    assert!(add("", "x").contains("empty"));
    assert!(add("p", "").contains("table name is empty"));
    assert!(add("p", "dead_letter").contains("keeps refused messages"));
    let unknown = registry.set_profile(tenant, "p", "x", Durability::Os).unwrap_err().to_string();
    assert!(unknown.contains("no profile \"p\""), "{unknown}");
}

#[test]
fn a_gateway_adds_only_devices_that_are_not_there() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    registry.add_profile(tenant, "pump", "pumps", Durability::Os).unwrap();
    let new = NewDevice { name: "gateway", gateway: true, ..NewDevice::default() };
    let gateway = registry.add_device(tenant, new).unwrap().device;
    let kept = registry.add_device(tenant, new_device("kept")).unwrap();
    let names = ["kept", "new"].map(str::to_owned);
    let added = registry.add_behind_gateway(&gateway, &names, Some("pump"), 9).unwrap();
    assert_eq!(added.iter().map(|one| one.created).collect::<Vec<_>>(), [false, true]);
    assert_eq!(added[0].device, kept.device, "its profile and its token stay");
    assert_eq!(
        (added[1].device.profile.name.as_str(), added[1].device.last_gateway),
        ("pump", Some(gateway.id))
    );
    let other =
        registry.add_behind_gateway(&gateway, &["other".to_owned()], Some("no such profile"), 9).unwrap();
    assert_eq!(other[0].device.profile.name, "default");
    let bad = ["x".repeat(256), "fine".to_owned()];
    assert!(registry.add_behind_gateway(&gateway, &bad, None, 9).is_err());
    assert!(registry.device_by_name(tenant, "fine").is_none(), "all or none");
    // The tenant has four devices.
    let fine = ["fine".to_owned()];
    let refused = registry.add_behind_gateway(&gateway, &fine, None, 4).unwrap_err();
    assert_eq!(refused.blame(), Blame::Caller);
    assert!(refused.to_string().ends_with("is 5, the limit is 4"), "{refused}");
    assert!(registry.add_behind_gateway(&gateway, &fine, None, 5).is_ok());
}

#[test]
fn what_a_device_is_to_gateways_survives_a_restart() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let [one, two] = ["one", "two"].map(|name| registry.add_device(tenant, new_device(name)).unwrap().device);
    let change = DeviceChange { name: "one", gateway: Some(true), ..DeviceChange::default() };
    assert!(registry.change_device(one.id, change).unwrap().gateway);
    registry.set_last_gateways(&[(two.id, one.id), (one.tenant, one.id)]).unwrap();
    let renamed = registry.rename_device(one.id, "first").unwrap();
    assert!(renamed.gateway);
    drop(registry);
    let registry = fixture.open();
    assert!(registry.device_by_name(tenant, "first").unwrap().gateway);
    assert_eq!(registry.device_by_id(two.id).unwrap().last_gateway, Some(one.id));
    assert!(!registry.device_by_id(two.id).unwrap().gateway);
}

#[test]
fn devices_that_are_added_at_the_same_time_are_all_there_and_names_stay_unique() {
    const THREADS: usize = 16;
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let won: usize = std::thread::scope(|scope| {
        let add = |thread: usize| {
            let registry = &registry;
            move || {
                for n in 0..20 {
                    registry.add_device(tenant, new_device(&format!("{thread}-{n}"))).unwrap();
                }
                let token = Some("shared");
                let same_name = registry.add_device(tenant, new_device("one"));
                let new = NewDevice { token, ..new_device("two") };
                let same_token =
                    registry.add_device(tenant, NewDevice { name: &format!("t{thread}"), ..new });
                for refused in [same_name.as_ref().err(), same_token.as_ref().err()].into_iter().flatten() {
                    let expected = matches!(
                        refused,
                        RegistryError::Exists { .. } | RegistryError::CredentialsTaken { .. }
                    );
                    assert!(expected, "{refused}");
                }
                usize::from(same_name.is_ok()) + usize::from(same_token.is_ok())
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(add(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((won, registry.device_count()), (2, THREADS * 20 + 2));
    let before = everything(&registry);
    drop(registry);
    assert_eq!(everything(&fixture.open()), before);
}

#[test]
fn the_terms_of_a_profile_survive_a_restart_and_stay_until_they_are_changed() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let terms =
        |key| ProvisionTerms::new(ProvisionStrategy::AllowCreateNewDevices, Some(key), Some("s")).unwrap();
    let (first, second) = (terms("k1"), terms("k2"));
    let fields = |provision| ProfileFields { name: "pump", provision, ..ProfileFields::default() };
    let profile = registry.create_profile(tenant, fields(Some(&first))).unwrap();
    registry.change_profile(tenant, profile.id, fields(None), None).unwrap();
    drop(registry);
    let registry = fixture.open();
    assert_eq!(registry.profile_by_provision_key("k1").unwrap().provision, first);
    registry.change_profile(tenant, profile.id, fields(Some(&first)), None).unwrap();
    registry.change_profile(tenant, profile.id, fields(Some(&second)), None).unwrap();
    assert!(registry.profile_by_provision_key("k1").is_none());
    assert_eq!(registry.profile_by_provision_key("k2").unwrap().id, profile.id);
    registry.delete_profile(tenant, profile.id).unwrap();
    assert!(registry.profile_by_provision_key("k2").is_none());
    registry.create_profile(tenant, fields(Some(&second))).unwrap();
}
