//! A manifest written and read back: defaults, text, unions.
use schema::manifest_capnp::{grant, manifest};

#[test]
fn a_manifest_survives_its_wire_form() {
    let mut message = capnp::message::Builder::new_default();
    {
        let root = message.init_root::<manifest::Builder>();
        let mut process = root.init_processes(1).get(0);
        process.set_name("server");
        process.set_binary("server.elf");
        let mut grants = process.init_grants(2);
        let mut first = grants.reborrow().get(0);
        first.set_name("requests");
        first.init_endpoint().set_name("echo");
        let mut second = grants.get(1);
        second.set_name("peer");
        let mut client = second.init_client();
        client.set_endpoint("echo");
        client.set_badge(7);
    }
    let bytes = capnp::serialize::write_message_to_words(&message);
    let reader = capnp::serialize::read_message(&mut bytes.as_slice(), Default::default()).unwrap();
    let process = reader.get_root::<manifest::Reader>().unwrap().get_processes().unwrap().get(0);
    assert_eq!(process.get_name().unwrap(), "server");
    assert_eq!(process.get_weight(), 64);
    assert_eq!(process.get_profile().unwrap().get_threads(), 16);
    let grants = process.get_grants().unwrap();
    match grants.get(1).which().unwrap() {
        grant::Client(client) => assert_eq!(client.get_badge(), 7),
        _ => panic!("the second grant is a client"),
    }
}
