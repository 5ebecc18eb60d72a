//! Which package brings a module, for modules that are well known.
//!
//! Only these are ever named in a command: to install from an index whatever
//! bears the name of an unknown module is how strangers' code gets in. The rows
//! are what published skills import most, and what is near to it.

/// The package that brings a module: the longest known beginning of its dotted
/// name counts. None: nobody here knows, and nobody guesses.
pub fn package_of(module: &str) -> Option<&'static str> {
    row_of(module).map(|(_, package)| *package)
}

/// The part of a dotted name by which a package is known: `google.genai` of
/// `google.genai.types`; without one, the first word.
pub fn known_part(module: &str) -> &str {
    match row_of(module) {
        Some((known, _)) => known,
        None => module.split('.').next().unwrap_or(module),
    }
}

/// Modules that share their first word with those of other packages.
pub fn namespaced() -> impl Iterator<Item = &'static str> {
    let modules = PACKAGES.iter().map(|(module, _)| *module);
    modules.filter(|module| module.contains('.'))
}

fn row_of(module: &str) -> Option<&'static (&'static str, &'static str)> {
    let ends = module.match_indices('.').map(|(at, _)| at);
    let mut parts: Vec<&str> = ends.map(|at| &module[..at]).collect();
    parts.push(module);
    parts.iter().rev().find_map(|part| {
        let found = PACKAGES.binary_search_by_key(part, |(known, _)| *known);
        found.ok().and_then(|at| PACKAGES.get(at))
    })
}

/// Sorted by module; packages as they are published.
#[rustfmt::skip]
const PACKAGES: &[(&str, &str)] = &[
    ("Bio", "biopython"), ("Crypto", "pycryptodome"), ("Cryptodome", "pycryptodomex"), ("Evtx", "python-evtx"),
    ("IPython", "ipython"), ("Levenshtein", "Levenshtein"), ("MySQLdb", "mysqlclient"), ("OpenSSL", "pyOpenSSL"),
    ("PIL", "pillow"), ("PyPDF2", "PyPDF2"), ("PyPDF4", "PyPDF4"), ("Registry", "python-registry"),
    ("accelerate", "accelerate"), ("aiofiles", "aiofiles"), ("aiohttp", "aiohttp"), ("aiosqlite", "aiosqlite"),
    ("akshare", "akshare"), ("albumentations", "albumentations"), ("alembic", "alembic"), ("altair", "altair"),
    ("androguard", "androguard"), ("anndata", "anndata"), ("anthropic", "anthropic"), ("apscheduler", "APScheduler"),
    ("arboreto", "arboreto"), ("arrow", "arrow"), ("arviz", "arviz"), ("arxiv", "arxiv"), ("asana", "asana"),
    ("astropy", "astropy"), ("asyncpg", "asyncpg"), ("atlassian", "atlassian-python-api"), ("attackcti", "attackcti"),
    ("attr", "attrs"), ("authlib", "Authlib"), ("azure.core", "azure-core"), ("azure.cosmos", "azure-cosmos"),
    ("azure.identity", "azure-identity"), ("azure.keyvault.secrets", "azure-keyvault-secrets"),
    ("azure.mgmt.compute", "azure-mgmt-compute"), ("azure.mgmt.resource", "azure-mgmt-resource"),
    ("azure.mgmt.storage", "azure-mgmt-storage"), ("azure.monitor.query", "azure-monitor-query"),
    ("azure.storage.blob", "azure-storage-blob"), ("babel", "Babel"), ("backoff", "backoff"),
    ("barcode", "python-barcode"), ("bcrypt", "bcrypt"), ("bibtexparser", "bibtexparser"),
    ("bioservices", "bioservices"), ("black", "black"), ("bleach", "bleach"), ("bleak", "bleak"), ("bokeh", "bokeh"),
    ("boto3", "boto3"), ("botocore", "botocore"), ("brotli", "Brotli"), ("browser_cookie3", "browser-cookie3"),
    ("bs4", "beautifulsoup4"), ("bson", "pymongo"), ("cachetools", "cachetools"), ("cairo", "pycairo"),
    ("cairosvg", "CairoSVG"), ("camelot", "camelot-py"), ("catboost", "catboost"), ("cbor2", "cbor2"),
    ("ccxt", "ccxt"), ("censys", "censys"), ("certifi", "certifi"), ("chardet", "chardet"),
    ("charset_normalizer", "charset-normalizer"), ("chromadb", "chromadb"), ("click", "click"), ("cohere", "cohere"),
    ("colorama", "colorama"), ("croniter", "croniter"), ("cryptography", "cryptography"), ("cssselect", "cssselect"),
    ("cv2", "opencv-python-headless"), ("cvxpy", "cvxpy"), ("cycler", "cycler"), ("dask", "dask"),
    ("datamol", "datamol"), ("datasets", "datasets"), ("dateparser", "dateparser"), ("dateutil", "python-dateutil"),
    ("ddgs", "ddgs"), ("deep_translator", "deep-translator"), ("deepchem", "deepchem"), ("defusedxml", "defusedxml"),
    ("discord", "discord.py"), ("diskcache", "diskcache"), ("django", "Django"), ("dns", "dnspython"),
    ("docker", "docker"), ("docling", "docling"), ("docx", "python-docx"), ("docx2pdf", "docx2pdf"),
    ("docx2txt", "docx2txt"), ("docxtpl", "docxtpl"), ("dotenv", "python-dotenv"), ("dpkt", "dpkt"), ("dspy", "dspy"),
    ("duckdb", "duckdb"), ("duckduckgo_search", "duckduckgo-search"), ("easyocr", "easyocr"),
    ("ebooklib", "EbookLib"), ("edge_tts", "edge-tts"), ("elasticsearch", "elasticsearch"),
    ("elevenlabs", "elevenlabs"), ("elftools", "pyelftools"), ("emoji", "emoji"), ("engineio", "python-engineio"),
    ("ete3", "ete3"), ("evaluate", "evaluate"), ("exa_py", "exa-py"), ("extract_msg", "extract-msg"),
    ("ezdxf", "ezdxf"), ("fabric", "fabric"), ("faiss", "faiss-cpu"), ("faker", "Faker"),
    ("falconpy", "crowdstrike-falconpy"), ("fastapi", "fastapi"), ("faster_whisper", "faster-whisper"),
    ("fastmcp", "fastmcp"), ("feedparser", "feedparser"), ("ffmpeg", "ffmpeg-python"), ("filelock", "filelock"),
    ("finnhub", "finnhub-python"), ("fiona", "fiona"), ("firecrawl", "firecrawl-py"), ("fitz", "PyMuPDF"),
    ("flask", "Flask"), ("flask_cors", "Flask-Cors"), ("folium", "folium"), ("fontTools", "fonttools"),
    ("fpdf", "fpdf2"), ("frida", "frida"), ("frontmatter", "python-frontmatter"), ("fuzzywuzzy", "fuzzywuzzy"),
    ("gensim", "gensim"), ("geoip2", "geoip2"), ("geopandas", "geopandas"), ("geopy", "geopy"), ("gget", "gget"),
    ("git", "GitPython"), ("github", "PyGithub"), ("gitlab", "python-gitlab"), ("google.adk", "google-adk"),
    ("google.analytics.data_v1beta", "google-analytics-data"), ("google.api_core", "google-api-core"),
    ("google.auth", "google-auth"), ("google.cloud.aiplatform", "google-cloud-aiplatform"),
    ("google.cloud.asset_v1", "google-cloud-asset"), ("google.cloud.bigquery", "google-cloud-bigquery"),
    ("google.cloud.compute_v1", "google-cloud-compute"), ("google.cloud.dlp_v2", "google-cloud-dlp"),
    ("google.cloud.firestore", "google-cloud-firestore"), ("google.cloud.iam_admin_v1", "google-cloud-iam"),
    ("google.cloud.iap_v1", "google-cloud-iap"), ("google.cloud.monitoring_v3", "google-cloud-monitoring"),
    ("google.cloud.pubsub_v1", "google-cloud-pubsub"),
    ("google.cloud.resourcemanager_v3", "google-cloud-resource-manager"),
    ("google.cloud.secretmanager", "google-cloud-secret-manager"),
    ("google.cloud.securitycenter_v1", "google-cloud-securitycenter"), ("google.cloud.speech", "google-cloud-speech"),
    ("google.cloud.storage", "google-cloud-storage"), ("google.cloud.texttospeech", "google-cloud-texttospeech"),
    ("google.cloud.translate", "google-cloud-translate"), ("google.cloud.vision", "google-cloud-vision"),
    ("google.genai", "google-genai"), ("google.generativeai", "google-generativeai"),
    ("google.oauth2", "google-auth"), ("google.protobuf", "protobuf"),
    ("google_auth_httplib2", "google-auth-httplib2"), ("google_auth_oauthlib", "google-auth-oauthlib"),
    ("googleapiclient", "google-api-python-client"), ("gradio", "gradio"), ("graphviz", "graphviz"),
    ("gridfs", "pymongo"), ("groq", "groq"), ("grpc", "grpcio"), ("gspread", "gspread"), ("gtts", "gTTS"),
    ("gunicorn", "gunicorn"), ("gymnasium", "gymnasium"), ("h5py", "h5py"), ("hdbscan", "hdbscan"),
    ("holidays", "holidays"), ("html2text", "html2text"), ("html5lib", "html5lib"), ("httpx", "httpx"),
    ("hubspot", "hubspot-api-client"), ("huggingface_hub", "huggingface-hub"), ("humanize", "humanize"),
    ("hvac", "hvac"), ("hypothesis", "hypothesis"), ("icalendar", "icalendar"), ("ics", "ics"), ("idna", "idna"),
    ("imageio", "imageio"), ("imageio_ffmpeg", "imageio-ffmpeg"), ("impacket", "impacket"), ("invoke", "invoke"),
    ("ipywidgets", "ipywidgets"), ("jax", "jax"), ("jedi", "jedi"), ("jieba", "jieba"), ("jinja2", "Jinja2"),
    ("jira", "jira"), ("jmespath", "jmespath"), ("joblib", "joblib"), ("jose", "python-jose"),
    ("jsbeautifier", "jsbeautifier"), ("json5", "json5"), ("jsonpath_ng", "jsonpath-ng"),
    ("jsonschema", "jsonschema"), ("jwt", "PyJWT"), ("kaleido", "kaleido"), ("keras", "keras"),
    ("keyring", "keyring"), ("kubernetes", "kubernetes"), ("langchain", "langchain"),
    ("langchain_community", "langchain-community"), ("langchain_core", "langchain-core"),
    ("langchain_openai", "langchain-openai"), ("langdetect", "langdetect"), ("langgraph", "langgraph"),
    ("lark", "lark"), ("lark_oapi", "lark-oapi"), ("ldap3", "ldap3"), ("libcst", "libcst"), ("librosa", "librosa"),
    ("lifelines", "lifelines"), ("lightgbm", "lightgbm"), ("lightning", "lightning"), ("litellm", "litellm"),
    ("loguru", "loguru"), ("lxml", "lxml"), ("lz4", "lz4"), ("magic", "python-magic"), ("mammoth", "mammoth"),
    ("manim", "manim"), ("markdown", "Markdown"), ("markdown_it", "markdown-it-py"), ("markdownify", "markdownify"),
    ("markitdown", "markitdown"), ("matplotlib", "matplotlib"), ("mcp", "mcp"), ("medchem", "medchem"),
    ("mido", "mido"), ("mistralai", "mistralai"), ("mistune", "mistune"), ("mlflow", "mlflow"), ("monai", "monai"),
    ("moviepy", "moviepy"), ("mp_api", "mp-api"), ("mpl_toolkits", "matplotlib"), ("msal", "msal"),
    ("msgpack", "msgpack"), ("mss", "mss"), ("multipart", "python-multipart"), ("music21", "music21"),
    ("mutagen", "mutagen"), ("mysql.connector", "mysql-connector-python"), ("nacl", "PyNaCl"), ("napalm", "napalm"),
    ("nbclient", "nbclient"), ("nbconvert", "nbconvert"), ("nbformat", "nbformat"), ("neo4j", "neo4j"),
    ("netmiko", "netmiko"), ("networkx", "networkx"), ("newspaper", "newspaper3k"), ("nibabel", "nibabel"),
    ("nltk", "nltk"), ("nmap", "python-nmap"), ("notion_client", "notion-client"), ("numba", "numba"),
    ("numpy", "numpy"), ("oauthlib", "oauthlib"), ("odf", "odfpy"), ("oletools", "oletools"), ("ollama", "ollama"),
    ("onnx", "onnx"), ("onnxruntime", "onnxruntime"), ("openai", "openai"), ("opencc", "OpenCC"),
    ("openpyxl", "openpyxl"), ("opentrons", "opentrons"), ("optuna", "optuna"), ("orjson", "orjson"),
    ("ortools", "ortools"), ("osgeo", "GDAL"), ("packaging", "packaging"), ("paho.mqtt", "paho-mqtt"),
    ("pandas", "pandas"), ("paramiko", "paramiko"), ("parso", "parso"), ("passlib", "passlib"),
    ("patchright", "patchright"), ("pdf2image", "pdf2image"), ("pdfminer", "pdfminer.six"),
    ("pdfplumber", "pdfplumber"), ("pefile", "pefile"), ("peft", "peft"), ("pendulum", "pendulum"),
    ("pexpect", "pexpect"), ("phonenumbers", "phonenumbers"), ("pikepdf", "pikepdf"), ("pinecone", "pinecone"),
    ("pkg_resources", "setuptools"), ("platformdirs", "platformdirs"), ("playwright", "playwright"),
    ("plotly", "plotly"), ("ply", "ply"), ("polars", "polars"), ("pptx", "python-pptx"), ("praw", "praw"),
    ("prettytable", "prettytable"), ("probeinterface", "probeinterface"), ("prompt_toolkit", "prompt-toolkit"),
    ("psutil", "psutil"), ("psycopg", "psycopg"), ("psycopg2", "psycopg2-binary"), ("pubchempy", "PubChemPy"),
    ("pufferlib", "pufferlib"), ("pulp", "PuLP"), ("pwn", "pwntools"), ("py7zr", "py7zr"), ("pyarrow", "pyarrow"),
    ("pyautogui", "PyAutoGUI"), ("pybtex", "pybtex"), ("pycountry", "pycountry"), ("pycti", "pycti"),
    ("pydantic", "pydantic"), ("pydantic_settings", "pydantic-settings"), ("pydeseq2", "pydeseq2"),
    ("pydicom", "pydicom"), ("pydot", "pydot"), ("pydub", "pydub"), ("pygments", "Pygments"),
    ("pygraphviz", "pygraphviz"), ("pylab", "matplotlib"), ("pymatgen", "pymatgen"), ("pymc", "pymc"),
    ("pymisp", "pymisp"), ("pymodbus", "pymodbus"), ("pymongo", "pymongo"), ("pymoo", "pymoo"),
    ("pymssql", "pymssql"), ("pymupdf", "PyMuPDF"), ("pymupdf4llm", "pymupdf4llm"), ("pymysql", "PyMySQL"),
    ("pynput", "pynput"), ("pyopenms", "pyopenms"), ("pypandoc", "pypandoc"), ("pypdf", "pypdf"),
    ("pypdfium2", "pypdfium2"), ("pyperclip", "pyperclip"), ("pypinyin", "pypinyin"), ("pyproj", "pyproj"),
    ("pyshark", "pyshark"), ("pysnmp", "pysnmp"), ("pytesseract", "pytesseract"), ("pytest", "pytest"),
    ("pythoncom", "pywin32"), ("pytorch_lightning", "pytorch-lightning"), ("pyttsx3", "pyttsx3"), ("pytz", "pytz"),
    ("pyxlsb", "pyxlsb"), ("pyzbar", "pyzbar"), ("qdrant_client", "qdrant-client"), ("qrcode", "qrcode"),
    ("quantstats", "QuantStats"), ("questionary", "questionary"), ("r2pipe", "r2pipe"), ("radon", "radon"),
    ("rapidfuzz", "RapidFuzz"), ("rarfile", "rarfile"), ("rasterio", "rasterio"), ("rdkit", "rdkit"),
    ("readability", "readability-lxml"), ("redis", "redis"), ("regex", "regex"), ("regipy", "regipy"),
    ("replicate", "replicate"), ("reportlab", "reportlab"), ("requests", "requests"),
    ("requests_html", "requests-html"), ("requests_oauthlib", "requests-oauthlib"),
    ("requests_toolbelt", "requests-toolbelt"), ("rest_framework", "djangorestframework"), ("rich", "rich"),
    ("ruamel.yaml", "ruamel.yaml"), ("ruff", "ruff"), ("scanpy", "scanpy"), ("scapy", "scapy"),
    ("schedule", "schedule"), ("scholarly", "scholarly"), ("scipy", "scipy"), ("scvelo", "scvelo"),
    ("seaborn", "seaborn"), ("selectolax", "selectolax"), ("selenium", "selenium"),
    ("semanticscholar", "semanticscholar"), ("send2trash", "Send2Trash"), ("sendgrid", "sendgrid"),
    ("sentence_transformers", "sentence-transformers"), ("serial", "pyserial"), ("setuptools", "setuptools"),
    ("sh", "sh"), ("shap", "shap"), ("shapely", "shapely"), ("shodan", "shodan"), ("shopify", "ShopifyAPI"),
    ("simple_salesforce", "simple-salesforce"), ("simpy", "simpy"), ("six", "six"), ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"), ("slack_bolt", "slack-bolt"), ("slack_sdk", "slack-sdk"),
    ("slugify", "python-slugify"), ("socketio", "python-socketio"), ("socks", "PySocks"),
    ("sounddevice", "sounddevice"), ("soundfile", "soundfile"), ("soupsieve", "soupsieve"), ("spacy", "spacy"),
    ("speech_recognition", "SpeechRecognition"), ("spikeinterface", "spikeinterface"), ("splunklib", "splunk-sdk"),
    ("sqlalchemy", "SQLAlchemy"), ("sqlmodel", "sqlmodel"), ("sseclient", "sseclient-py"),
    ("stable_baselines3", "stable-baselines3"), ("starlette", "starlette"), ("statsmodels", "statsmodels"),
    ("stix2", "stix2"), ("streamlit", "streamlit"), ("stripe", "stripe"), ("striprtf", "striprtf"),
    ("structlog", "structlog"), ("svglib", "svglib"), ("sympy", "sympy"), ("tables", "tables"),
    ("tabula", "tabula-py"), ("tabulate", "tabulate"), ("tavily", "tavily-python"), ("taxii2client", "taxii2-client"),
    ("tdc", "PyTDC"), ("telebot", "pyTelegramBotAPI"), ("telegram", "python-telegram-bot"), ("telethon", "Telethon"),
    ("tenacity", "tenacity"), ("tensorflow", "tensorflow"), ("termcolor", "termcolor"), ("textual", "textual"),
    ("tifffile", "tifffile"), ("tiktoken", "tiktoken"), ("tldextract", "tldextract"), ("tokenizers", "tokenizers"),
    ("toml", "toml"), ("tomli", "tomli"), ("tomli_w", "tomli-w"), ("tomlkit", "tomlkit"), ("torch", "torch"),
    ("torch_geometric", "torch-geometric"), ("torchaudio", "torchaudio"), ("torchmetrics", "torchmetrics"),
    ("torchvision", "torchvision"), ("tqdm", "tqdm"), ("trackio", "trackio"), ("trafilatura", "trafilatura"),
    ("transformers", "transformers"), ("tree_sitter", "tree-sitter"), ("trimesh", "trimesh"), ("trl", "trl"),
    ("tushare", "tushare"), ("tweepy", "tweepy"), ("twilio", "twilio"), ("typer", "typer"),
    ("typing_extensions", "typing-extensions"), ("tzlocal", "tzlocal"), ("ujson", "ujson"), ("umap", "umap-learn"),
    ("unidecode", "Unidecode"), ("unstructured", "unstructured"), ("urllib3", "urllib3"), ("usb", "pyusb"),
    ("uvicorn", "uvicorn"), ("validators", "validators"), ("videodb", "videodb"), ("vllm", "vllm"),
    ("voyageai", "voyageai"), ("wand", "Wand"), ("wandb", "wandb"), ("watchdog", "watchdog"),
    ("weasyprint", "weasyprint"), ("webdriver_manager", "webdriver-manager"), ("websocket", "websocket-client"),
    ("websockets", "websockets"), ("whisper", "openai-whisper"), ("whois", "python-whois"),
    ("wikipedia", "wikipedia"), ("wikipediaapi", "Wikipedia-API"), ("win32api", "pywin32"), ("win32com", "pywin32"),
    ("win32gui", "pywin32"), ("winrm", "pywinrm"), ("wordcloud", "wordcloud"), ("xarray", "xarray"),
    ("xgboost", "xgboost"), ("xlrd", "xlrd"), ("xlsxwriter", "XlsxWriter"), ("xlwt", "xlwt"),
    ("xmltodict", "xmltodict"), ("yaml", "PyYAML"), ("yara", "yara-python"), ("yara_x", "yara-x"),
    ("yaspin", "yaspin"), ("yfinance", "yfinance"), ("youtube_transcript_api", "youtube-transcript-api"),
    ("yt_dlp", "yt-dlp"), ("zarr", "zarr"), ("zmq", "pyzmq"), ("zstandard", "zstandard"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_names_are_plain() {
        for pair in PACKAGES.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{pair:?}");
        }
        let is_plain = |name: &str| {
            let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            ends_well(name.chars().next())
                && ends_well(name.chars().last())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        for (module, package) in PACKAGES {
            assert!(is_plain(module) && is_plain(package), "{module} {package}");
        }
    }

    #[test]
    fn a_module_is_known_by_the_longest_part_of_its_name() {
        for (module, known, package) in [
            ("PIL", "PIL", Some("pillow")),
            ("PIL.Image", "PIL", Some("pillow")),
            ("openpyxl", "openpyxl", Some("openpyxl")),
            ("google.genai.types", "google.genai", Some("google-genai")),
            (
                "google.cloud.storage.Client",
                "google.cloud.storage",
                Some("google-cloud-storage"),
            ),
            ("google.cloud", "google", None),
            ("google", "google", None),
            ("pil", "pil", None),
            ("nobody_knows", "nobody_knows", None),
            ("", "", None),
        ] {
            assert_eq!(
                (known_part(module), package_of(module)),
                (known, package),
                "{module}"
            );
        }
    }
}
