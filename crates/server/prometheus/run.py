#!/usr/bin/env python3
"""Watches `alluvium serve` by Prometheus, as docs/prometheus does it.

Tests the alerts by promtool, and the dashboard by Grafana's types; reads the metrics of a server that runs a program, by promtool; has Prometheus scrape it with
the server's token and with a superuser's password; makes alerts fire; and asks Prometheus every query of the dashboard.

    run.py                     with the program that cargo builds
    run.py --binary PATH       with another one

Needs promtool and prometheus, and npm for Grafana's types. Everything is on loopback and in a temporary folder, and ends with the script; it exits with
1 if something is not as it should be.
"""

import argparse
import base64
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs" / "prometheus"
PATIENCE = 60

PROGRAM = """
CREATE TABLE bid (auction BIGINT, price BIGINT)
    WITH (connector = 'file', path = '{data}/bids.csv', format = 'csv', headers = false, follow = true);
CREATE MATERIALIZED VIEW best WITH (connector = 'file', path = '{data}/best.csv', mode = 'changes')
    AS SELECT auction, MAX(price) AS price FROM bid GROUP BY auction;
START;
"""


# Values of enumerations are texts and numbers in JSON.
TYPED = """
import type { Dashboard } from "@grafana/schema";
type Plain<T> = T extends string ? `${T}` : T extends number ? (`${T}` extends `${infer N extends number}` ? N : T)
    : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
export const dashboard: Plain<Dashboard> = DASHBOARD;
"""


class Wrong(Exception):
    """Something is not as it should be."""


def check(is_right, what):
    if not is_right:
        raise Wrong(what)
    print(f"ok: {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def promtool(*arguments, text=None):
    done = subprocess.run(["promtool", *map(str, arguments)], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"promtool {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}")
    print(f"ok: promtool {' '.join(map(str, arguments[:2]))}")


@contextlib.contextmanager
def running(command, log):
    """A process that ends with this."""
    with log.open("w") as output:
        process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(what, probe, log=None):
    """The first value of a probe that is one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, FileNotFoundError):
            if found := probe():
                print(f"ok: {what}")
                return found
        time.sleep(0.2)
    raise Wrong(f"{what}: not within {PATIENCE} seconds\n{log.read_text()[-2000:] if log else ''}")


class Server:
    """A server of Alluvium."""

    def __init__(self, folder, port):
        self.port = port
        # Clients may use files here.
        self.data = folder / "data"
        self.token_file = folder / "socket" / "http.token"
        self.authorization = None

    def ask(self, path, body=None):
        headers = {"Authorization": self.authorization or f"Bearer {self.token_file.read_text().strip()}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def sql(self, sql):
        return json.loads(self.ask("/v1/sql", {"sql": sql}))

    def fails(self, sql, authorization=None):
        """Sends a statement that is refused."""
        kept, self.authorization = self.authorization, authorization or self.authorization
        try:
            self.sql(sql)
        except urllib.error.HTTPError as error:
            return error.code
        finally:
            self.authorization = kept
        raise Wrong(f"{sql} is not refused")


class Prometheus:
    """A Prometheus that scrapes one server each second."""

    def __init__(self, port):
        self.port = port

    def get(self, path, **parameters):
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            return json.loads(answer.read())["data"]

    def query(self, query):
        return self.get("query", query=query)["result"]

    def firing(self):
        alerts = self.get("alerts")["alerts"]
        return {alert["labels"]["alertname"]: alert for alert in alerts if alert["state"] == "firing"}


@contextlib.contextmanager
def watched(folder, server, secret):
    """Prometheus with the documented configuration, but other addresses and secrets, and a scrape each second. Alerts fire
    without waiting, as their tests have the time."""
    port, data = free_port(), folder / f"prometheus-{time.monotonic_ns()}"
    data.mkdir()
    text = (DOCS / "prometheus.yml").read_text()
    text = text.replace("15s", "1s").replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")
    if isinstance(secret, tuple):
        (data / "password").write_text(secret[1])
        text = re.sub(r"    authorization:\n.*\n", "", text)
        text = text.replace("# basic_auth:", "basic_auth:").replace("#   username: watcher", f"  username: {secret[0]}")
        text = text.replace("#   password_file: /etc/prometheus/alluvium.password", f"  password_file: {data / 'password'}")
    else:
        text = text.replace("/run/alluvium/http.token", str(secret))
    (data / "prometheus.yml").write_text(text)
    alerts = re.sub(r"^        for: .*\n", "", (DOCS / "alerts.yml").read_text(), flags=re.M)
    (data / "alerts.yml").write_text(alerts)
    promtool("check", "config", data / "prometheus.yml")
    command = ["prometheus", f"--config.file={data / 'prometheus.yml'}", f"--storage.tsdb.path={data / 'tsdb'}"]
    log = data / "log"
    with running([*command, f"--web.listen-address=127.0.0.1:{port}"], log):
        prometheus = Prometheus(port)
        wait_for("Prometheus answers", lambda: prometheus.get("status/buildinfo"), log)
        yield prometheus


def check_types(folder):
    """The dashboard, as TypeScript reads it with the types of Grafana."""
    npm = ["npm", "install", "--no-fund", "--no-audit", "--prefix", folder, "@grafana/schema@13", "typescript@5"]
    subprocess.run(npm, stdout=subprocess.DEVNULL, check=True)
    dashboard = (DOCS / "dashboard.json").read_text()
    (folder / "dashboard.ts").write_text(TYPED.replace("DASHBOARD", dashboard))
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext"]
    done = subprocess.run([folder / "node_modules/.bin/tsc", *options, "dashboard.ts"], cwd=folder, capture_output=True, text=True)
    check(done.returncode == 0, f"the dashboard is one by Grafana's types{done.stdout}")


def as_text_format(text):
    """OpenMetrics as the older text, which `promtool check metrics` reads: there, counters are named with their suffix."""
    counters = re.findall(r"^# TYPE (\S+) counter$", text, re.M)
    for name in counters:
        text = re.sub(rf"^(# (?:TYPE|HELP)) {name} ", rf"\1 {name}_total ", text, flags=re.M)
    return text.replace("# EOF\n", "")


def expressions():
    """The queries of the dashboard, with its variables filled in."""
    dashboard = json.loads((DOCS / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for variable, value in [("$job", "alluvium"), ("$instance", ".*"), ("$__rate_interval", "5s")]:
                query = query.replace(variable, value)
            if "$" in query:
                raise Wrong(f"{panel['title']} has an unknown variable: {query}")
            yield panel["title"], query


def work(server):
    """Some work of each kind: sources, outputs, statements."""
    with (server.data / "bids.csv").open("a") as bids:
        bids.writelines(f"{number % 7},{number}\n" for number in range(1000))
    for _ in range(5):
        server.sql("SELECT * FROM best")
    server.fails("SELECT nothing")


def watch_without_roles(server, folder):
    odd = server.data / "odd.csv"
    metrics = server.ask("/metrics")
    promtool("check", "metrics", text=as_text_format(metrics))
    with watched(folder, server, server.token_file) as prometheus:
        wait_for("the server is scraped with its token", lambda: prometheus.query('up{job="alluvium"} == 1'))
        end = time.monotonic() + 8
        while time.monotonic() < end:
            work(server)
            time.sleep(0.5)
        check(not prometheus.firing(), "no alert fires while all is well")
        empty = []
        for title, query in expressions():
            found = prometheus.query(query)
            if not found:
                empty.append(f"{title}: {query}")
        # Without a failure, a budget that is reached, or a client that waits there is nothing to show.
        print(f"ok: Prometheus answers all queries of the dashboard; without rows are {len(empty)}")
        for line in empty:
            print(f"    {line}")
        odd.write_text("1,2\nnothing,3\n")
        server.sql("CREATE TABLE odd (k BIGINT, v BIGINT) WITH (connector = 'file', format = 'csv', headers = false, follow = true,"
                   f" path = '{odd}'); START")
        wait_for("a row that is refused fires an alert", lambda: "AlluviumSourceRefusesRows" in prometheus.firing())
        # A file that is followed only grows.
        odd.write_text("")
        failed = wait_for("a source that fails fires an alert", lambda: prometheus.firing().get("AlluviumSourceFailed"))
        check(failed["labels"]["relation"] == "odd", "the alert names the table of the source")
        codes = {server.fails("SELECT 1", "Bearer nothing") for _ in range(50)}
        check(codes == {401}, "a wrong token is refused")
        wait_for("logins that fail fire an alert", lambda: "AlluviumLoginsFail" in prometheus.firing())


def watch_with_roles(server, folder):
    server.sql("CREATE ROLE watcher SUPERUSER LOGIN PASSWORD 'top secret'; CREATE ROLE reader LOGIN PASSWORD 'reads';"
               " GRANT SELECT ON best TO reader")
    server.authorization = "Basic " + base64.b64encode(b"watcher:top secret").decode()
    with watched(folder, server, ("watcher", "top secret")) as prometheus:
        wait_for("the server is scraped by a superuser", lambda: prometheus.query("alluvium_server_usable == 1"))
    with watched(folder, server, ("reader", "reads")) as prometheus:
        wait_for("a role that sees a part fires an alert", lambda: "AlluviumSeesPart" in prometheus.firing())
        relations = {result["metric"]["relation"] for result in prometheus.query("alluvium_state_rows")}
        check(relations == {"best"}, "a role sees the metrics of what it may select from")
    with watched(folder, server, ("watcher", "wrong")) as prometheus:
        wait_for("a wrong password fires an alert", lambda: "AlluviumDown" in prometheus.firing())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--binary", type=pathlib.Path, default=target / "debug" / "alluvium")
    binary = parser.parse_args().binary
    promtool("check", "rules", DOCS / "alerts.yml")
    promtool("test", "rules", DOCS / "alerts.test.yml")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "types").mkdir()
        check_types(folder / "types")
        (folder / "data").mkdir()
        (folder / "socket").mkdir(0o700)
        (folder / "data" / "bids.csv").write_text("")
        (folder / "program.sql").write_text(PROGRAM.format(data=folder / "data"))
        port, log = free_port(), folder / "log"
        command = [binary, "serve", folder / "program.sql", "--http", f"127.0.0.1:{port}", "--socket", folder / "socket"]
        with running([*command, "--state", folder / "state", "--files", folder / "data", "--workers", "2"], log):
            server = Server(folder, port)
            wait_for("the server answers", lambda: server.ask("/readyz"), log)
            watch_without_roles(server, folder)
            watch_with_roles(server, folder)


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"wrong: {wrong}")
