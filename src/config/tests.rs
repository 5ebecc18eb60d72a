//! Tests of a whole configuration.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;
use base::secret::Secret;
use base::settings::{EnvFile, FolderTrust};
use chat_api::CertificateFile;
use host::scratch::Scratch;

const ENDPOINT: &str = "LLM_API_BASE_URL=https://api.example/v1\nLLM_MODEL_NAME=m\nLLM_API_KEY=k\n";

/// Resolves a configuration from environment variables, one per line.
fn resolve(lines: &str) -> Result<Config> {
    let variables = lines.lines().filter_map(|line| line.split_once('='));
    let environment = variables.map(|(name, value)| (name.into(), value.into())).collect();
    Config::resolve(&Settings::new(environment), Path::new("/nowhere"), ConfigNeeds::Endpoint)
}

/// Same as [`resolve`], with the text of an untrusted `./.env`.
fn resolve_with_untrusted_file(lines: &str, text: &str) -> Result<Config> {
    let variables = lines.lines().filter_map(|line| line.split_once('='));
    let environment = variables.map(|(name, value)| (name.into(), value.into())).collect();
    let mut settings = Settings::new(environment);
    let look_up = |_: &str| Some(" ".into());
    settings
        .add_file(EnvFile::of_folder(text.as_bytes(), &FolderTrust::Unknown, &look_up).unwrap());
    Config::resolve(&settings, Path::new("/nowhere"), ConfigNeeds::Endpoint)
}

#[test]
fn proxy_depends_on_the_endpoint() {
    let both = "HTTPS_PROXY=s\nHTTP_PROXY=h\nALL_PROXY=a\n";
    let broken = "HTTPS_PROXY=ftp://s\n";
    let table = [
        ("https://api.example/v1", both, Some("http://s:1080")),
        ("http://api.example/v1", both, Some("http://h:1080")),
        ("https://api.example", "HTTP_PROXY=h\n", None),
        ("http://api.example", "HTTPS_PROXY=s\n", None),
        ("https://api.example", "ALL_PROXY=socks5h://a\n", Some("socks5h://a:1080")),
        ("https://api.example", "HTTPS_PROXY=S\nhttps_proxy=s\n", Some("http://s:1080")),
        ("https://api.example", "HTTPS_PROXY= \nALL_PROXY=a\n", Some("http://a:1080")),
        ("https://api.example", "HTTPS_PROXY=s\nNO_PROXY=example\n", None),
        (
            "https://api.example",
            "HTTPS_PROXY=s\nno_proxy=other\nNO_PROXY=*\n",
            Some("http://s:1080"),
        ),
        // Settings that are not used are not checked.
        ("https://localhost:8443", broken, None),
        ("http://127.0.0.1", "HTTP_PROXY=h\n", None),
        ("http://api.example", broken, None),
        ("https://api.example", "HTTPS_PROXY=ftp://s\nNO_PROXY=*\n", None),
    ];
    for (address, lines, expected) in table {
        let all = format!("LLM_API_BASE_URL={address}\nLLM_MODEL_NAME=m\nLLM_API_KEY=k\n{lines}");
        let network = resolve(&all).unwrap().endpoint.unwrap().network;
        let proxy = network.proxy.map(|proxy| proxy.to_string());
        assert_eq!(proxy.as_deref(), expected, "{address} {lines}");
    }
}

#[test]
fn certificates_are_read_if_tls_is_used() {
    let folder = Scratch::new(&std::env::temp_dir()).unwrap();
    let path = folder.path().join("roots.pem");
    let pem = b"# mine\n-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
    fs::write(&path, pem).unwrap();
    let file = path.display();
    let table = [
        (format!("LLM_API_BASE_URL=https://api.example\nSSL_CERT_FILE={file}\n"), true),
        (format!("LLM_API_BASE_URL=https://localhost\nSSL_CERT_FILE={file}\n"), true),
        (
            format!(
                "LLM_API_BASE_URL=https://a.example\nCURL_CA_BUNDLE={file}\nREQUESTS_CA_BUNDLE=\n"
            ),
            true,
        ),
        (
            "LLM_API_BASE_URL=http://a.example\nHTTP_PROXY=http://p\nSSL_CERT_FILE=missing\n"
                .into(),
            false,
        ),
        ("LLM_API_BASE_URL=https://a.example\n".into(), false),
    ];
    for (lines, is_read) in table {
        let all = format!("{lines}LLM_MODEL_NAME=m\nLLM_API_KEY=k\n");
        let roots = resolve(&all).unwrap().endpoint.unwrap().network.roots;
        let expected = is_read.then(|| CertificateFile { path: path.clone(), pem: pem.to_vec() });
        assert_eq!(roots, expected, "{lines}");
    }
}

#[test]
fn extra_body_and_headers_are_sent_and_a_header_replaces_the_key() {
    let lines = r#"LLM_EXTRA_BODY={"temperature": 0, "chat_template_kwargs": {"enable_thinking": false}}
LLM_EXTRA_HEADERS={"X-Gateway": "gateway-token"}
"#;
    let config = resolve(&format!("{ENDPOINT}{lines}")).unwrap();
    assert_eq!(config.secrets.mask("a gateway-token"), "a [secret]");
    let endpoint = config.endpoint.unwrap();
    assert_eq!(
        Value::Object(endpoint.extra_body),
        serde_json::json!({"temperature": 0, "chat_template_kwargs": {"enable_thinking": false}})
    );
    let header = ("x-gateway".to_string(), Secret::new("gateway-token").unwrap());
    assert_eq!(endpoint.extra_headers, [header]);
    assert_eq!(endpoint.key, Secret::new("k"));
    for name in ["Authorization", "api-key"] {
        for rest in [ENDPOINT, &ENDPOINT.replace("LLM_API_KEY=k", "")] {
            let lines = format!("{rest}LLM_EXTRA_HEADERS={{\"{name}\": \"Bearer x\"}}\n");
            assert_eq!(resolve(&lines).unwrap().endpoint.unwrap().key, None);
        }
    }
}

#[test]
fn a_credential_over_plain_http_gives_a_warning() {
    let header = "LLM_EXTRA_HEADERS={\"x\": \"y\"}\n";
    let http = "LLM_API_BASE_URL=http://api.example\nLLM_MODEL_NAME=m\n";
    let local = "LLM_API_BASE_URL=http://localhost\nLLM_MODEL_NAME=m\nLLM_API_KEY=k\n";
    let table = [
        (format!("{http}LLM_API_KEY=k\n"), "LLM_API_KEY goes to api.example over plain http"),
        (format!("{http}LLM_API_KEY=none\n{header}"), "LLM_EXTRA_HEADERS goes to api.example"),
        (
            format!("{http}LLM_API_KEY=k\nHTTP_PROXY=http://p\n{header}"),
            "LLM_API_KEY and LLM_EXTRA_HEADERS go to api.example",
        ),
        (format!("{http}LLM_API_KEY=none\n"), ""),
        (format!("{local}{header}"), ""),
        (format!("{ENDPOINT}{header}"), ""),
    ];
    for (lines, expected) in table {
        let warnings: Vec<String> =
            resolve(&lines).unwrap().warnings.iter().map(Fault::to_string).collect();
        let warnings = warnings.join("\n");
        assert!(warnings.contains(expected), "{lines}: {warnings}");
        assert_eq!(warnings.is_empty(), expected.is_empty(), "{lines}: {warnings}");
    }
}

/// Checks which of the user's data an untrusted `./.env` can send where.
#[test]
fn user_data_is_not_sent_to_an_address_from_an_untrusted_file() {
    let own_address = "LLM_API_BASE_URL=https://api.example\nLLM_MODEL_NAME=m\n";
    let own_key = "LLM_API_KEY=k\n";
    let both = format!("{own_address}{own_key}");
    let evil = "LLM_API_BASE_URL=https://evil.example\nLLM_MODEL_NAME=m\n";
    let evil_key = format!("{evil}LLM_API_KEY=theirs\n");
    let header = "LLM_EXTRA_HEADERS={\"x\": \"y\"}\n";
    let refused = [
        (
            own_key,
            evil.to_string(),
            "LLM_API_KEY (environment) is not sent to evil.example:443, which only .env line 1 sets",
        ),
        (header, evil_key.clone(), "LLM_EXTRA_HEADERS (environment) is not sent to evil.example"),
        (
            &both,
            "https_proxy=p\n".into(),
            "through the proxy http://p:1080, which only .env line 1 sets: set https_proxy",
        ),
        (
            &both,
            "ALL_PROXY=socks5://127.0.0.1\n".into(),
            "through the proxy socks5h://127.0.0.1:1080",
        ),
    ];
    for (environment, text, expected) in refused {
        let error = resolve_with_untrusted_file(environment, &text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
        // The same settings, set by the user.
        resolve(&format!("{environment}{text}")).unwrap();
    }
}

/// Variables of the environment are not expanded in what others get; those of the file, defaults,
/// and other settings are.
#[test]
fn an_untrusted_file_gets_no_variables_in_what_is_sent() {
    let text = "OWN=o\nLLM_API_BASE_URL=https://${B}evil.example\nLLM_MODEL_NAME='m${OWN}${C}${D:-d}'\n\
                LLM_API_KEY=${A}k\nSCRIPT_TIMEOUT_SECONDS=${A}7\nMEMORY_PATH=./${A}facts.md\n";
    let look_up = |name: &str| (name != "D").then(|| "1".to_string());
    let mut settings = Settings::new(Vec::new());
    let file = EnvFile::of_folder(text.as_bytes(), &FolderTrust::Unknown, &look_up).unwrap();
    let notices: Vec<String> = file.notices.iter().map(|it| it.message.clone()).collect();
    settings.add_file(file);
    let config = Config::resolve(&settings, Path::new("/nowhere"), ConfigNeeds::Endpoint).unwrap();
    let endpoint = config.endpoint.unwrap();
    assert_eq!(endpoint.address.host(), "evil.example");
    assert_eq!((&*endpoint.model, endpoint.key.unwrap().reveal()), ("mod", "k"));
    assert_eq!(config.scripts.limit.as_secs(), 17);
    assert_eq!(config.storage.facts.unwrap(), Path::new("/nowhere/facts.md"));
    let of = |line: &str| format!("{line} gets no variables of the environment");
    let lines = [
        "LLM_API_BASE_URL (.env line 2)",
        "LLM_MODEL_NAME (.env line 3)",
        "LLM_API_KEY (.env line 4)",
        "MEMORY_PATH (.env line 6)",
    ];
    assert_eq!(notices, lines.map(of));
}

/// Checks that `./.env` may use data of its own, and destinations that are not used.
#[test]
fn data_from_an_untrusted_file_is_sent_to_its_own_address() {
    let both = "LLM_API_BASE_URL=https://api.example\nLLM_MODEL_NAME=m\nLLM_API_KEY=k\n";
    let evil_key = "LLM_API_BASE_URL=https://evil.example\nLLM_MODEL_NAME=m\nLLM_API_KEY=theirs\n";
    let header = "LLM_EXTRA_HEADERS={\"x\": \"y\"}\n";
    let allowed = [
        ("", evil_key.to_string()),
        ("", format!("{evil_key}{header}HTTPS_PROXY=p\nLLM_EXTRA_BODY={{\"a\": 1}}\n")),
        // The proxy is not used.
        (both, "HTTP_PROXY=p\n".into()),
        (both, "HTTPS_PROXY=p\nNO_PROXY=api.example\n".into()),
        (
            "LLM_API_BASE_URL=http://localhost\nLLM_MODEL_NAME=m\nLLM_API_KEY=k\n",
            "HTTP_PROXY=p\n".into(),
        ),
        // The body of `./.env`, sent to the user's own endpoint.
        (both, "LLM_EXTRA_BODY='${A}{\"a\": 1}'\n".into()),
    ];
    for (environment, text) in allowed {
        if let Err(error) = resolve_with_untrusted_file(environment, &text) {
            panic!("{environment}{text}: {error}");
        }
    }
}
