//! Every job file of the fixtures: the good ones are read and survive printing, each bad one is answered
//! with a message that is kept as a snapshot, and fio gives the same verdict on all of them.
#![allow(clippy::unwrap_used, reason = "a failure here is the test's own")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cairn_fio::parse::Keywords;
use cairn_fio::{ParseError, Parser, Plan};

fn folder(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/jobs")
        .join(below)
}

fn job_files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut list: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "fio"))
        .collect();
    list.sort();
    list
}

/// Reads a file by its bare name, so that messages do not tell where the checkout lies.
fn parse(path: &Path, options: &[&str]) -> Result<Plan, ParseError> {
    let folder = path.parent().unwrap().to_owned();
    let name = path.file_name().unwrap().to_str().unwrap();
    let machine = Keywords {
        pagesize: 4096,
        mb_memory: 1024,
        ncpus: 2,
    };
    Parser::new()
        .files(move |name| std::fs::read(folder.join(name)))
        .environment(|_| None)
        .keywords(machine)
        .command_line(options.iter().copied().chain([name]))
}

#[test]
fn good_files_are_read_and_survive_printing() {
    let files = job_files(&folder(""));
    assert!(files.len() >= 60, "only {} job files", files.len());
    for path in files {
        let plan = parse(&path, &[]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let text = plan
            .to_job_file()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let again = Parser::new().job_text("printed", &text).unwrap();
        assert_eq!(again, plan, "{} as\n{text}", path.display());
        let words = plan.to_arguments();
        let mut again = Parser::new().command_line(&words).unwrap();
        for (new, old) in again.jobs.iter_mut().zip(&plan.jobs) {
            assert!(new.same_workload(old), "{} as {words:?}", path.display());
        }
        assert_eq!(again.jobs.len(), plan.jobs.len());
    }
}

#[test]
fn the_messages_of_bad_files() {
    let mut report = String::new();
    let files = job_files(&folder("invalid"));
    assert!(files.len() >= 40, "only {} bad job files", files.len());
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        match parse(&path, &[]) {
            Ok(plan) => panic!("{name} was read: {plan:?}"),
            Err(error) => writeln!(report, "{error}").unwrap(),
        }
        let message = report.lines().last().unwrap();
        assert!(
            message.contains(name)
                || message.contains("nowhere")
                || message.contains("section.inc"),
            "{message} does not name {name}"
        );
    }
    insta::assert_snapshot!(report);
}

#[test]
fn the_lints_of_good_files() {
    let mut report = String::new();
    for path in job_files(&folder("")) {
        for lint in parse(&path, &[]).unwrap().lints {
            writeln!(report, "{lint}").unwrap();
        }
    }
    insta::assert_snapshot!(report);
}

#[test]
fn warnings_can_be_fatal() {
    let path = folder("").join("direct-misaligned.fio");
    assert!(parse(&path, &[]).is_ok());
    let error = parse(&path, &["--warnings-fatal"]).unwrap_err().to_string();
    assert!(error.contains("unaligned-direct"), "{error}");
}

/// Starts `fio --parse-only` on files of one folder.
fn start_fio(paths: &[PathBuf]) -> Child {
    Command::new("fio")
        .arg("--parse-only")
        .args(paths.iter().map(|path| path.file_name().unwrap()))
        .current_dir(paths.first().unwrap().parent().unwrap())
        .env_remove("CAIRN_TEST_UNSET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The verdicts of fio. It takes a quarter of a second to start, so files that it should accept go to it
/// together; only when that fails, and for those it should refuse, each goes alone.
fn verdicts(paths: &[PathBuf], together: bool) -> Vec<bool> {
    if together && start_fio(paths).wait().unwrap().success() {
        return vec![true; paths.len()];
    }
    let mut list = Vec::new();
    for some in paths.chunks(8) {
        let children: Vec<Child> = some
            .iter()
            .map(|path| start_fio(std::slice::from_ref(path)))
            .collect();
        list.extend(
            children
                .into_iter()
                .map(|mut child| child.wait().unwrap().success()),
        );
    }
    list
}

/// Whether this fio is the version whose verdicts the fixtures note.
fn fio_is_the_reference() -> bool {
    let version = Command::new("fio").arg("--version").output();
    version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).starts_with("fio-3.33"))
}

#[test]
fn fio_gives_the_same_verdicts() {
    if !fio_is_the_reference() {
        println!("skipped: fio 3.33 is not installed, so verdicts are not compared");
        return;
    }
    // The files that Cairn refuses on purpose say so, and why fio does not.
    let on_purpose = |path: &PathBuf| {
        std::fs::read_to_string(path)
            .unwrap()
            .starts_with("; fio accepts:")
    };
    let (deliberate, bad): (Vec<_>, Vec<_>) = job_files(&folder("invalid"))
        .into_iter()
        .partition(on_purpose);
    let mut wrong = Vec::new();
    for (paths, ours, theirs) in [
        (job_files(&folder("")), true, true),
        (deliberate, false, true),
        (bad, false, false),
    ] {
        for (path, verdict) in paths.iter().zip(verdicts(&paths, theirs)) {
            let accepted = parse(path, &["--parse-only"]).is_ok();
            if verdict != theirs || accepted != ours {
                wrong.push(format!(
                    "{}: accepted here {accepted}, by fio {verdict}",
                    path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
