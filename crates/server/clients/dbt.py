"""Builds the project in the folder dbt, whose models are a table, a view, and views that are kept up to date."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from steps import DATABASE, HOST, PORT, USER, report

PROFILE = f"""
alluvium:
  target: here
  outputs:
    here: {{type: postgres, host: {HOST}, port: {PORT}, user: {USER}, password: none, dbname: {DATABASE}, schema: public, threads: 1}}
"""
DBT = pathlib.Path(sys.executable).parent / "dbt"
HERE = pathlib.Path(__file__).parent


def dbt(name, folder, *arguments):
    environment = {**os.environ, "DBT_PROFILES_DIR": folder, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1"}
    command = [DBT, "--no-version-check", "--log-format", "json", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=150)
    messages = []
    for line in done.stdout.splitlines():
        try:
            info = json.loads(line)["info"]
        except (ValueError, KeyError):
            continue
        if info["level"] == "error":
            messages.append(info["msg"].strip())
    report(name, done.returncode == 0, " / ".join(messages) or done.stderr[-300:])
    return done.returncode == 0


with tempfile.TemporaryDirectory() as folder:
    project = os.path.join(folder, "project")
    shutil.copytree(HERE / "dbt", project)
    pathlib.Path(project, "profiles.yml").write_text(PROFILE)
    if dbt("connect", project, "debug"):
        dbt("write", project, "run")
        # Once more, so that relations that exist are replaced.
        dbt("reflect", project, "run")
        dbt("read", project, "test")
        dbt("list", project, "docs", "generate")
