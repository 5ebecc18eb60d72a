//! Archives of this machine and from servers on loopback.

use super::pack::{
    commit, entry, executable, file, gnu, gzip, link, pax, tar, tar_gz, zip, zip_with,
};
use super::{change, digest, document, files, lock};
use crate::harness::{Outcome, Reply, Server, Test, seconds};

const COMMIT: &str = "89abcdef0123456789abcdef0123456789abcdef";

/// A skill with an executable file.
fn items(folder: &str) -> Vec<super::pack::Item> {
    vec![
        file(format!("{folder}SKILL.md"), document("one")),
        executable(format!("{folder}bin/run"), "#!/bin/sh\n"),
    ]
}

/// Adds a local archive with this name.
#[track_caller]
fn add(name: &str, bytes: &[u8]) -> (Test, Outcome) {
    let test = Test::new().file(name, bytes);
    let run = change(&test, &["add", &format!("./{name}")]);
    (test, run)
}

/// Both formats; the revision is the commit that the archive names, or its digest.
#[test]
fn archives_are_added() {
    let with_commit = [vec![commit(COMMIT)], items("repo-1/one/")].concat();
    let table = [
        ("a.tar.gz", tar_gz(&items("one/")), None, "one"),
        ("a.zip", zip(&items("one/")), None, "one"),
        ("a.ZIP", zip(&items("deep/in/one/")), None, "deep/in/one"),
        ("a.Tar.Gz", tar_gz(&items("./one/")), None, "one"),
        ("a.tar.gz", tar_gz(&with_commit), Some(COMMIT), "one"),
        ("a.zip", zip_with(&items("r/one/"), COMMIT.as_bytes(), |_, _| {}), Some(COMMIT), "one"),
        (
            "a.tar.gz",
            [gzip(&tar(&items("one/"))[..700]), gzip(&tar(&items("one/"))[700..])].concat(),
            None,
            "one",
        ),
    ];
    for (name, bytes, revision, folder) in table {
        let (test, run) = add(name, &bytes);
        run.success().stdout("added: skills/one\n");
        let locked = &lock(&test)["skills"]["one"];
        let expected = revision.map_or_else(|| digest(&bytes), str::to_owned);
        assert_eq!(
            (&locked["revision"], &locked["folder"]),
            (&expected.into(), &folder.into()),
            "{name}"
        );
        assert_eq!(locked["source"], test.path(name).display().to_string());
        let found = files(&test.path("skills/one"));
        assert_eq!(found.keys().collect::<Vec<_>>(), ["SKILL.md", "bin/run"]);
        assert_eq!(["SKILL.md", "bin/run"].map(|path| found[path].0 & 0o7111), [0, 0o111]);
        assert_eq!(found["SKILL.md"].1, document("one").as_bytes());
    }
    // The archive is the skill: its name is that of the file and of the document.
    let items = [file("SKILL.md", document("my-skill"))];
    for (name, bytes) in [("my-skill.tar.gz", tar_gz(&items)), ("my-skill.zip", zip(&items))] {
        let (_test, run) = add(name, &bytes);
        run.success().stdout("added: skills/my-skill\n");
    }
}

/// Long names in all forms, links and hard links inside of a skill.
#[test]
fn unusual_but_harmless_archives_are_added() {
    let long = format!("one/{}/{}.txt", "folder".repeat(20), "name".repeat(20));
    let more = vec![
        pax(b'x', "path", &long),
        file("short", "pax"),
        gnu(b'L', format!("one/gnu-{}", "x".repeat(120))),
        file("short", "gnu"),
        link("one/link", "bin/run"),
        link("one/bins", "bin"),
        entry(b'1', "one/hard", "one/bin/run"),
        gnu(b'K', format!("./bin/../{}bin/run", "./".repeat(60))),
        link("one/far", "short"),
        entry(b'5', "one/empty/", ""),
        file("one/caf\u{e9}.txt", "x"),
        file("pax_global_header", "x"),
    ];
    let (test, run) = add("a.tar.gz", &tar_gz(&[items("one/"), more].concat()));
    run.success();
    let found = files(&test.path("skills/one"));
    assert_eq!(found[long.strip_prefix("one/").unwrap()].1, b"pax");
    assert_eq!(found[&format!("gnu-{}", "x".repeat(120))].1, b"gnu");
    for path in ["link", "hard", "far", "bins/run"] {
        assert_eq!(
            (found[path].0 & 0o111, &found[path].1[..]),
            (0o111, &b"#!/bin/sh\n"[..]),
            "{path}"
        );
    }
    let more = vec![
        link("one/link", "bin/run"),
        link("one/bins", "./bin/"),
        entry(b'5', "one/empty/", ""),
    ];
    let (test, run) = add("a.zip", &zip(&[items("one/"), more].concat()));
    run.success();
    assert_eq!(files(&test.path("skills/one"))["bins/run"].1, b"#!/bin/sh\n");
}

/// The fields of a zip entry as programs of Windows write them: no mode, no UTF-8 flag.
fn as_windows(_: usize, fields: &mut super::pack::ZipFields) {
    (fields.flags, fields.mode) = (0, 0);
}

/// PowerShell and .NET write backslashes: they separate folders, and all checks hold afterwards.
#[test]
fn backslashes_of_zip_archives_are_folders() {
    let doc = document("one");
    let mixed = [
        entry(b'0', "one\\empty\\", ""),
        file("one\\SKILL.md", &doc),
        file("one/bin\\run", "x"),
        file("one/deep\\er/data\\a.md", "y"),
    ];
    let (test, run) = add("a.zip", &zip_with(&mixed, b"", as_windows));
    run.success().stdout("added: skills/one\n");
    let found = files(&test.path("skills/one")).into_keys().collect::<Vec<_>>();
    assert_eq!(found, ["SKILL.md", "bin/run", "deep/er/data/a.md"]);
    for path in ["one\\..\\..\\evil", "..\\evil", "\\evil", "\\\\host\\share", "one/..\\evil"] {
        let items = [file("one\\SKILL.md", &doc), file(path, "evil")];
        let (test, run) = add("a.zip", &zip_with(&items, b"", as_windows));
        run.status(1).stderr_has("the path `");
        assert!(!test.exists("skills/one") && !test.exists("evil"), "{path}");
    }
    for twin in ["ONE\\SKILL.md", "one\\skill.md", "one\\bin.\\x", "one\\.GIT\\config"] {
        let items = [file("one\\SKILL.md", &doc), file("one/bin/a", ""), file(twin, "x")];
        let (test, run) = add("a.zip", &zip_with(&items, b"", as_windows));
        run.status(1);
        assert!(!test.exists("skills/one"), "{twin}");
    }
}

/// What Finder adds to archives and folders is nothing of a skill, from any source.
#[test]
fn files_of_macos_are_left_out() {
    let extra = [
        "one/.DS_Store",
        "one/._SKILL.md",
        "one/bin/._run",
        "one/._bin/run",
        "__MACOSX/one/._SKILL.md",
    ];
    let with_extra = [items("one/"), extra.map(|path| file(path, "x")).to_vec()].concat();
    let more = [file("__MACOSX/evil/SKILL.md", document("evil"))];
    let with_more = [with_extra.clone(), more.to_vec()].concat();
    for (name, bytes) in [("a.zip", zip(&with_more)), ("a.tar.gz", tar_gz(&with_extra))] {
        let (test, run) = add(name, &bytes);
        run.success().stdout("added: skills/one\n");
        let found = files(&test.path("skills/one")).into_keys().collect::<Vec<_>>();
        assert_eq!(found, ["SKILL.md", "bin/run"], "{name}");
    }
    let folder = with_extra.iter().fold(Test::new(), |test, item| {
        test.file(&format!("folder/{}", String::from_utf8_lossy(&item.name)), &item.content)
    });
    change(&folder, &["add", "./folder"]).success().stdout("added: skills/one\n");
    assert_eq!(files(&folder.path("skills/one")).len(), 2);
}

/// Names in a code page, such as GBK: that file is left out and named, and if it is the document,
/// the skill. Names that are UTF-8 without the flag are read.
#[test]
fn names_in_a_code_page_are_left_out_and_named() {
    let named = |name: &[u8]| [b"one/", name].concat();
    let odd = [
        file(named(b"\xb1\xed\xb8\xf1.md"), "GBK"),
        file(named(b"gr\x81\xe1e.md"), "CP437"),
        file(named(b"bell\x07.md"), "a control character"),
        file("one/grüße.md", "UTF-8"),
        entry(b'2', "one/link", b"\xb1\xed"),
    ];
    let all = [items("one/"), odd.to_vec()].concat();
    let without_flag = |_: usize, fields: &mut super::pack::ZipFields| fields.flags = 0;
    for (name, bytes) in [("a.zip", zip_with(&all, b"", without_flag)), ("a.tar.gz", tar_gz(&all))]
    {
        let (test, run) = add(name, &bytes);
        let run =
            run.success().stderr_has("`\\xb1\\xed\\xb8\\xf1.md`").stderr_has("`gr\\x81\\xe1e.md`");
        run.stderr_has("`link`: ").stderr_has("not UTF-8").stderr_has("`bell\u{fffd}.md`");
        let found = files(&test.path("skills/one")).into_keys().collect::<Vec<_>>();
        assert_eq!(found, ["SKILL.md", "bin/run", "grüße.md"], "{name}");
    }
    let document = [file(b"\xb1\xed/SKILL.md", document("one")), file(b"\xb1\xed/a.md", "x")];
    for (name, bytes) in
        [("a.zip", zip_with(&document, b"", without_flag)), ("a.tar.gz", tar_gz(&document))]
    {
        let (test, run) = add(name, &bytes);
        run.status(1).stderr_has("\\xb1\\xed").stderr_has("not UTF-8");
        assert!(files(&test.path("skills")).is_empty());
    }
}

/// The folder that an archive has all its files in may be named after a branch or a commit: the
/// name of the only skill is that of its document.
#[test]
fn archive_of_one_skill_has_the_name_of_its_document() {
    let doc = |name: &str| file("repo-main/SKILL.md", document(name));
    let readme = file("repo-main/README.md", "x");
    let macos = file("__MACOSX/repo-main/._SKILL.md", "x");
    let inner = file("repo-main/examples/inner/SKILL.md", document("inner"));
    let table: [(&[super::pack::Item], &str); 5] = [
        (&[doc("forms"), readme.clone()], "forms"),
        (&[doc("forms"), macos, inner, file(".DS_Store", "x"), file("._repo-main", "x")], "forms"),
        (&[doc("Not A Name")], "repo-main"),
        (&[doc("forms"), file("README.md", "x")], "repo-main"),
        (&[doc("forms"), file("other/SKILL.md", document("other"))], "repo-main"),
    ];
    for (items, expected) in table {
        for (name, bytes) in [("a.zip", zip(items)), ("a.tar.gz", tar_gz(items))] {
            let (test, run) = add(name, &bytes);
            run.success().stdout_has(&format!("added: skills/{expected}\n"));
            assert_eq!(lock(&test)["skills"][expected]["folder"], "repo-main");
            change(&test, &["update"])
                .success()
                .stdout_has(&format!("unchanged: skills/{expected}\n"));
            std::fs::remove_dir_all(test.path(format!("skills/{expected}"))).unwrap();
            change(&test, &["restore"]).success();
            assert!(test.exists(&format!("skills/{expected}/SKILL.md")), "{name}");
        }
    }
}

/// An archive from a server on loopback; no key and no other credentials are sent.
#[test]
fn archives_are_downloaded() {
    for (name, bytes) in [("x.tar.gz", tar_gz(&items("one/"))), ("x.zip", zip(&items("one/")))] {
        let server = Server::start([Reply::status(200).body(bytes.clone())]);
        let test = Test::new().endpoint(&server).dotenv("OPENAI_API_KEY=sk-other\n");
        let address = format!("http://127.0.0.1:{}/files/{name}", server.port());
        change(&test, &["add", &address]).success().stdout("added: skills/one\n");
        let locked = &lock(&test)["skills"]["one"];
        assert_eq!(
            (&locked["source"], &locked["revision"]),
            (&address.into(), &digest(&bytes).into())
        );
        let requests = server.finish();
        assert_eq!(
            (requests[0].method.as_str(), requests[0].path.as_str()),
            ("GET", format!("/files/{name}").as_str())
        );
        for (header, value) in &requests[0].headers {
            let is_secret = ["authorization", "cookie", "proxy-authorization"]
                .contains(&header.to_lowercase().as_str());
            assert!(!is_secret && !value.contains("sk-"), "{header}");
        }
    }
}

/// Servers that stop half way, send something else, or redirect.
#[test]
fn failing_downloads_change_nothing() {
    let bytes = tar_gz(&items("one/"));
    let body = |status: u16| Reply::status(status).body(bytes.clone());
    let redirect = |status: u16, to: &str| Reply::status(status).header("Location", to);
    let table = [
        (body(404), "404", 1),
        (body(403), "403", 77),
        (body(410), "410", 1),
        (body(500), "500", 75),
        (body(429), "429", 75),
        (body(418), "418", 1),
        (body(204), "204", 1),
        (body(200).cut_off(), "", 75),
        (body(200).reset(), "", 75),
        (redirect(302, "http://127.0.0.1:1/x.tar.gz"), "https", 1),
        (redirect(301, "file:///etc/passwd"), "", 1),
        (redirect(307, "/x.tar.gz"), "https", 1),
        (redirect(308, ""), "", 1),
        (redirect(302, "ext::sh -c id"), "", 1),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12").then_close(), "", 75),
        (
            Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12").then_close(),
            "",
            75,
        ),
        (Reply::raw("no HTTP\r\n\r\n").then_close(), "", 1),
    ];
    for (number, (reply, text, status)) in table.into_iter().enumerate() {
        let server = Server::start([reply]);
        let test = Test::new();
        let before = files(&test.path(""));
        let address = format!("http://127.0.0.1:{}/x.tar.gz", server.port());
        let run = change(&test, &["add", &address]).stderr_has(text).stdout_is_empty();
        run.check(run.status == status, format_args!("row {number}: not {status}"));
        assert_eq!(files(&test.path("")), before, "row {number}");
    }
    let server = Server::refusing_connections();
    let address = format!("http://127.0.0.1:{}/x.tar.gz", server.port());
    change(&Test::new(), &["add", &address]).status(75);
}

/// A text, a page or other bytes in the place of an archive: the message has that reason.
#[test]
fn other_files_are_reported_as_no_archives() {
    let page = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>\n";
    let contents: [&[u8]; 5] =
        [b"x", page, &[7; 5000], b"# A Markdown file\n", b"Rar!\x1a\x07\x01\0"];
    for content in contents {
        let server = Server::start([Reply::status(200).body(content)]);
        let test = Test::new().file("a.zip", content).file("a-file", content);
        let address = format!("http://127.0.0.1:{}/x.tar.gz", server.port());
        for source in ["./a.zip", "./a-file", &address] {
            let run = change(&test, &["add", source]).status(1).stdout_is_empty();
            run.stderr_has("archive");
        }
    }
}

/// A server that stays silent: the time limit of the run ends it.
#[test]
fn silent_servers_are_given_up() {
    let bytes = tar_gz(&items("one/"));
    for reply in [Reply::empty().hang(), Reply::status(200).body(bytes).hang()] {
        let server = Server::start([reply]);
        let test = Test::new();
        let before = files(&test.path(""));
        let address = format!("http://127.0.0.1:{}/x.tar.gz", server.port());
        let run = change(&test, &["add", &address, "--timeout", "1"]);
        let run = run.took_at_most(seconds(3.0)).stdout_is_empty();
        run.check(run.status == 3, "not the status of a time limit");
        assert_eq!(files(&test.path("")), before);
    }
}

/// A server that sends a few bytes now and then is given up after a minute.
#[test]
#[ignore = "long"]
fn slow_servers_are_given_up() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    let server = Server::start([Reply::raw(head).then_repeat(200, seconds(1.0), [7; 500])]);
    let test = Test::new();
    let before = files(&test.path(""));
    let address = format!("http://127.0.0.1:{}/x.tar.gz", server.port());
    let words = ["skills", "add", &address, "--to", "skills", "--yes"];
    let run = test.next_run().args(words).timeout(seconds(120.0)).run().status(75);
    run.stderr_has("less than 1 KiB/s arrived for 60 s").took_at_most(seconds(90.0));
    assert_eq!(files(&test.path("")), before);
}

/// A server that sends nothing, or no head of a reply, is given up after a minute.
#[test]
#[ignore = "long"]
fn servers_without_a_reply_are_given_up() {
    let waiting = Reply::raw("HTTP/1.1 100 Continue\r\n\r\n");
    let waiting = waiting.then_repeat(200, seconds(1.0), "HTTP/1.1 100 Continue\r\n\r\n");
    for reply in [Reply::empty().hang(), waiting] {
        let server = Server::start([reply]);
        let address = format!("http://127.0.0.1:{}/x.tar.gz", server.port());
        let words = ["skills", "add", &address, "--to", "skills", "--yes"];
        let run = Test::new().args(words).timeout(seconds(120.0)).run().status(75);
        run.stdout_is_empty().took_at_most(seconds(90.0));
    }
}

/// A query may be a secret, and the lock file would keep it.
#[test]
fn addresses_with_secrets_are_refused() {
    let test = Test::new();
    for address in ["http://127.0.0.1:1/x.tar.gz?token=horse", "http://u:horse@127.0.0.1:1/x.zip"] {
        change(&test, &["add", address]).status(2).stderr_lacks("horse");
    }
}
