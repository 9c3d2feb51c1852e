//! The comparison on recorded samples: it must be able to say no.

use bench::compare::HOW_TO_ACCEPT;
use bench::{Accepted, Figure, Finding, bars::BARS, compare, figures, table};

const LOCK: &str = "c9e9f9c7b41e0fd1";

/// The lines a run leaves, with every median at half of its bar.
fn recorded() -> String {
    let mut lines = String::from(
        "{\"test\":\"other.test\",\"name\":\"n\",\"value\":1,\"unit\":\"x\",\"profile\":\"release\",\"lane\":\"deterministic\",\"cpus\":1}\n",
    );
    for bar in &BARS {
        let most = bar.most.unwrap_or(1500);
        let median = most / 2;
        for (name, value, unit) in
            [("min", median - 5, "insns"), ("median", median, "insns"), ("n", 1616, "operations")]
        {
            lines += &format!(
                "{{\"cpus\":1,\"lane\":\"deterministic\",\"name\":\"{name}\",\"profile\":\"release\",\"target\":\"//t\",\"test\":\"bench.{}\",\"unit\":\"{unit}\",\"value\":{value}}}\n",
                bar.name
            );
        }
    }
    lines
}

fn run() -> Vec<Figure> {
    figures::read(&recorded()).unwrap()
}

fn accepted() -> Accepted {
    let mut accepted = Accepted::default();
    accepted.accept(LOCK, &run());
    accepted
}

/// The findings when one figure is changed.
fn findings(change: impl FnOnce(&mut Figure)) -> Vec<Finding> {
    let mut figures = run();
    let figure = figures.iter_mut().find(|figure| figure.name == "ipc_rt_0").unwrap();
    change(figure);
    compare(&figures, &accepted(), LOCK)
}

#[test]
fn a_run_as_accepted_has_nothing_to_look_at() {
    assert_eq!(compare(&run(), &accepted(), LOCK), []);
}

#[test]
fn three_percent_are_tolerated_and_no_more_in_either_direction() {
    assert_eq!(findings(|f| f.median = 772), []);
    assert_eq!(findings(|f| (f.min, f.median) = (728, 728)), []);
    let moved = |which, accepted, found| {
        vec![Finding::Moved { name: "ipc_rt_0".into(), which, accepted, found }]
    };
    assert_eq!(findings(|f| f.median = 773), moved("median", 750, 773));
    assert_eq!(findings(|f| f.min = 722), moved("min", 745, 722));
    assert_eq!(findings(|f| (f.min, f.median) = (727, 727)), moved("median", 750, 727));
}

#[test]
fn what_moved_is_said_with_figures_and_direction() {
    let more = findings(|f| f.median = 900);
    assert_eq!(
        more[0].to_string(),
        "ipc_rt_0: median is 900 instructions, 20.0 % more than the accepted 750"
    );
    let fewer = findings(|f| (f.min, f.median) = (600, 600));
    assert_eq!(
        fewer[1].to_string(),
        "ipc_rt_0: median is 600 instructions, 20.0 % fewer than the accepted 750"
    );
    assert!(HOW_TO_ACCEPT.contains("//test/bench:instructions -- --accept"));
}

#[test]
fn above_its_bar_is_red_even_if_accepted() {
    let mut figures = run();
    figures[0].median = 151;
    let mut accepted = Accepted::default();
    accepted.accept(LOCK, &figures);
    let expected = Finding::AboveBar { name: "null_entry".into(), most: 150, found: 151 };
    assert_eq!(compare(&figures, &accepted, LOCK), [expected]);
}

#[test]
fn a_new_and_a_vanished_measurement_are_told() {
    let mut fewer = run();
    let taken = fewer.remove(3);
    let gone = Finding::Gone { name: taken.name.clone() };
    assert_eq!(compare(&fewer, &accepted(), LOCK), [gone]);
    let mut accepted = Accepted::default();
    accepted.accept(LOCK, &fewer);
    let new = Finding::New { name: taken.name.clone(), found: taken.median };
    assert_eq!(compare(&run(), &accepted, LOCK), [new]);
}

#[test]
fn another_tool_chain_has_counts_of_its_own() {
    let unknown = Finding::UnknownToolchain { lock: "other".into() };
    assert_eq!(compare(&run(), &accepted(), "other"), [unknown]);
    assert_eq!(compare(&run(), &accepted(), "installed: rustc 1.85"), [], "no lock, no counts");
    let mut both = accepted();
    both.accept("other", &run()[..2]);
    assert_eq!((both.of(LOCK).unwrap().len(), both.of("other").unwrap().len()), (BARS.len(), 2));
}

#[test]
fn the_file_is_read_as_it_was_written() {
    let accepted = accepted();
    assert_eq!(Accepted::read(&accepted.write()), Ok(accepted));
    assert_eq!(Accepted::read("{}"), Ok(Accepted::default()));
    for bad in [
        "",
        "[]",
        "{\"a\":1}",
        "{\"a\":{\"b\":{\"min\":1}}}",
        "{\"a\":{\"b\":{\"min\":-1,\"median\":2}}}",
    ] {
        assert!(Accepted::read(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_run_that_did_not_measure_everything_has_no_figures() {
    let whole = recorded();
    for missing in ["\"min\"", "\"median\"", "\"n\""] {
        let line =
            whole.lines().position(|l| l.contains("park_rt") && l.contains(missing)).unwrap();
        let cut: String = whole
            .lines()
            .enumerate()
            .filter(|(i, _)| *i != line)
            .map(|(_, l)| format!("{l}\n"))
            .collect();
        let error = figures::read(&cut).unwrap_err();
        assert!(error.starts_with("park_rt has no "), "{error}");
    }
    assert!(figures::read("").is_err());
    assert!(figures::read("not json\n").is_err());
}

#[test]
fn what_does_not_fit_is_refused() {
    let whole = recorded();
    let last = whole.lines().last().unwrap();
    assert!(figures::read(&format!("{whole}{last}\n")).unwrap_err().contains("twice"));
    let other = last.replace("bench.thread_create_join", "bench.surprise");
    assert!(figures::read(&format!("{whole}{other}\n")).unwrap_err().contains("surprise"));
    let mixed = last.replace("release", "checked").replace("\"n\"", "\"m\"");
    assert!(figures::read(&format!("{whole}{mixed}\n")).unwrap_err().contains("configuration"));
    let zero = whole.replacen("\"value\":70}", "\"value\":0}", 1);
    assert!(figures::read(&zero).unwrap_err().contains("cannot be"));
}

#[test]
fn json_lines_hold_what_a_reader_needs() {
    let lines = figures::json_lines(&run());
    assert_eq!(
        lines.lines().next().unwrap(),
        "{\"configuration\":\"release image, deterministic lane, 1 CPU\",\"median\":75,\"min\":70,\"n\":1616,\"name\":\"null_entry\",\"unit\":\"insns\"}"
    );
    assert_eq!(lines.lines().count(), BARS.len());
}

#[test]
fn the_table_shows_figure_accepted_and_bar() {
    let table = table::table(&run(), &accepted(), LOCK);
    let row = table.lines().find(|line| line.starts_with("unpark_none ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().take(6).collect();
    assert_eq!(cells, ["unpark_none", "170", "175", "175", "350", "1616"]);
    assert!(table::table(&run(), &Accepted::default(), LOCK).contains("  -"));
}
