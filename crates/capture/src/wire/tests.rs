use super::*;

#[test]
fn records_that_are_cut_short_are_refused() {
    let head = RECORD << 60 | u64::from(record::MAP) << 48 | 2;
    assert_eq!(payload(&[head, 5, 6, 7], 0), Some((record::MAP, &[5, 6][..])));
    assert_eq!(payload(&[head, 5], 0), None);
    assert_eq!(payload(&[], 0), None);
}

#[test]
fn texts_are_cut_to_what_is_there() {
    let word = u64::from_le_bytes(*b"abcdefgh");
    assert_eq!(text(&[3, word], 0), b"abc");
    assert_eq!(text(&[100, word], 0), b"abcdefgh");
    assert_eq!(text(&[], 0), b"");
    assert_eq!(text(&[1], 4), b"");
}

#[test]
fn greetings_of_others_are_refused() {
    let mut message = vec![0; HELLO_BYTES];
    assert!(Hello::parse(&message).is_err());
    message[..4].copy_from_slice(&MAGIC.to_le_bytes());
    assert!(Hello::parse(&message).unwrap_err().contains("versions"));
    message[4] = VERSION as u8;
    message[8] = 77;
    message[24] = 3;
    let hello = Hello::parse(&message).unwrap();
    assert_eq!((hello.pid, hello.forked, hello.parent_slots), (77, false, 3));
}

/// The definitions in the other side's header, as a C compiler reads them.
mod header {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    use super::super::*;

    fn file() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../capture/valgrind/wire.h")
    }

    /// The names of all enumerators, in the order in which they stand there.
    fn names(text: &str) -> Vec<&str> {
        text.lines()
            .filter_map(|line| line.trim_start().split_once(" = "))
            .map(|(name, _)| name.trim())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
            .collect()
    }

    /// Compiles `main` with the header before it, and runs it.
    fn run(main: &str, input: &[u8]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("wire.c"), folder.path().join("wire"));
        let head = "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n";
        let text = format!(
            "{head}#include \"{}\"\nint main(void) {{\n{main}\nreturn 0;\n}}\n",
            file().display()
        );
        std::fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-Wall", "-Werror", "-o"]).arg(&program).arg(&source);
        assert!(compiler.status().expect("a C compiler, `cc`").success());
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success());
        done.stdout
    }

    /// Numbers by their names.
    fn numbers(expressions: &[(String, String)]) -> BTreeMap<String, u64> {
        let line = |(name, expression): &(String, String)| {
            format!("printf(\"{name} %llu\\n\", (unsigned long long)({expression}));")
        };
        let main: Vec<String> = expressions.iter().map(line).collect();
        let said = String::from_utf8(run(&main.join("\n"), b"")).unwrap();
        said.lines()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(name, number)| (name.to_string(), number.parse().unwrap()))
            .collect()
    }

    /// `(name there, value here)`, for constants of a module here whose names begin with a prefix there.
    macro_rules! same {
        ($prefix:literal, $module:ident: $($name:ident)*) => {
            vec![$((concat!($prefix, stringify!($name)).to_string(), $module::$name as u64)),*]
        };
    }

    #[test]
    fn every_number_is_the_same_on_both_sides() {
        let text = std::fs::read_to_string(file()).unwrap();
        let mut ours = same!("RECORD_", record: BLOCK THREAD THREAD_CREATE THREAD_START THREAD_EXIT THREAD_NAME MAP UNMAP
            STACK ALLOC FREE SYNC FORK WAITED EXEC PROGRAM END PHASE WORK_BEGIN WORK_END ARRAY SWITCH SLOTS SUMMARY
            SPUN LIMIT_REFUSED LATENCY CALLED LINE AT_LINES);
        ours.extend(
            same!("SYNC_", sync: LOCK UNLOCK BARRIER_INIT BARRIER COND_SIGNAL COND_WAITED SEM_INIT SEM_POST
            SEM_WAITED JOINED TEAM_START TEAM_ENTER TEAM_LEAVE TEAM_END FUTEX_WAKE FUTEX_WAITED RESTORE READ_LOCK
            TEAM_BARRIER),
        );
        ours.extend(same!("SLOT_", slots: DEFINE FREE RANGE THREAD ALLOCATE DATA_FREE));
        ours.extend([
            ("MAP_FILE_".to_string(), map::FILE),
            ("MAP_STACK_".to_string(), map::STACK),
        ]);
        // The recorder does not request these kinds of mappings.
        let unasked = ["MAP_ANONYMOUS_", "MAP_BREAK_"];
        // Finds numbers that are new in the header.
        let mut theirs: Vec<&str> = names(&text)
            .into_iter()
            .filter(|name| !unasked.contains(name))
            .collect();
        let mut known: Vec<&str> = ours.iter().map(|(name, _)| name.as_str()).collect();
        theirs.sort_unstable();
        known.sort_unstable();
        assert_eq!(theirs, known);
        ours.extend(
            [
                ("WIRE_MAGIC", u64::from(MAGIC)),
                ("WIRE_VERSION", u64::from(VERSION)),
                ("WIRE_CONTROL_BYTES", CONTROL_BYTES as u64),
                ("WORD_NULL", NULL << 60),
                ("WORD_BLOCK", BLOCK << 60),
                ("WORD_EXIT", EXIT << 60),
                ("WORD_RECORD", RECORD << 60),
            ]
            .map(|(name, value)| (name.to_string(), value)),
        );
        let asked: Vec<(String, String)> = ours.iter().map(|(name, _)| (name.clone(), name.clone())).collect();
        assert_eq!(numbers(&asked), ours.into_iter().collect());
    }

    #[test]
    fn a_record_is_taken_apart_where_the_tool_puts_it_together() {
        let words = run(
            "unsigned long long w[3] = {WORD_RECORD | (unsigned long long)RECORD_SUMMARY << WORD_RECORD_SHIFT | 2, 5, 6};\n\
             fwrite(w, 1, sizeof w, stdout);",
            b"",
        );
        let words: Vec<u64> = words
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(kind(words[0]), RECORD);
        assert_eq!(payload(&words, 0), Some((record::SUMMARY, &[5, 6][..])));
        assert!(words[0] & TAGGED != 0);
    }

    #[test]
    fn the_control_page_has_its_words_where_they_are_looked_for() {
        let field = |name: &str| (name.to_string(), format!("offsetof(struct WireControl, {name})"));
        let mut asked: Vec<_> = ["cursor", "slots", "published", "aside", "words"].map(field).into();
        asked.push(("bytes".into(), "sizeof(struct WireControl)".into()));
        let theirs = numbers(&asked);
        for (name, word) in [
            ("cursor", CONTROL_CURSOR),
            ("slots", CONTROL_SLOTS),
            ("published", CONTROL_PUBLISHED),
            ("aside", CONTROL_ASIDE),
            ("words", CONTROL_WORDS),
        ] {
            assert_eq!(theirs[name], word as u64 * 8, "{name}");
        }
        assert!(theirs["bytes"] <= CONTROL_BYTES as u64);
    }

    #[test]
    fn greetings_are_understood() {
        let hello = run(
            "struct WireHello h;\nmemset(&h, 0, sizeof h);\nh.magic = WIRE_MAGIC; h.version = WIRE_VERSION;\n\
             h.pid = 77; h.parent = 66; h.forked = 1; h.reserved = 0xffffffffu; h.parent_slots = 0x1234567890abcdefULL;\n\
             fwrite(&h, 1, sizeof h, stdout);",
            b"",
        );
        let wanted = Hello {
            pid: 77,
            parent: 66,
            forked: true,
            parent_slots: 0x1234_5678_90ab_cdef,
        };
        assert_eq!(Hello::parse(&hello), Ok(wanted));
        let said = run(
            "struct WireWelcome w;\nchar more;\n\
             if (fread(&w, 1, sizeof w, stdin) != sizeof w || fread(&more, 1, 1, stdin)) return 1;\n\
             printf(\"%u %u %u %llu %d\", w.magic == WIRE_MAGIC, w.version == WIRE_VERSION, w.slots, w.slot_bytes, \
             (int)sizeof(struct WireFilled));",
            &welcome(9, 0xfedc_ba98_7654_3210),
        );
        assert_eq!(
            String::from_utf8(said).unwrap(),
            format!("1 1 9 {} 8", 0xfedc_ba98_7654_3210u64)
        );
    }
}
