//! proptest's memory: reads what is kept, says how to keep what is new.

use crate::Line;
use crate::file::{file_of, seeds};
use proptest::test_runner::{Config, FailurePersistence, PersistedSeed};
use std::any::Any;
use std::env;
use std::fmt::{Debug, Write};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A configuration that tries kept seeds first, whatever it said about them.
pub fn kept(config: Config) -> Config {
    Config { failure_persistence: Some(Box::new(Kept::from_environment())), ..config }
}

/// Where seeds are read, and where new ones go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The root kept seeds are found below.
    pub root: PathBuf,
    /// The workspace, if it may be written: by `bazel run`.
    pub workspace: Option<PathBuf>,
    /// Where a test may leave files: in `bazel test`.
    pub outputs: Option<PathBuf>,
}

impl Kept {
    /// As Bazel says it. A test runs at the root of its files, which are laid out as the workspace.
    pub fn from_environment() -> Self {
        let folder = |name| env::var_os(name).map(PathBuf::from);
        let workspace = folder("BUILD_WORKSPACE_DIRECTORY");
        Self {
            root: workspace.clone().unwrap_or_default(),
            workspace,
            outputs: folder("TEST_UNDECLARED_OUTPUTS_DIR"),
        }
    }

    /// The seeds kept for a source file, or what is wrong with them.
    pub fn read(&self, source: &Path) -> Result<Vec<PersistedSeed>, String> {
        let file = file_of(source);
        match fs::read_to_string(self.root.join(&file)) {
            Ok(text) => seeds(&text).map_err(|error| format!("{}, {error}", file.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }

    /// Keeps a new failure as far as it may; what a person has to know or do.
    pub fn keep(&self, source: &Path, line: &Line) -> String {
        let file = file_of(source);
        let (folder, name) = (file.parent().unwrap_or(Path::new(".")), file.display());
        let mut said = String::new();
        if let Some(root) = &self.workspace {
            match append(&root.join(&file), line) {
                Ok(()) => return format!("kept in {name}; check it in:\n  {line}\n"),
                Err(error) => said = format!("it cannot be written to {name}: {error}\n"),
            }
        }
        let folder = folder.display();
        let _ = write!(
            said,
            "keep its seed, so that every run tries it first; at the root of the workspace:\n  \
             mkdir -p {folder} && printf '%s\\n' '{line}' >> {name}\n"
        );
        if let Some(outputs) = &self.outputs
            && let Err(error) = append(&outputs.join(&file), line)
        {
            let _ = writeln!(said, "it cannot be left in {}: {error}", outputs.display());
        }
        said
    }
}

fn append(file: &Path, line: &Line) -> io::Result<()> {
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    let mut file = fs::OpenOptions::new().append(true).create(true).open(file)?;
    io::Write::write_all(&mut file, format!("{line}\n").as_bytes())
}

impl FailurePersistence for Kept {
    fn load_persisted_failures2(&self, source: Option<&'static str>) -> Vec<PersistedSeed> {
        let source = Path::new(source.expect("the macro names the source file"));
        let seeds = self.read(source).unwrap_or_else(|error| panic!("{error}"));
        if !seeds.is_empty() {
            // Shown if the test fails.
            eprintln!("kept seeds first: {} of {}", seeds.len(), file_of(source).display());
        }
        // proptest takes the last one first; here the oldest is.
        seeds.into_iter().rev().collect()
    }

    fn save_persisted_failure2(
        &mut self,
        source: Option<&'static str>,
        seed: PersistedSeed,
        shrunken: &dyn Debug,
    ) {
        let source = Path::new(source.expect("the macro names the source file"));
        eprint!("a new failure: {}", self.keep(source, &Line::new(seed, shrunken)));
    }

    fn box_clone(&self) -> Box<dyn FailurePersistence> {
        Box::new(self.clone())
    }

    fn eq(&self, other: &dyn FailurePersistence) -> bool {
        other.as_any().downcast_ref::<Self>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
