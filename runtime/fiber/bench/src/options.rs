//! The command line.

use std::env;
use std::path::{Path, PathBuf};

use crate::rows::{self, Row};

/// What `--help` prints.
pub const HELP: &str = "\
Measures the fiber runtime beside its peers: CPU time of the whole process per operation,
contestants in turn, the median of all repetitions.

  ./bazelw run //runtime/fiber/bench:peers [-- OPTIONS]

  --json FILE       figures as JSON lines: {row, workers, ours_ns, peers, ratio_to_best}
  --plot FILE       the plot, as SVG (default: fiber-peers.svg in the sandbox's home folder)
  --rows A,B        only these rows (--help-rows lists them)
  --workers 1,2     with so many workers, each on a CPU of its own (default: 1,2)
  --peers A,B       only beside these (default: all there are)
  --reps N          repetitions (default: 7; fewer than 5 are a look, not a measurement)
  --quick           a few operations only: shows that all of it works
  --gate            exit status 1 if a row is lost
";

/// How often each contestant runs by default.
const REPS: usize = 7;

/// A contestant as the BUILD file names it.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    /// The only number of workers it can have.
    pub only_workers: Option<usize>,
    pub path: PathBuf,
}

/// What was asked for.
pub struct Options {
    pub contestants: Vec<Named>,
    pub cargo_lock: Option<PathBuf>,
    pub flags: Vec<String>,
    pub json: Option<PathBuf>,
    pub plot: PathBuf,
    pub rows: Vec<&'static Row>,
    pub workers: Vec<usize>,
    pub reps: usize,
    pub is_quick: bool,
    pub is_gate: bool,
}

/// What to do.
pub enum Asked {
    Measure(Options),
    /// Print this and end.
    Print(String),
}

/// Reads the words after the program's name.
pub fn read(words: impl IntoIterator<Item = String>) -> Result<Asked, String> {
    let mut options = Options {
        contestants: Vec::new(),
        cargo_lock: None,
        flags: Vec::new(),
        json: None,
        plot: home().join("fiber-peers.svg"),
        rows: rows::chosen(&[])?,
        workers: vec![1, 2],
        reps: REPS,
        is_quick: false,
        is_gate: false,
    };
    let mut peers: Vec<String> = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or(format!("{word} takes {what}"));
        match word.as_str() {
            "--contestant" => options.contestants.push(named(&value("NAME=PATH")?)?),
            "--cargo-lock" => options.cargo_lock = Some(PathBuf::from(value("a file")?)),
            "--flag" => options.flags.push(value("a flag")?),
            "--json" => options.json = Some(as_typed(&value("a file name")?)),
            "--plot" => options.plot = as_typed(&value("a file name")?),
            "--rows" => options.rows = rows::chosen(&list(&value("names, separated by commas")?))?,
            "--workers" => options.workers = numbers(&value("numbers, as in 1,2")?)?,
            "--peers" => peers = list(&value("names, separated by commas")?),
            "--reps" => options.reps = number(&value("a number")?)?,
            "--quick" => options.is_quick = true,
            "--gate" => options.is_gate = true,
            "--help" | "-h" => return Ok(Asked::Print(HELP.to_owned())),
            "--help-rows" => return Ok(Asked::Print(help_rows())),
            _ => return Err(format!("'{word}' is not understood; --help lists the options")),
        }
    }
    choose(&mut options.contestants, &peers)?;
    Ok(Asked::Measure(options))
}

/// Leaves ours and the peers that were asked for.
fn choose(contestants: &mut Vec<Named>, peers: &[String]) -> Result<(), String> {
    let known: Vec<_> =
        contestants.iter().skip(1).map(|contestant| contestant.name.as_str()).collect();
    if let Some(unknown) = peers.iter().find(|peer| !known.contains(&peer.as_str())) {
        return Err(format!("there is no peer '{unknown}'; the peers are {}", known.join(",")));
    }
    let mut place = 0;
    contestants.retain(|contestant| {
        place += 1;
        place == 1 || peers.is_empty() || peers.contains(&contestant.name)
    });
    match contestants.len() {
        0 => Err("no contestant was named; start this with `./bazelw run`, which does".to_owned()),
        1 => Err("there is nothing to compare with: no peer is left".to_owned()),
        _ => Ok(()),
    }
}

fn named(text: &str) -> Result<Named, String> {
    let (name, path) =
        text.split_once('=').ok_or(format!("'{text}' is not NAME=PATH or NAME:WORKERS=PATH"))?;
    let (name, only_workers) = match name.split_once(':') {
        Some((name, workers)) => (name, Some(number(workers)?)),
        None => (name, None),
    };
    Ok(Named { name: name.to_owned(), only_workers, path: PathBuf::from(path) })
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=1000).contains(&number) => Ok(number),
        _ => Err(format!("'{text}' is not a number from 1 to 1000")),
    }
}

fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let numbers: Vec<usize> =
        list(text).iter().map(|word| number(word)).collect::<Result<_, _>>()?;
    if numbers.is_empty() { Err(format!("'{text}' names no number")) } else { Ok(numbers) }
}

fn help_rows() -> String {
    rows::ROWS.iter().map(|row| format!("{:<18} {}\n", row.name, row.what)).collect()
}

/// Where a file goes that nobody named a place for: visible outside of the sandbox.
fn home() -> PathBuf {
    env::var_os("HOME").map_or_else(env::temp_dir, PathBuf::from)
}

/// A path as the person meant it: relative to where the command was typed.
fn as_typed(path: &str) -> PathBuf {
    match env::var_os("BUILD_WORKING_DIRECTORY") {
        Some(folder) => Path::new(&folder).join(path),
        None => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: [&str; 4] = ["--contestant", "ours=a/b", "--contestant", "local:1=c"];

    fn asked(words: &[&str]) -> Result<Options, String> {
        match read(TWO.iter().chain(words).map(|&word| word.to_owned()))? {
            Asked::Measure(options) => Ok(options),
            Asked::Print(text) => Err(text),
        }
    }

    #[test]
    fn defaults() {
        let options = asked(&[]).unwrap();
        assert_eq!((options.reps, options.workers), (7, vec![1, 2]));
        assert_eq!(options.rows.len(), rows::ROWS.len());
        let local =
            Named { name: "local".to_owned(), only_workers: Some(1), path: PathBuf::from("c") };
        assert_eq!(options.contestants[1], local);
    }

    #[test]
    fn what_is_asked_for() {
        let words = ["--rows", "mutex,yield", "--reps", "3", "--workers", "2", "--quick", "--gate"];
        let options = asked(&words).unwrap();
        assert_eq!(options.rows.iter().map(|row| row.name).collect::<Vec<_>>(), ["yield", "mutex"]);
        assert_eq!((options.reps, options.workers), (3, vec![2]));
        assert!(options.is_quick && options.is_gate);
    }

    #[test]
    fn bad_words_are_answered_with_good_ones() {
        let bad: [(&[&str], &str); 8] = [
            (&["--row", "yield"], "'--row' is not understood; --help"),
            (&["--rows", "yeild"], "the rows are spawn_join"),
            (&["--reps", "0"], "from 1 to 1000"),
            (&["--reps"], "--reps takes a number"),
            (&["--workers", ","], "names no number"),
            (&["--peers", "erlang"], "the peers are local"),
            (&["--json"], "--json takes a file name"),
            (&["--contestant", "x"], "is not NAME=PATH"),
        ];
        for (words, answer) in bad {
            let error = asked(words).err().unwrap();
            assert!(error.contains(answer), "{words:?}: {error}");
        }
        assert!(read([]).err().unwrap().contains("./bazelw run"));
        assert!(asked(&["--help"]).err().unwrap().contains("--json FILE"));
        assert!(asked(&["--help-rows"]).err().unwrap().contains("spawn_join"));
    }
}
