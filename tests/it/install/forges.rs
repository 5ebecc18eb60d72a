//! Repositories on GitHub, and on other servers, which only git asks: behind a proxy and an
//! authority of our own, which play them.

use serde_json::json;

use super::git::Repository;
use super::pack::{Item, commit, executable, file, tar_gz};
use super::{added, change, document, files, lock, with_source};
use crate::harness::{
    CANARY, Outcome, Proxy, Reply, Request, Server, Test, TlsServer, seconds, tls_file,
};

const COMMIT: &str = "76543210fedcba9876543210fedcba9876543210";

/// The archive of a repository, with the skills `one` and `more/two`.
fn archive() -> Vec<u8> {
    let items: Vec<Item> = vec![
        commit(COMMIT),
        file("repo-main/README.md", "A repository.\n"),
        file("repo-main/skills/one/SKILL.md", document("one")),
        executable("repo-main/skills/one/run.sh", "echo 1\n"),
        file("repo-main/more/two/SKILL.md", document("two")),
    ];
    tar_gz(&items)
}

/// Everything between the program and a scripted server that plays all hosts.
struct Forge {
    test: Test,
    server: Server,
    proxy: Proxy,
    _tls: TlsServer,
}

impl Forge {
    /// Without git, which would ask servers, too.
    fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Forge {
        let server = Server::always(reply);
        let tls = TlsServer::start("forges", server.port());
        let proxy = Proxy::start(tls.port());
        let test = Test::new().folder("empty");
        let path = test.path("empty");
        let test = test
            .endpoint(&server)
            .env("PATH", path)
            .env("LLM_EXTRA_HEADERS", format!("X-Secret: {CANARY}"))
            .env("GITHUB_TOKEN", CANARY)
            .env("HTTPS_PROXY", proxy.url("http", ""))
            .env("SSL_CERT_FILE", tls_file("ca.pem"));
        Forge { test, server, proxy, _tls: tls }
    }

    #[track_caller]
    fn add(&self, source: &str) -> Outcome {
        let _ = std::fs::remove_dir_all(self.test.path("skills"));
        change(&self.test, &["add", source])
    }

    /// Hosts and paths of the requests so far; none of them has a secret.
    #[track_caller]
    fn requests(&self) -> Vec<String> {
        let requests = self.server.requests();
        for request in &requests {
            for (name, value) in &request.headers {
                let lower = name.to_lowercase();
                let is_secret =
                    lower.contains("auth") || lower.contains("cookie") || lower.starts_with("x-");
                assert!(!is_secret && !value.contains(CANARY), "{name}: {value}");
            }
            assert_eq!((request.method.as_str(), request.body.len()), ("GET", 0));
        }
        let line =
            |it: &Request| format!("{}{}", it.header("host").unwrap_or("").to_lowercase(), it.path);
        requests.iter().map(line).collect()
    }
}

/// Answers as GitHub does, which redirects to another host.
fn as_github(request: &Request) -> Reply {
    let host = request.header("host").unwrap_or("").to_lowercase();
    let path = request.path.as_str();
    match host.as_str() {
        "github.com" => {
            match path.strip_suffix(".tar.gz").and_then(|it| it.split_once("/archive/")) {
                Some((repository, reference)) => {
                    let to = format!("https://codeload.github.com{repository}/tar.gz/{reference}");
                    Reply::status(302).header("Location", &to)
                }
                None => Reply::status(404),
            }
        }
        "codeload.github.com" => Reply::status(200).body(archive()),
        _ => Reply::status(404),
    }
}

/// What users type, what is asked for, and what the lock file says.
#[test]
fn repositories_of_github_are_added() {
    let forge = Forge::start(as_github);
    let github = "github.com/owner/repo/archive";
    let table: [(&str, String, &str, &[&str]); 13] = [
        ("owner/repo", format!("{github}/HEAD.tar.gz"), "owner/repo", &["one", "two"]),
        ("owner/repo@v1.2", format!("{github}/v1.2.tar.gz"), "owner/repo@v1.2", &["one", "two"]),
        ("owner/repo/skills", format!("{github}/HEAD.tar.gz"), "owner/repo", &["one"]),
        (
            "owner/repo/skills/one@main",
            format!("{github}/main.tar.gz"),
            "owner/repo@main",
            &["one"],
        ),
        (
            "owner/repo/more@side/topic",
            format!("{github}/side/topic.tar.gz"),
            "owner/repo@side/topic",
            &["two"],
        ),
        ("https://github.com/owner/repo", format!("{github}/HEAD.tar.gz"), "", &["one", "two"]),
        ("https://github.com/owner/repo.git", format!("{github}/HEAD.tar.gz"), "", &["one", "two"]),
        ("https://github.com/owner/repo/", format!("{github}/HEAD.tar.gz"), "", &["one", "two"]),
        ("https://GitHub.com/owner/repo@v1", format!("{github}/v1.tar.gz"), "", &["one", "two"]),
        (
            "https://github.com/owner/repo/tree/main/skills",
            format!("{github}/main.tar.gz"),
            "",
            &["one"],
        ),
        (
            "https://github.com/owner/repo/tree/main/skills/one/",
            format!("{github}/main.tar.gz"),
            "",
            &["one"],
        ),
        (
            "https://github.com/owner/repo/blob/v1/more/two/SKILL.md",
            format!("{github}/v1.tar.gz"),
            "",
            &["two"],
        ),
        (
            "https://github.com/owner/repo/more",
            format!("{github}/HEAD.tar.gz"),
            "https://github.com/owner/repo",
            &["two"],
        ),
    ];
    for (source, request, locked, names) in table {
        let before = forge.requests().len();
        let run = forge.add(source).success();
        let requests = forge.requests().split_off(before);
        run.check(requests.contains(&request), format_args!("no {request}: {requests:?}"));
        run.check(requests.len() <= 2, format_args!("{requests:?}"));
        let lock = lock(&forge.test);
        let skills = lock["skills"].as_object().unwrap();
        assert_eq!(skills.keys().collect::<Vec<_>>(), names, "{source}");
        for (name, skill) in skills {
            assert_eq!(skill["revision"], COMMIT, "{source}: the commit of the archive");
            let folder = if name == "one" { "skills/one" } else { "more/two" };
            assert_eq!(skill["folder"], folder, "{source}");
            assert!(
                locked.is_empty() || skill["source"] == locked,
                "{source}: {}",
                skill["source"]
            );
        }
        // What the lock file says is a source.
        if source.contains('@') {
            let again = change(&forge.test, &["update"]).success();
            again.check(!again.stdout.contains("updated"), "the same again");
        }
        forge.requests();
    }
    assert!(forge.proxy.requests().iter().all(|line| line.starts_with("CONNECT ")));
    assert!(forge.proxy.requests().contains(&"CONNECT codeload.github.com:443".to_owned()));
}

/// Hosts are the same in any letter case.
#[test]
fn letter_case_of_hosts_does_not_matter() {
    let forge = Forge::start(as_github);
    for source in
        ["https://GITHUB.COM/owner/repo/skills", "HTTPS://GitHub.com/owner/repo/skills@main"]
    {
        forge.add(source).success().stdout("added: skills/one\n");
    }
}

/// `restore` asks for the commit, whatever ref was added.
#[test]
fn restores_ask_for_the_commit() {
    let forge = Forge::start(as_github);
    forge.add("owner/repo@main").success();
    let before = files(&forge.test.path("skills"));
    std::fs::remove_dir_all(forge.test.path("skills/one")).unwrap();
    let asked = forge.requests().len();
    change(&forge.test, &["restore"]).success();
    assert_eq!(files(&forge.test.path("skills")), before);
    let requests = forge.requests().split_off(asked);
    let expected = format!("github.com/owner/repo/archive/{COMMIT}.tar.gz");
    assert_eq!(requests[0], expected);
}

/// Redirects: only to https, at most five, and nothing is sent elsewhere.
#[test]
fn redirects_are_bounded_and_encrypted() {
    let hops = |most: usize| {
        move |request: &Request| {
            let hop: usize =
                request.path.rsplit('/').next().and_then(|it| it.parse().ok()).unwrap_or(0);
            match hop {
                hop if hop == most => Reply::status(200).body(archive()),
                hop => Reply::status(302).header("Location", &format!("/hop/{}", hop + 1)),
            }
        }
    };
    let forge = Forge::start(hops(5));
    forge.add("owner/repo").success();
    let forge = Forge::start(hops(6));
    forge.add("owner/repo").status(1).stderr_has("redirect");
    assert_eq!(forge.requests().len(), 6);
    for to in [
        "http://github.com/x",
        "http://127.0.0.1/x",
        "ftp://github.com/x",
        "//[",
        "",
        "file:///etc/passwd",
    ] {
        let forge = Forge::start(move |_| Reply::status(301).header("Location", to));
        let run = forge.add("owner/repo");
        run.check(run.status != 0, to);
        run.stdout_is_empty();
        assert!(files(&forge.test.path("skills")).is_empty(), "{to}");
        assert_eq!(forge.requests().len(), 1, "{to}");
    }
    // A redirect in a circle.
    let forge = Forge::start(|request| {
        Reply::status(302).header("Location", &format!("https://github.com{}", request.path))
    });
    forge.add("owner/repo").status(1).stderr_has("redirect");
    // Into an address with a login: it is not sent.
    let forge = Forge::start(|request| match request.header("host") {
        Some("github.com") => {
            Reply::status(302).header("Location", "https://u:horse@git.example.test/x")
        }
        _ => Reply::status(200).body(archive()),
    });
    let run = forge.add("owner/repo").stderr_lacks("horse");
    run.check(run.status <= 1, "a strange status");
    forge.requests();
}

/// Repositories that are missing or private, without git.
#[test]
fn missing_repositories_are_reported() {
    for status in [404, 403] {
        let forge = Forge::start(move |_| Reply::status(status));
        let run = forge.add("owner/absent").stdout_is_empty();
        run.check(run.status == if status == 404 { 1 } else { 77 }, status);
        let run = run.stderr_has("absent").stderr_has(&status.to_string());
        run.stderr_has("git");
        assert!(files(&forge.test.path("skills")).is_empty());
        assert_eq!(forge.requests().len(), 1);
        // Other servers are asked by git only.
        let run = forge.add("https://gitlab.com/owner/absent").status(1).stdout_is_empty();
        run.stderr_has("git is not installed").stderr_has("hint: install git");
        assert_eq!(forge.requests().len(), 1);
    }
    for status in [503, 429] {
        let forge = Forge::start(move |_| Reply::status(status));
        forge.add("owner/repo").status(75).stderr_has(&status.to_string());
    }
    // A folder, or a name, that is not in it.
    let forge = Forge::start(as_github);
    let run = forge.add("owner/repo/absent").status(1);
    run.stderr_has("absent").stderr_has("skills/one");
    change(&forge.test, &["add", "owner/repo", "--skill", "three"]).status(1).stderr_has("two");
}

/// A body that is cut off, hangs, or is a page.
#[test]
fn incomplete_archives_change_nothing() {
    type Bend = fn(Reply) -> Reply;
    let bends: [(&str, Bend); 4] = [
        ("cut off", Reply::cut_off),
        ("reset", Reply::reset),
        ("hanging", Reply::hang),
        ("a page", |_| Reply::status(200).body("<!DOCTYPE html><title>Sign in</title>")),
    ];
    for (what, bend) in bends {
        let forge = Forge::start(move |request| {
            let reply = as_github(request);
            if request.header("host") == Some("codeload.github.com") { bend(reply) } else { reply }
        });
        let run = change(&forge.test, &["add", "owner/repo", "--timeout", "2"]);
        run.check(run.status != 0, what);
        run.stdout_is_empty().took_at_most(seconds(5.0));
        assert!(files(&forge.test.path("skills")).is_empty(), "{what}");
    }
}

/// The certificate is verified; it is for these names only.
#[test]
fn certificates_are_verified() {
    let forge = Forge::start(as_github);
    let test = forge.test.next_run().env_unset("SSL_CERT_FILE");
    let run = change(&test, &["add", "owner/repo"]);
    run.check(run.status != 0, "the authority is unknown");
    run.stderr_has("certificate");
    let run = forge.add("https://other.test/repo.tar.gz");
    run.check(run.status != 0, "the certificate is for other names");
    run.stderr_has("certificate");
    assert!(forge.requests().is_empty(), "nothing was sent");
}

/// A folder cannot choose the proxy or the authority.
#[test]
fn folders_cannot_choose_proxy_or_authority() {
    let forge = Forge::start(as_github);
    let (proxy, authority) =
        (forge.proxy.url("http", ""), tls_file("ca.pem").display().to_string());
    for (name, value) in
        [("HTTPS_PROXY", &proxy), ("SSL_CERT_FILE", &authority), ("ALL_PROXY", &proxy)]
    {
        let test = forge.test.next_run().env_unset("HTTPS_PROXY").env_unset("SSL_CERT_FILE");
        let test = test.dotenv(&format!("{name}={value}\n"));
        for source in
            ["owner/repo", "https://gitlab.com/owner/repo", "https://github.com/x/y.tar.gz"]
        {
            change(&test, &["add", source]).status(78).stderr_has(name);
            assert!(files(&test.path("skills")).is_empty());
        }
    }
    assert!(forge.requests().is_empty() && forge.proxy.requests().is_empty());
    std::fs::remove_file(forge.test.path(".env")).unwrap();
    // The user's own file can.
    let user = format!("HTTPS_PROXY={proxy}\nSSL_CERT_FILE={authority}\n");
    let test = forge.test.next_run().env_unset("HTTPS_PROXY").env_unset("SSL_CERT_FILE");
    let test = test.file("home/.config/skills-runner/.env", user);
    change(&test, &["add", "owner/repo"]).success();
}

/// What a server does not give without a login is asked for by git, with the user's credentials.
#[test]
fn private_repositories_are_got_by_git() {
    if !super::git::is_there() {
        return;
    }
    let forge = Forge::start(|request| match request.path.contains("/info/refs") {
        true if request.path.starts_with("/owner/slow") => Reply::empty().hang(),
        true => Reply::status(401).header("WWW-Authenticate", "Basic realm=\"forge\""),
        false => Reply::status(404),
    });
    let git = "[credential]\n\thelper = \"!echo username=user; echo password=horse; echo $1 >> $HOME/asked; :\"\n";
    let test = forge.test.next_run().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let test = test.file("home/.gitconfig", git);
    let run = change(&test, &["add", "owner/private"]);
    run.check(run.status != 0, "the login was refused");
    let run = run.stdout_is_empty().stderr_has("owner/private");
    run.stderr_has("hint: check the name").stderr_lacks("horse");
    let asked = forge.server.requests();
    let by_git = asked.iter().filter(|it| it.path.contains("/info/refs")).collect::<Vec<_>>();
    let login = Some("Basic dXNlcjpob3JzZQ==");
    assert_eq!(by_git.last().unwrap().header("authorization"), login, "{asked:?}");
    for request in asked.iter().filter(|it| !it.path.contains("/info/refs")) {
        assert_eq!(request.header("authorization"), None, "{request:?}");
    }
    assert!(forge.proxy.requests().contains(&"CONNECT github.com:443".to_owned()));
    // The time limit ends git, too.
    let run = change(&test, &["add", "owner/slow", "--timeout", "2"]);
    let run = run.took_at_most(seconds(6.0));
    run.check(run.status == 3, "not the status of a time limit");
    assert!(test.processes().is_empty(), "git is still running");
}

/// Repositories of other servers are cloned by git: no address of an archive is tried.
#[test]
fn repositories_of_other_servers_are_got_by_git() {
    if !super::git::is_there() {
        return;
    }
    let made = Test::new().file("repo/skills/one/SKILL.md", document("one"));
    let repository = Repository::new(&made, "repo");
    let commit = repository.commit("first");
    repository.git(&["update-server-info"]);
    let folder = made.path("repo/.git");
    let forge = Forge::start(move |request| {
        let path = request.path.split('?').next().unwrap_or_default();
        let file = path.strip_prefix("/group/sub/repo/").map(|path| folder.join(path));
        let content = file.and_then(|file| std::fs::read(file).ok());
        content.map_or_else(|| Reply::status(404), |bytes| Reply::status(200).body(bytes))
    });
    let test = forge.test.next_run().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for host in ["gitlab.com", "codeberg.org", "git.example.test"] {
        let _ = std::fs::remove_dir_all(test.path("skills"));
        // Only for a commit git takes plain files of a repository.
        let source = format!("https://{host}/group/sub/repo@{commit}");
        change(&test, &["add", &source]).success().stdout("added: skills/one\n");
        let locked = &lock(&test)["skills"]["one"];
        let has = (&locked["source"], &locked["folder"], &locked["revision"]);
        assert_eq!(has, (&json!(source), &json!("skills/one"), &json!(commit)));
        change(&test, &["update"]).success().stdout("unchanged: skills/one\n");
        change(&test, &["add", &format!("https://{host}/group/other")]).status(1);
    }
    let requests = forge.server.requests();
    let other = requests.iter().find(|it| it.path.contains("archive"));
    assert!(other.is_none(), "{other:?}");
}

/// Other bytes for the same commit.
#[test]
fn changed_archives_are_refused() {
    let forge = Forge::start(|request| {
        let text = if request.path.contains(COMMIT) { "other" } else { "" };
        Reply::status(200)
            .body(tar_gz(&[commit(COMMIT), file("r/one/SKILL.md", document("one") + text)]))
    });
    forge.add("owner/repo").success();
    std::fs::remove_dir_all(forge.test.path("skills/one")).unwrap();
    let before = files(&forge.test.path("skills"));
    let run = change(&forge.test, &["restore"]);
    run.check(run.status != 0, "it has other bytes");
    assert_eq!(files(&forge.test.path("skills")), before);
}

/// Archives below any address; the login of a proxy is shown nowhere.
#[test]
fn archives_of_https_servers_are_added() {
    let forge = Forge::start(|_| Reply::status(200).body(archive()));
    let proxy = forge.proxy.url("http", "user:horse-staple@");
    let test = forge.test.next_run().env("HTTPS_PROXY", proxy);
    for source in [
        "https://git.example.test/a/b/c/repo.tar.gz",
        "https://github.com/owner/repo/releases/download/v1/repo.tar.gz",
        "https://git.example.test:8443/repo.tar.gz",
    ] {
        let _ = std::fs::remove_dir_all(test.path("skills"));
        let run = change(&test, &["add", source]).success().stderr_lacks("horse");
        run.stdout("added: skills/one\nadded: skills/two\n");
        assert_eq!(lock(&test)["skills"]["one"]["source"], json!(source));
    }
    let text = test.read("skills/skills-runner.lock");
    assert!(!text.contains("horse"), "{text}");
    test.assert_key_not_saved();
    added(&with_source());
}
