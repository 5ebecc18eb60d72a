//! Repositories that only git can get. Nothing of them, and no hook of the user, ever runs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{added, change, document, files, lock};
use crate::harness::{Test, report_skipped};

/// Whether git is there. If not, the skip is reported.
pub(super) fn is_there() -> bool {
    let works = Command::new("git").arg("--version").output().is_ok_and(|it| it.status.success());
    if !works {
        report_skipped("there is no git on this machine");
    }
    works
}

/// A repository in a folder of the test.
pub(super) struct Repository {
    path: PathBuf,
}

impl Repository {
    pub(super) fn new(test: &Test, folder: &str) -> Repository {
        let repository = Repository { path: test.path(folder) };
        fs::create_dir_all(&repository.path).unwrap();
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// Runs git in the repository, without the settings of the machine.
    #[track_caller]
    pub(super) fn git(&self, words: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(&self.path)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.test"])
            .args(["-c", "protocol.file.allow=always"])
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git starts");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits all files, and returns the commit.
    #[track_caller]
    pub(super) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all", "--force"]);
        self.git(&["commit", "--quiet", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Its address.
    pub(super) fn address(&self) -> String {
        format!("file://{}", self.path.display())
    }
}

/// A repository with the branches `main` and `side/topic`, and the tag `v1`.
fn with_repository() -> (Test, Repository, [String; 2]) {
    let test = Test::new()
        .file("repo/skills/one/SKILL.md", document("one"))
        .executable("repo/skills/one/run.sh", "echo 1\n")
        .link("repo/skills/one/again", "run.sh");
    let repository = Repository::new(&test, "repo");
    let first = repository.commit("first");
    repository.git(&["tag", "-a", "v1", "-m", "v1"]);
    repository.git(&["checkout", "--quiet", "-b", "side/topic"]);
    let test = test.file("repo/skills/one/SKILL.md", document("one") + "side\n");
    let second = repository.commit("second");
    repository.git(&["checkout", "--quiet", "main"]);
    (test, repository, [first, second])
}

/// Branches, tags and commits; the revision is the commit.
#[test]
fn repositories_are_added_by_git() {
    if !is_there() {
        return;
    }
    let (test, repository, [first, second]) = with_repository();
    let table = [
        (String::new(), &first),
        ("@main".into(), &first),
        ("@v1".into(), &first),
        ("@side/topic".into(), &second),
        (format!("@{second}"), &second),
        (format!("@{}", &second[..12]), &second),
    ];
    for (reference, expected) in table {
        let source = format!("{}{reference}", repository.address());
        let _ = fs::remove_dir_all(test.path("skills"));
        change(&test, &["add", &source]).success().stdout("added: skills/one\n");
        let locked = &lock(&test)["skills"]["one"];
        let has = (&locked["source"], &locked["folder"], &locked["revision"]);
        assert_eq!(has, (&source.as_str().into(), &"skills/one".into(), &expected.as_str().into()));
        let is_side = test.read("skills/one/SKILL.md").ends_with("side\n");
        assert_eq!(is_side, *expected == second, "{reference}");
        let found = files(&test.path("skills/one"));
        assert_eq!(found["again"].1, b"echo 1\n");
        assert_ne!(found["run.sh"].0 & 0o111, 0);
    }
    for reference in ["absent", "refs/heads/*", "main:main", "-x", "--upload-pack=x", "a..b"] {
        let source = format!("{}@{reference}", repository.address());
        let before = files(&test.path("skills"));
        let run = change(&test, &["add", &source, "--skill", "one"]);
        run.check(run.status != 0, reference);
        run.stdout_is_empty();
        assert_eq!(files(&test.path("skills")), before);
    }
    let absent = format!("{}/absent", repository.address());
    change(&test, &["add", &absent]).status(1).stderr_has("absent");
}

/// Addresses and refs that would run a program.
#[test]
fn addresses_never_run_programs() {
    if !is_there() {
        return;
    }
    let (test, repository, _) = with_repository();
    let test = test.executable("bin/evil", "#!/bin/sh\ntouch \"$HOME/marker\"\n");
    let test =
        test.executable("bin/ssh", "#!/bin/sh\necho \"$@\" >> \"$HOME/ssh-was-called\"\nexit 1\n");
    let path = format!("{}:{}", test.path("bin").display(), std::env::var("PATH").unwrap());
    let evil = test.path("bin/evil").display().to_string();
    let plain = test.path("repo").display().to_string();
    let address = repository.address();
    let test = test.env("PATH", path);
    let sources = [
        format!("ext::{evil}"),
        format!("ext::sh -c {evil}"),
        format!("ext::{evil}.tar.gz"),
        format!("ext://{evil}/x"),
        format!("fd::17/{plain}"),
        format!("--upload-pack={evil}"),
        format!("--upload-pack={evil} {address}"),
        format!("-u{evil}"),
        format!("--config=core.sshCommand={evil}"),
        format!("{address}@--upload-pack={evil}"),
        format!("{address}@-u{evil}"),
        format!("{address} --upload-pack={evil}"),
        format!("file://--upload-pack={evil}/x"),
        format!("ssh://-oProxyCommand={evil}/x"),
        format!("ssh://-oProxyCommand={evil}@host/x"),
        format!("ssh://host/-oProxyCommand={evil}"),
        format!("ssh://host:-oProxyCommand={evil}/x"),
        format!("ssh://host`{evil}`/x"),
        format!("ssh://host/x;{evil}"),
        format!("ssh://host/$({evil})"),
        format!("file://{plain};{evil}"),
        format!("https::{evil}"),
        format!("git::{address}"),
        format!("transport::ext::{evil}"),
        format!("git@host:-oProxyCommand={evil}"),
    ];
    for source in &sources {
        let before = files(&test.path("skills"));
        let run = change(&test, &["add", source]);
        run.check(run.status != 0, "it was added");
        let run = change(&test, &["add", "--", source]);
        run.check(run.status != 0, "it was added");
        assert!(!test.exists("home/marker"), "{source} ran a program");
        assert_eq!(files(&test.path("skills")), before, "{source}");
    }
    // The same in a lock file.
    for source in &sources {
        let lock = serde_json::json!({"version": 1, "skills": {"one": {
            "source": source, "folder": "", "revision": null, "files": {},
        }}});
        let test = test.next_run().file("skills/skills-runner.lock", lock.to_string());
        for command in ["restore", "update"] {
            change(&test, &[command]);
            assert!(!test.exists("home/marker"), "{command} of {source} ran a program");
        }
    }
    // Refs: in the place of revisions, too.
    for revision in [format!("--upload-pack={evil}"), format!("-u{evil}"), "--exec=x".into()] {
        let lock = serde_json::json!({"version": 1, "skills": {"one": {
            "source": address, "folder": "skills/one", "revision": revision, "files": {},
        }}});
        let test = test.next_run().file("skills/skills-runner.lock", lock.to_string());
        let run = change(&test, &["restore"]);
        run.check(run.status != 0, "it was restored");
        assert!(!test.exists("home/marker"), "{revision} ran a program");
    }
}

/// Hooks and filters of the repository, of a template, and of the user's settings.
#[test]
fn hooks_and_filters_do_not_run() {
    if !is_there() {
        return;
    }
    let hooks = [
        "post-checkout",
        "pre-commit",
        "reference-transaction",
        "post-merge",
        "fsmonitor-watchman",
        "pre-receive",
        "update",
        "post-update",
        "pre-auto-gc",
        "post-index-change",
        "upload-pack",
    ];
    let (test, repository, _) = with_repository();
    let script = "#!/bin/sh\ntouch \"$HOME/marker\"\ncat\n";
    let test = ["repo/.git/hooks", "hooks", "template/hooks"].iter().fold(test, |test, folder| {
        hooks.iter().fold(test, |test, hook| test.executable(&format!("{folder}/{hook}"), script))
    });
    let test = test
        .file("repo/.gitattributes", "* filter=evil diff=evil ident export-subst text eol=crlf\n")
        .executable("evil", script);
    let path = |name: &str| test.path(name).display().to_string();
    repository.commit("attributes");
    let settings = format!(
        "[core]\n\thooksPath = {hooks}\n\tfsmonitor = {evil}\n\tsshCommand = {evil}\n\tgitProxy = {evil}\n\taskPass = {evil}\n\tpager = {evil}\n\tautocrlf = true\n[init]\n\ttemplateDir = {template}\n[filter \"evil\"]\n\tsmudge = {evil}\n\tclean = {evil}\n\trequired = true\n[tar \"tar\"]\n\tcommand = {evil}\n[protocol]\n\tallow = always\n[diff]\n\texternal = {evil}\n",
        hooks = path("hooks"),
        template = path("template"),
        evil = path("evil"),
    );
    let template = path("template");
    let test = test.file("home/.gitconfig", settings).env("GIT_TEMPLATE_DIR", template);
    let run = change(&test, &["add", &repository.address()]);
    run.check(run.status == 0, "it was not added");
    let marker = if test.exists("home/marker") { "a program ran" } else { "" };
    assert_eq!(marker, "");
    let document = test.read("skills/one/SKILL.md");
    assert!(!document.contains('\r'), "files are as in the repository");
    assert_eq!(files(&test.path("skills/one"))["run.sh"].1, b"echo 1\n");
}

/// Submodules are not fetched.
#[test]
fn submodules_are_not_fetched() {
    if !is_there() {
        return;
    }
    let (test, repository, _) = with_repository();
    let test = test.file("inner/inner/SKILL.md", document("inner"));
    let inner = Repository::new(&test, "inner");
    inner.commit("inner");
    repository.git(&["submodule", "--quiet", "add", &inner.address(), "skills/one/module"]);
    repository.commit("module");
    let test = test.file("home/.gitconfig", "[submodule]\n\trecurse = true\n[fetch]\n\trecurseSubmodules = true\n[protocol]\n\tallow = always\n");
    change(&test, &["add", &repository.address()]).success();
    let found = files(&test.path("skills/one"));
    assert!(!found.keys().any(|path| path.starts_with("module/inner")), "{:?}", found.keys());
}

/// Variables of a git that calls this program, as in a hook, do not confuse it.
#[test]
fn variables_of_git_do_not_confuse_it() {
    if !is_there() {
        return;
    }
    let (test, repository, [first, _]) = with_repository();
    let test = test.file("other/other/SKILL.md", document("other"));
    let other = Repository::new(&test, "other");
    other.commit("other");
    let before = files(&test.path("other"));
    let folder = test.path("other/.git").display().to_string();
    let variables = [
        ("GIT_DIR", folder.clone()),
        ("GIT_WORK_TREE", test.path("other").display().to_string()),
        ("GIT_COMMON_DIR", folder.clone()),
        ("GIT_INDEX_FILE", format!("{folder}/index")),
        ("GIT_OBJECT_DIRECTORY", format!("{folder}/objects")),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES", format!("{folder}/objects")),
        ("GIT_NAMESPACE", "other".into()),
        ("GIT_ALLOW_PROTOCOL", "https:ext".into()),
        ("GIT_CEILING_DIRECTORIES", "/".into()),
        ("GIT_SHALLOW_FILE", format!("{folder}/shallow")),
        ("GIT_REPLACE_REF_BASE", "refs/x/".into()),
        ("GIT_PREFIX", "skills/".into()),
        ("GIT_DEFAULT_HASH", "sha1".into()),
    ];
    for (name, value) in variables {
        let test = test.next_run().env(name, value);
        let _ = fs::remove_dir_all(test.path("skills"));
        change(&test, &["add", &repository.address()]).success().stdout("added: skills/one\n");
        assert_eq!(lock(&test)["skills"]["one"]["revision"], first, "{name}");
        assert_eq!(files(&test.path("other")), before, "{name} changed another repository");
    }
}

/// Without git there is one clear error.
#[test]
fn missing_git_is_reported() {
    let test = super::with_source().folder("empty");
    let without = test.next_run().env("PATH", test.path("empty"));
    let run = change(&without, &["add", "file:///nowhere/repo"]).status(1);
    run.stderr_has("git").stderr_has("install");
    added(&without);
}

/// A repository whose files are larger than an archive may be: git stops at that size.
#[test]
#[ignore = "long"]
fn repositories_above_the_limit_are_refused() {
    if !is_there() {
        return;
    }
    let (test, repository, _) = with_repository();
    let large = fs::File::create(test.path("repo/large")).unwrap();
    large.set_len((1 << 30) + 1).unwrap();
    repository.commit("large");
    change(&test, &["add", &repository.address()]).status(1).stderr_has("File too large");
    assert!(files(&test.path("skills")).is_empty());
}

/// What a repository has in its history and links does not lead out.
#[test]
fn links_of_repositories_do_not_lead_out() {
    if !is_there() {
        return;
    }
    let test = Test::new()
        .file("repo/one/SKILL.md", document("one"))
        .link("repo/one/out", "../two/SKILL.md")
        .file("repo/two/SKILL.md", document("two"))
        .file("repo/three/SKILL.md", document("three"))
        .link("repo/three/config", "../.git/config");
    let repository = Repository::new(&test, "repo");
    repository.commit("links");
    let run = change(&test, &["add", &repository.address()]).success();
    run.stderr_has("`out` leads out").stderr_has("`config` leads out");
    let names: Vec<String> = files(&test.path("skills")).into_keys().collect();
    let documents = ["one", "skills-runner.lock", "three", "two"];
    let documents = documents.map(|name| match name {
        "skills-runner.lock" => name.into(),
        name => format!("{name}/SKILL.md"),
    });
    assert_eq!(names, documents);
}
