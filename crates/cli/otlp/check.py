"""Runs a program with `--otlp`, and checks the spans that a collector gets. The first argument is the binary."""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

PROGRAM = """
CREATE TABLE t (a BIGINT, b VARCHAR);
CREATE MATERIALIZED VIEW v AS SELECT b, COUNT(*) AS n FROM t GROUP BY b;
INSERT INTO t VALUES (1, 'secret');
SELECT * FROM v WHERE b = 'secret';
"""


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[trace_service_pb2.ExportTraceServiceRequest] = []

    def Export(self, request, context):  # noqa: N802, the name of the service's call
        self.requests.append(request)
        return trace_service_pb2.ExportTraceServiceResponse()


def run(binary: str, folder: Path, url: str) -> None:
    program = folder / "program.sql"
    program.write_text(PROGRAM)
    command = [binary, "run", str(program), "--state", str(folder / "state"), "--otlp", url]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)


def main() -> None:
    binary = sys.argv[1]
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        run(binary, Path(folder), f"http://127.0.0.1:{port}")
    server.stop(None)
    assert not any(b"secret" in request.SerializeToString() for request in collector.requests)
    resources = [resource for request in collector.requests for resource in request.resource_spans]
    names = {attribute.value.string_value for it in resources for attribute in it.resource.attributes}
    assert "alluvium" in names, names
    spans = [span for it in resources for scope in it.scope_spans for span in scope.spans]
    commands = {attribute.value.string_value for it in spans for attribute in it.attributes if attribute.key == "command"}
    assert commands >= {"CREATE TABLE", "CREATE MATERIALIZED VIEW", "INSERT", "SELECT"}, commands
    calls = {span.name for span in spans}
    assert calls >= {"open", "statement", "commit", "finish", "checkpoint"}, calls
    print(f"{len(spans)} spans of {len(calls)} names")

    # A collector that is not there neither delays nor ends the program.
    with tempfile.TemporaryDirectory() as folder:
        run(binary, Path(folder), f"http://127.0.0.1:{port}")
    print("without a collector the program runs as well")


if __name__ == "__main__":
    main()
