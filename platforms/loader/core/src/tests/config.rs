//! The configuration parser.

use std::format;
use std::string::{String, ToString};
use test_property::prelude::*;

use crate::config::{ConfigErrorKind, Resolution, parse};

const GOOD: &str = "# a comment
timeout: 0
serial: yes

/capOS
    comment: ignored
    PROTOCOL: limine
    path: boot():/boot/kernel.elf
    cmdline: exit=debug log=serial,screen a: b
    module_path: boot():/boot/init
    module_string: init
    module_path: boot():/boot/shell
    kaslr: YES
    resolution: 1024x768
";

#[test]
fn a_good_file() {
    let entry = parse(GOOD.as_bytes()).unwrap();
    assert_eq!(entry.name, "capOS");
    assert_eq!(entry.path.path, "/boot/kernel.elf");
    assert_eq!(entry.cmdline, "exit=debug log=serial,screen a: b");
    assert_eq!(entry.modules.len(), 2);
    assert_eq!((entry.modules[0].path.path, entry.modules[0].string), ("/boot/init", "init"));
    assert_eq!((entry.modules[1].path.path, entry.modules[1].string), ("/boot/shell", ""));
    assert!(entry.kaslr && entry.random_hhdm);
    assert_eq!(entry.resolution, Some(Resolution { width: 1024, height: 768, bpp: 32 }));
}

#[test]
fn windows_line_ends_and_byte_order_mark() {
    let text = format!("\u{feff}{}", GOOD.replace('\n', "\r\n"));
    assert_eq!(parse(text.as_bytes()).unwrap().path.path, "/boot/kernel.elf");
}

#[test]
fn old_names_and_old_module_strings() {
    let text = "/a\nkernel_path: boot():/k\nkernel_cmdline: x\nmodule_path: boot():/m\nmodule_cmdline: s\n";
    let entry = parse(text.as_bytes()).unwrap();
    assert_eq!((entry.path.path, entry.cmdline, entry.modules[0].string), ("/k", "x", "s"));
}

#[test]
fn default_entry_selects_and_other_entries_are_not_judged() {
    let text = "default_entry: 2\n/linux\n protocol: linux\n path: hdd(1:1):/vmlinuz\n/capOS\n path: boot():/k\n";
    let entry = parse(text.as_bytes()).unwrap();
    assert_eq!((entry.name, entry.path.path), ("capOS", "/k"));
}

#[test]
fn groups_are_not_bootable() {
    let text = "default_entry: 2\n/+Group\n//Inside\n path: boot():/k\n";
    assert_eq!(parse(text.as_bytes()).unwrap().name, "Inside");
    let error = parse(text.replace("entry: 2", "entry: 1").as_bytes()).unwrap_err();
    assert!(matches!(error.kind, ConfigErrorKind::Directory(_)));
    assert_eq!(error.line, 2);
}

#[test]
fn hashes() {
    let hash = "0123456789abcdefABCDEF".repeat(6)[..128].to_string();
    let text = format!("/a\npath: boot():/k#{hash}\n");
    assert_eq!(parse(text.as_bytes()).unwrap().path.blake2b, Some(hash.as_str()));
    let short = text.replace(&hash, &hash[1..]);
    assert_eq!(parse(short.as_bytes()).unwrap_err().kind, ConfigErrorKind::Hash);
}

/// Every refusal: the text, the line it names, and a piece of the message.
#[test]
fn refusals_name_line_and_remedy() {
    let cases = [
        ("", 0, "no entry"),
        ("timeout: 0\n", 0, "no entry"),
        ("/a\nnonsense\npath: boot():/k\n", 2, "expected `key: value`"),
        ("/a\ncmdline: x\n", 1, "has no `path:"),
        ("default_entry: 3\n/a\npath: boot():/k\n", 1, "a number from 1 to 1"),
        ("default_entry: 0\n/a\npath: boot():/k\n", 1, "a number from 1 to 1"),
        ("default_entry: x\n/a\npath: boot():/k\n", 1, "a number from 1 to 1"),
        ("/a\npath: /boot/k\n", 2, "`boot():/path/to/file`"),
        ("/a\npath: boot():k\n", 2, "`boot():/path/to/file`"),
        ("/a\npath: boot():/\n", 2, "`boot():/path/to/file`"),
        ("/a\npath: boot(2):/k\n", 2, "is not served"),
        ("/a\npath: tftp():/k\n", 2, "is not served"),
        ("/a\npath: boot():/k\npath: boot():/k\n", 3, "`path` given twice"),
        ("/a\npath: boot():/k\ncmdline: a\nkernel_cmdline: b\n", 4, "`cmdline` given twice"),
        ("/a\npath: boot():/k\nmodule_string: x\n", 3, "below the module_path"),
        ("/a\npath: boot():/k\nkaslr: maybe\n", 3, "neither `yes` nor `no`"),
        ("/a\npath: boot():/k\nprotocol: linux\n", 3, "expected `protocol: limine`"),
        ("/a\npath: boot():/k\nresolution: wide\n", 3, "1280x800"),
        ("/a\npath: boot():/k\nresolution: 0x600\n", 3, "1280x800"),
        ("/a\npath: boot():/k\nresolution: 800x600x16\n", 3, "1280x800"),
        ("/a\npath: boot():/k\nresolution: 800x600x32x1\n", 3, "1280x800"),
        ("/a\npath: boot():/k\nmax_paging_mode: 3level\n", 3, "`4level` or `5level`"),
    ];
    for (text, line, message) in cases {
        let error = parse(text.as_bytes()).expect_err(text);
        assert_eq!(error.line, line, "{text:?}");
        assert!(error.to_string().contains(message), "{text:?}: {error}");
    }
    assert_eq!(parse(b"/a\n\xff").unwrap_err().kind, ConfigErrorKind::NotText);
}

#[test]
fn too_many_modules() {
    let mut text = String::from("/a\npath: boot():/k\n");
    for _ in 0..65 {
        text.push_str("module_path: boot():/m\n");
    }
    assert_eq!(parse(text.as_bytes()).unwrap_err().kind, ConfigErrorKind::TooManyModules);
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_with_an_existing_line(text in "[a-z:/# ()\\n.0-9_$]{0,300}") {
        if let Err(error) = parse(text.as_bytes()) {
            prop_assert!(error.line as usize <= text.lines().count());
        }
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn unknown_keys_change_nothing(key in "[a-z_]{1,12}", value in "[ -~]{0,20}", at in 5usize..14) {
        let known = ["path", "kernel_path", "cmdline", "kernel_cmdline", "module_path", "module_string",
            "module_cmdline", "kaslr", "resolution", "protocol", "max_paging_mode", "min_paging_mode",
            "randomise_hhdm_base", "randomize_hhdm_base"];
        prop_assume!(!known.contains(&key.as_str()));
        let mut lines: std::vec::Vec<&str> = GOOD.lines().collect();
        let extra = format!("{key}: {value}");
        lines.insert(at, &extra);
        let text = lines.join("\n");
        prop_assert_eq!(parse(text.as_bytes()).unwrap(), parse(GOOD.as_bytes()).unwrap());
    }
}
