#!/bin/sh
# prometheus-api-client 0.7.2: what reaches the server of a session, a POST and a range that one hands to it.
#
# Guess: a requests.Session with an adapter of one's own is used as it is (it is documented for "complex HTTP
#        configuration"); method="POST", "for large and complex queries", sends the query as a form; a range from
#        1000.4 to 1002.6 s asks for these times.
# Seen:  the constructor mounts an adapter of its own over the session's, so limits, TLS contexts and retries that were
#        mounted there are dropped without a word (mount again afterwards). The POST has an empty body: the query is in
#        the address, where servers and gateways cut it off at some KiB (Go at 1 MiB). Both times are rounded to whole
#        seconds, .5 to the even one, so all points of the answer are at other times than those asked for; `params`
#        with start and end have the last word.
# Output on 2026-11-29: own adapter used: False; POST with 0 bytes of body and 60020 of address; start 1000, end 1003.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q prometheus-api-client==0.7.2 requests==2.34.2
"$folder/env/bin/python" - <<'PYTHON'
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import requests
from prometheus_api_client import PrometheusConnect
from requests.adapters import HTTPAdapter

asked = []


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        asked.append((self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0))))
        body = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"


class Own(HTTPAdapter):
    pass


session = requests.Session()
session.mount("http://", Own())
client = PrometheusConnect(url, session=session, method="POST")
own = isinstance(session.get_adapter(url), Own)
client.custom_query("x" * 60_000)
(_, address, body) = asked[-1]
client.custom_query_range(
    "up", datetime.fromtimestamp(1000.4, timezone.utc), datetime.fromtimestamp(1002.6, timezone.utc), "1"
)
times = parse_qs(urlsplit(asked[-1][1]).query)
client.custom_query_range("up", datetime.now(), datetime.now(), "1", params={"start": "1000.400", "end": "1002.600"})
exact = parse_qs(urlsplit(asked[-1][1]).query)
print(f"own adapter used: {own}; POST with {len(body)} bytes of body and {len(address)} of address;",
      f"start {times['start'][0]}, end {times['end'][0]}")
assert not own, "the session's own adapter is used now"
assert body == b"" and len(address) > 60_000, "a POST has a form now"
assert (times["start"], times["end"]) == (["1000"], ["1003"]), "times are not rounded now"
assert (exact["start"], exact["end"]) == (["1000.400"], ["1002.600"]), "params don't have the last word now"
PYTHON
echo "as stated"
