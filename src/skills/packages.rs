//! Table of well-known modules and the packages that provide them.
//!
//! Only these packages are ever named in a command: installing a package because it has
//! the name of an unknown module may run an attacker's code. The rows are the modules that
//! published skills import most, and related ones.

use std::sync::LazyLock;

use base::text;

/// The package that provides a module, by the longest known prefix of its dotted name.
/// `None` if the module is not in the table: a package is never guessed.
pub fn package_of(module: &str) -> Option<&'static str> {
    row_of(module).map(|(_, package)| package)
}

/// The package of the table that has this name, however it is spelled.
pub fn package_named(name: &str) -> Option<&'static str> {
    let name = normalized_name(name);
    let is_same = |package: &&str| package.len() == name.len() && normalized_name(package) == name;
    rows().map(|(_, package)| package).find(is_same)
}

/// A package of the table whose name is nearly this one, but not the same: a letter more, less or
/// different, two letters in the wrong order, or other dashes.
pub fn nearly_named(name: &str) -> Option<&'static str> {
    let letters = |name: &str| normalized_name(name).replace('-', "");
    let sorted = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    let wanted = letters(name);
    let is_near = |known: &&str| {
        let known = letters(known);
        if known.len().abs_diff(wanted.len()) > 1 || known.len() < 3 {
            return false;
        }
        match text::edit_distance(&known, &wanted) {
            0 | 1 => true,
            2 => sorted(&known) == sorted(&wanted),
            _ => false,
        }
    };
    rows().map(|(_, package)| package).find(is_near).filter(|_| package_named(name).is_none())
}

/// Whether this holds for a module that a package may provide: one of the table, or one with the
/// package's own name.
pub(crate) fn any_module_of(package: &str, mut holds: impl FnMut(&str) -> bool) -> bool {
    let name = normalized_name(package);
    let mut known = rows().filter(|(_, package)| normalized_name(package) == name);
    known.any(|(module, _)| holds(module)) || holds(&name.replace('-', "_"))
}

/// The part of a dotted name that is in the table: `google.genai` of
/// `google.genai.types`. If there is none, the first word.
pub fn known_module(module: &str) -> &str {
    match row_of(module) {
        Some((known, _)) => known,
        None => module.split('.').next().unwrap_or(module),
    }
}

/// Modules with a dotted name: other packages provide modules with the same first word.
pub(crate) fn namespaced_modules() -> impl Iterator<Item = &'static str> {
    let modules = rows().map(|(module, _)| module);
    modules.filter(|module| module.contains('.'))
}

/// The project's name at the start of a requirement, as [`normalized_name`].
pub fn project_name(requirement: &str) -> String {
    let requirement = requirement.trim();
    let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c));
    normalized_name(&requirement[..end.unwrap_or(requirement.len())])
}

/// The project's name in a requirement; `None` for an option, a path or an address.
pub fn package_name(requirement: &str) -> Option<String> {
    let text = requirement.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let rest = text.trim_start_matches(is_part);
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !rest.starts_with(['/', ':', '+', '\\'])
        // An address follows the name.
        && (rest.trim_start().starts_with('@') || !is_archive(text));
    is_name.then(|| project_name(text))
}

/// Whether a requirement is the file name of an archive, ignoring extras and marker.
pub fn is_archive(requirement: &str) -> bool {
    let file = requirement.split([';', '[']).next().unwrap_or_default();
    let file = file.trim_end().to_ascii_lowercase();
    ARCHIVES.iter().any(|end| file.ends_with(end))
}

/// Suffixes of files that can be installed.
const ARCHIVES: [&str; 12] =
    [".whl", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz", ".xz", ".txz", ".lz", ".tlz", ".lzma"];

/// A name as package indexes compare it (PEP 503): in lower case, with one dash for each
/// run of dashes, dots and underscores.
pub fn normalized_name(name: &str) -> String {
    let name = name.to_lowercase();
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-")
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    // Split once: the needs of a thousand skills ask for it a million times.
    static ROWS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let rows = PACKAGES.split(',').map(str::trim);
        rows.map(|row| row.split_once(' ').unwrap_or((row, row))).collect()
    });
    ROWS.iter().copied()
}

fn row_of(module: &str) -> Option<(&'static str, &'static str)> {
    let is_known = |(known, _): &(&str, &str)| {
        let rest = module.strip_prefix(*known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    rows().filter(is_known).max_by_key(|(known, _)| known.len())
}

/// Modules, sorted, each followed by its package if that has another name. One string, as
/// a table of references would be four times as large.
const PACKAGES: &str = "\
Bio biopython, Crypto pycryptodome, Cryptodome pycryptodomex, Evtx python-evtx, IPython ipython, Levenshtein,
MySQLdb mysqlclient, OpenSSL pyOpenSSL, PIL pillow, PyPDF2, PyPDF4, Registry python-registry, absl absl-py,
accelerate, aiodataloader, aiofiles, aiohttp, aiosqlite, airflow apache-airflow, akshare, albumentations,
alembic, altair, androguard, anndata, anthropic, anytree, apscheduler APScheduler, arboreto, ariadne, arrow,
arviz, arxiv, asana, astropy, asyncpg, atlassian atlassian-python-api, attackcti, attr attrs, authlib Authlib,
azure.ai.contentsafety azure-ai-contentsafety, azure.ai.documentintelligence azure-ai-documentintelligence,
azure.ai.ml azure-ai-ml, azure.ai.projects azure-ai-projects, azure.ai.textanalytics azure-ai-textanalytics,
azure.ai.vision.imageanalysis azure-ai-vision-imageanalysis, azure.appconfiguration azure-appconfiguration,
azure.containerregistry azure-containerregistry, azure.core azure-core, azure.cosmos azure-cosmos,
azure.data.tables azure-data-tables, azure.eventgrid azure-eventgrid, azure.eventhub azure-eventhub,
azure.identity azure-identity, azure.keyvault.certificates azure-keyvault-certificates,
azure.keyvault.keys azure-keyvault-keys, azure.keyvault.secrets azure-keyvault-secrets,
azure.mgmt.compute azure-mgmt-compute, azure.mgmt.resource azure-mgmt-resource,
azure.mgmt.storage azure-mgmt-storage, azure.monitor.ingestion azure-monitor-ingestion,
azure.monitor.opentelemetry azure-monitor-opentelemetry, azure.monitor.query azure-monitor-query,
azure.search.documents azure-search-documents, azure.servicebus azure-servicebus,
azure.storage.blob azure-storage-blob, azure.storage.filedatalake azure-storage-file-datalake,
azure.storage.fileshare azure-storage-file-share, azure.storage.queue azure-storage-queue, babel Babel,
backoff, barcode python-barcode, bcrypt, bibtexparser, bioservices, black, bleach, bleak, bokeh, boto3,
botocore, brotli Brotli, browser_cookie3 browser-cookie3, bs4 beautifulsoup4, bson pymongo, cachetools,
cairo pycairo, cairosvg CairoSVG, camelot camelot-py, catboost, cbor2, ccxt, censys, certifi, chardet,
charset_normalizer charset-normalizer, chromadb, click, cohere, colorama, croniter, cryptography, cssselect,
cv2 opencv-python-headless, cvxpy, cycler, dask, datamol, datasets, dateparser, dateutil python-dateutil,
ddgs, deep_translator deep-translator, deepchem, defusedxml, discord discord.py, diskcache, django Django,
dns dnspython, docker, docling, docx python-docx, docx2pdf, docx2txt, docxtpl, dotenv python-dotenv, dpkt,
dspy, duckdb, duckduckgo_search duckduckgo-search, easyocr, ebooklib EbookLib, edge_tts edge-tts,
elasticsearch, elevenlabs, elftools pyelftools, emoji, engineio python-engineio, ete3, evaluate,
exa_py exa-py, extract_msg extract-msg, ezdxf, fabric, faiss faiss-cpu, faker Faker,
falconpy crowdstrike-falconpy, fastapi, faster_whisper faster-whisper, fastmcp, feedparser,
ffmpeg ffmpeg-python, filelock, finnhub finnhub-python, fiona, firecrawl firecrawl-py, fitz PyMuPDF,
flask Flask, flask_cors Flask-Cors, folium, fontTools fonttools, fpdf fpdf2, frida,
frontmatter python-frontmatter, fuzzywuzzy, gensim, geoip2, geopandas, geopy, gget, git GitPython,
github PyGithub, gitlab python-gitlab, google.adk google-adk, google.ads google-ads,
google.analytics.data_v1beta google-analytics-data, google.api_core google-api-core, google.auth google-auth,
google.cloud.aiplatform google-cloud-aiplatform, google.cloud.asset_v1 google-cloud-asset,
google.cloud.bigquery google-cloud-bigquery, google.cloud.compute_v1 google-cloud-compute,
google.cloud.dlp_v2 google-cloud-dlp, google.cloud.firestore google-cloud-firestore,
google.cloud.iam_admin_v1 google-cloud-iam, google.cloud.iap_v1 google-cloud-iap,
google.cloud.monitoring_v3 google-cloud-monitoring, google.cloud.pubsub_v1 google-cloud-pubsub,
google.cloud.resourcemanager_v3 google-cloud-resource-manager,
google.cloud.secretmanager google-cloud-secret-manager,
google.cloud.securitycenter_v1 google-cloud-securitycenter, google.cloud.speech google-cloud-speech,
google.cloud.storage google-cloud-storage, google.cloud.texttospeech google-cloud-texttospeech,
google.cloud.translate google-cloud-translate, google.cloud.vision google-cloud-vision,
google.genai google-genai, google.generativeai google-generativeai, google.oauth2 google-auth,
google.protobuf protobuf, google_auth_httplib2 google-auth-httplib2,
google_auth_oauthlib google-auth-oauthlib, googleapiclient google-api-python-client, gradio,
graphql graphql-core, graphviz, gridfs pymongo, groq, grpc grpcio, gspread, gtts gTTS, gunicorn, gymnasium,
h5py, hdbscan, holidays, html2text, html5lib, httpx, hubspot hubspot-api-client,
huggingface_hub huggingface-hub, humanize, hvac, hypothesis, icalendar, ics, idna, imageio,
imageio_ffmpeg imageio-ffmpeg, impacket, invoke, ipywidgets, jax, jedi, jieba, jinja2 Jinja2, jira, jmespath,
joblib, jose python-jose, jsbeautifier, json5, jsonpath_ng jsonpath-ng, jsonschema, jwt PyJWT, kaleido, keras,
keyring, kubernetes, langchain, langchain_anthropic langchain-anthropic,
langchain_community langchain-community, langchain_core langchain-core, langchain_openai langchain-openai,
langdetect, langgraph, lark, lark_oapi lark-oapi, ldap3, libcst, librosa, lifelines, lightgbm, lightning,
litellm, loguru, lxml, lz4, magic python-magic, mammoth, manim, markdown Markdown, markdown_it markdown-it-py,
markdownify, markitdown, matplotlib, mcp, medchem, mido, mistralai, mistune, mlflow, monai, moviepy,
mp_api mp-api, mpl_toolkits matplotlib, msal, msgpack, mss, multipart python-multipart, music21, mutagen,
mysql.connector mysql-connector-python, nacl PyNaCl, napalm, nbclient, nbconvert, nbformat, neo4j, netmiko,
networkx, newspaper newspaper3k, nibabel, nltk, nmap python-nmap, notion_client notion-client, numba, numpy,
oauthlib, odf odfpy, oletools, ollama, onnx, onnxruntime, openai, opencc OpenCC, openpyxl,
opentelemetry.sdk opentelemetry-sdk, opentelemetry.trace opentelemetry-api, opentrons, optuna, orjson,
ortools, osgeo GDAL, packaging, paho.mqtt paho-mqtt, pandas, paramiko, parso, passlib, patchright, pdf2image,
pdfminer pdfminer.six, pdfplumber, pefile, peft, pendulum, pexpect, phonenumbers, pikepdf, pinecone,
pkg_resources setuptools, platformdirs, playwright, plotly, ply, polars, pptx python-pptx, praw, prettytable,
probeinterface, prompt_toolkit prompt-toolkit, psutil, psycopg, psycopg2 psycopg2-binary, pubchempy PubChemPy,
pufferlib, pulp PuLP, pwn pwntools, py7zr, pyarrow, pyautogui PyAutoGUI, pybtex, pycountry, pycti, pydantic,
pydantic_settings pydantic-settings, pydeseq2, pydicom, pydot, pydub, pygments Pygments, pygraphviz,
pylab matplotlib, pymatgen, pymc, pymisp, pymodbus, pymongo, pymoo, pymssql, pymupdf PyMuPDF, pymupdf4llm,
pymysql PyMySQL, pynput, pyopenms, pypandoc, pypdf, pypdfium2, pyperclip, pypinyin, pyproj, pyshark, pysnmp,
pyspark, pytesseract, pytest, pythoncom pywin32, pytorch_lightning pytorch-lightning, pyttsx3, pytz, pyxlsb,
pyzbar, qdrant_client qdrant-client, qrcode, quantstats QuantStats, questionary, r2pipe, radon,
rapidfuzz RapidFuzz, rarfile, rasterio, rdkit, readability readability-lxml, redis, regex, regipy, replicate,
reportlab, requests, requests_html requests-html, requests_oauthlib requests-oauthlib,
requests_toolbelt requests-toolbelt, rest_framework djangorestframework, rich, ruamel.yaml, ruff, scanpy,
scapy, schedule, scholarly, scipy, scvelo, seaborn, selectolax, selenium, semanticscholar,
send2trash Send2Trash, sendgrid, sentence_transformers sentence-transformers, serial pyserial, setuptools, sh,
shap, shapely, shodan, shopify ShopifyAPI, simple_salesforce simple-salesforce, simpy, six,
skimage scikit-image, sklearn scikit-learn, slack_bolt slack-bolt, slack_sdk slack-sdk,
slugify python-slugify, socketio python-socketio, socks PySocks, sounddevice, soundfile, soupsieve, spacy,
speech_recognition SpeechRecognition, spikeinterface, splunklib splunk-sdk, sqlalchemy SQLAlchemy, sqlmodel,
sseclient sseclient-py, stable_baselines3 stable-baselines3, starlette, statsmodels, stix2, streamlit, stripe,
striprtf, structlog, svglib, sympy, tables, tabula tabula-py, tabulate, tavily tavily-python,
taxii2client taxii2-client, tdc PyTDC, telebot pyTelegramBotAPI, telegram python-telegram-bot,
telethon Telethon, tenacity, tensorflow, termcolor, textual, tifffile, tiktoken, tldextract, tokenizers, toml,
tomli, tomli_w tomli-w, tomlkit, torch, torch_geometric torch-geometric, torchaudio, torchmetrics,
torchvision, tqdm, trackio, trafilatura, transformers, tree_sitter tree-sitter, trimesh, trl, tushare, tweepy,
twilio, typer, typing_extensions typing-extensions, tzlocal, ujson, umap umap-learn, unidecode Unidecode,
unstructured, urllib3, usb pyusb, uvicorn, validators, vertexai google-cloud-aiplatform, videodb, vllm,
voyageai, wand Wand, wandb, watchdog, weasyprint, webdriver_manager webdriver-manager,
websocket websocket-client, websockets, whisper openai-whisper, whois python-whois, wikipedia,
wikipediaapi Wikipedia-API, win32api pywin32, win32com pywin32, win32gui pywin32, winrm pywinrm, wordcloud,
xarray, xgboost, xlrd, xlsxwriter XlsxWriter, xlwt, xmltodict, yaml PyYAML, yara yara-python, yara_x yara-x,
yaspin, yfinance, youtube_transcript_api youtube-transcript-api, yt_dlp yt-dlp, zarr, zmq pyzmq, zstandard";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalized_as_in_indexes() {
        for (requirement, name) in [
            (" Ruamel.YAML >=1", "ruamel-yaml"),
            ("a-_.b[x]; y", "a-b"),
            ("six", "six"),
            ("--pre", "pre"),
        ] {
            assert_eq!(project_name(requirement), name, "{requirement}");
        }
        assert_eq!(normalized_name("google.cloud_x"), "google-cloud-x");
    }

    #[test]
    fn only_some_requirements_show_their_package() {
        for (requirement, name) in [
            ("Flask_Cors[x] >=1 ; os_name == 'x'", Some("flask-cors")),
            ("a @ https://h/a", Some("a")),
            ("a@https://h/a.whl", Some("a")),
            ("-r more.txt", None),
            ("./a", None),
            ("git+https://h/a.git", None),
            ("a-1.0.tar.gz", None),
            ("LP-1.0+abc-py3-none-any.WHL[a, b] ;os_name=='x'", None),
        ] {
            assert_eq!(package_name(requirement).as_deref(), name, "{requirement}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_its_names_are_plain() {
        let rows: Vec<_> = rows().collect();
        for pair in rows.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{pair:?}");
        }
        let is_plain = |name: &str| {
            let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            ends_well(name.chars().next())
                && ends_well(name.chars().last())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        for (module, package) in rows {
            assert!(is_plain(module) && is_plain(package), "{module} {package}");
        }
    }

    #[test]
    fn longest_known_part_of_a_module_decides() {
        for (module, known, package) in [
            ("PIL", "PIL", Some("pillow")),
            ("PIL.Image", "PIL", Some("pillow")),
            ("openpyxl", "openpyxl", Some("openpyxl")),
            ("google.genai.types", "google.genai", Some("google-genai")),
            ("google.cloud.storage.Client", "google.cloud.storage", Some("google-cloud-storage")),
            ("google.cloud", "google", None),
            ("google", "google", None),
            ("pil", "pil", None),
            ("nobody_knows", "nobody_knows", None),
            ("", "", None),
        ] {
            assert_eq!((known_module(module), package_of(module)), (known, package), "{module}");
        }
    }
}
