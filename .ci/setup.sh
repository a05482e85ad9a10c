#!/usr/bin/env bash
# Bring what is missing: the virtual environment, Java, the PostgreSQL JDBC driver and, with --tests,
# the programs of the tests' second PostgreSQL (15, or PGTRICKLE_TEST_POSTGRES), dbt, Cosmos, what builds the docs'
# site, axe-core, and a browser with its driver. What is there is left alone, so a second run needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."

JDBC_FOLDER=/usr/share/java
VERSION=${PGTRICKLE_TEST_POSTGRES:-15}
PROGRAMS=${PGTRICKLE_TEST_PG15_BIN:-/usr/lib/postgresql/$VERSION/bin}
NO_CLUSTER=/etc/postgresql-common/createcluster.d/pgtrickle.conf

# Who waits for minutes sees what is fetched; a log needs no progress.
quiet=--quiet
[[ -t 1 ]] && quiet=

say() { printf '==> %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

java_version() {
    local java=java
    [[ -n ${JAVA_HOME:-} ]] && java=$JAVA_HOME/bin/java
    { "$java" -version 2>&1 || true; } | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

has_java() { local version; version=$(java_version); [[ -n $version && $version -ge 17 ]]; }

has_jdbc() {
    if [[ -n ${PGTRICKLE_JDBC_JAR:-} ]]; then
        [[ -f $PGTRICKLE_JDBC_JAR ]] || fail "PGTRICKLE_JDBC_JAR names $PGTRICKLE_JDBC_JAR, which is no file."
        return 0
    fi
    compgen -G "$JDBC_FOLDER/postgresql*.jar" > /dev/null
}

# tests/airflow/browser/browser.py looks for the same.
has_browser() {
    local name
    command -v chromedriver > /dev/null || return 1
    for name in chromium chromium-browser google-chrome; do command -v "$name" > /dev/null && return 0; done
    return 1
}

has_postgres() { [[ -x $PROGRAMS/initdb && -x $PROGRAMS/postgres ]]; }

as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$@" > /dev/null
}

# The package would start a server of its own on port 5432; nobody asked for one.
apt_install_postgres() {
    local result=0
    as_root mkdir -p "$(dirname "$NO_CLUSTER")"
    as_root sh -c "echo 'create_main_cluster = false' > $NO_CLUSTER"
    apt_install "postgresql-$VERSION" || result=$?
    as_root rm -f "$NO_CLUSTER"
    return "$result"
}

# install PACKAGE WHAT HINT: one package through apt-get, or one sentence that says what to do.
updated=no
install() {
    local package=$1 what=$2 hint=$3 result=0
    command -v apt-get > /dev/null || fail "$what is missing. $hint"
    [[ $(id -u) -eq 0 ]] || command -v sudo > /dev/null || fail "$what is missing, and apt-get needs root. $hint"
    say "installing $package"
    if [[ $updated = no ]]; then
        as_root apt-get update -qq || fail "apt-get update failed, so $what can't be installed. $hint"
        updated=yes
    fi
    case $package in
        postgresql-*) apt_install_postgres || result=$? ;;
        # The driver must be the browser's own version, which one repository has.
        chromium) apt_install chromium chromium-driver || result=$? ;;
        *) apt_install "$package" || result=$? ;;
    esac
    [[ $result -eq 0 ]] || fail "apt-get couldn't install $package. $hint"
}

# The packages of requirements.lock and this folder as an editable install. The stamp keeps a second run off the
# network; it is written last, so that a broken installation is done again.
python_environment() {
    local stamp=.venv/.installed
    if cat requirements.lock pyproject.toml | cmp -s - "$stamp"; then
        say "Python packages (.venv)"
        return
    fi
    if command -v uv > /dev/null; then
        say "Python packages (uv, .venv)"
        [[ -x .venv/bin/python ]] || uv venv --quiet || fail "uv can't make a virtual environment: see above."
        uv pip sync $quiet --python .venv requirements.lock &&
            uv pip install --quiet --python .venv --no-deps --editable . || fail "uv failed to install: see above."
    else
        say "Python packages (pip, .venv)"
        [[ -x .venv/bin/python && -x .venv/bin/pip ]] || pip_environment
        .venv/bin/pip install $quiet --requirement requirements.lock &&
            .venv/bin/pip install --quiet --no-deps --editable . || fail "pip install failed: see above."
    fi
    cat requirements.lock pyproject.toml > "$stamp"
}

# A tool in an environment of its own, .tools/NAME, from its own lock: dbt's packages and Airflow's don't agree. A lock
# is whole, but Cosmos', which finds Airflow in .venv.
tool() {
    local name=$1 lock=$2 folder=.tools/$1
    say "$name ($folder)"
    cmp -s "$lock" "$folder/.installed" && return
    [[ -x $folder/bin/python ]] || .venv/bin/python -m venv "$folder" || fail "Python can't make $folder: see above."
    if command -v uv > /dev/null; then
        uv pip sync $quiet --python "$folder" "$lock" || fail "uv failed to install $name: see above."
    else
        "$folder/bin/pip" install $quiet --no-deps --requirement "$lock" || fail "pip failed to install $name: see above."
    fi
    cp "$lock" "$folder/.installed"
}

# The same for what npm has: axe-core, which the browser tests load into the page, and mermaid, which the site ships.
# Both run in browsers: Node.js is for bringing them.
npm_tool() {
    local name=$1 from=$2 folder=.tools/$1
    say "$name ($folder)"
    cmp -s "$from/package-lock.json" "$folder/.installed" && return
    command -v npm > /dev/null || install npm "npm, which brings $name for the tests," "Install Node.js with npm."
    mkdir -p "$folder"
    cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$folder"
    (cd "$folder" && npm ci --loglevel error --no-fund --no-audit --ignore-scripts > /dev/null) ||
        fail "npm failed to install $name: see above."
    cp "$from/package-lock.json" "$folder/.installed"
}

pip_environment() {
    local python
    for python in python3.13 python3.12 python3.11 python3 ""; do
        [[ -n $python ]] || fail "Python 3.11, 3.12 or 3.13 is missing; install one, or uv."
        "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2> /dev/null && break
    done
    "$python" -m venv .venv || fail "$python can't make a virtual environment; on Debian: apt-get install python3-venv."
}

case ${1:-} in
    "" | --tests) ;;
    --docs)
        python_environment
        tool docs docs/requirements.lock
        npm_tool mermaid .ci/mermaid
        exit
        ;;
    *) fail "usage: .ci/setup.sh [--tests | --docs]" ;;
esac

has_java || install default-jre-headless "Java 17 or newer" \
    "Install a Java runtime, version 17 or newer, and set JAVA_HOME or PATH."
has_java || fail "Java $(java_version) is too old: Spark needs 17. Set JAVA_HOME to a newer one."
say "Java $(java_version)"

has_jdbc || install libpostgresql-jdbc-java "The PostgreSQL JDBC driver" \
    "Download postgresql-42.x.jar from jdbc.postgresql.org and set PGTRICKLE_JDBC_JAR to its path."
say "PostgreSQL JDBC driver"

if [[ ${1:-} = --tests ]]; then
    [[ $VERSION =~ ^1[5-8]$ ]] || fail "PGTRICKLE_TEST_POSTGRES is $VERSION; 15, 16, 17 and 18 are supported."
    has_postgres || install "postgresql-$VERSION" "PostgreSQL $VERSION, which the tests need," \
        "Install it and set PGTRICKLE_TEST_PG15_BIN to the folder of its initdb."
    say "PostgreSQL $VERSION (for the tests)"
    has_browser || install chromium "A browser, in which the tests open the page," \
        "Install chromium or Google Chrome, and the chromedriver of its version, on the PATH."
    has_browser || fail "chromium or chromedriver is not on the PATH."
    say "a browser (for the tests)"
fi

python_environment
if [[ ${1:-} = --tests ]]; then
    tool dbt tests/dbt/requirements.lock
    tool docs docs/requirements.lock
    tool cosmos tests/cosmos/requirements.lock
    npm_tool axe tests/airflow/browser/axe
    npm_tool mermaid .ci/mermaid
fi
say "ready"
