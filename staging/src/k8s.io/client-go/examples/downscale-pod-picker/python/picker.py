#!/usr/bin/env python3

# Copyright The Kubernetes Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""A downscale pod picker (KEP-3189) that removes the least busy workers first.

It needs nothing but Python 3.8. The environment has its settings: PORT, 8080 by default, and TOKEN,
which all requests must send as "Authorization: Bearer TOKEN" if it is set. Workers report how busy
they are: curl -X PUT --data 0.7 http://picker:8080/load/NAMESPACE/POD

Replace the function pick with your own rule.
"""

import hmac
import json
import math
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_REQUEST_BYTES = 16 << 20  # The names of all pods of the largest clusters.

loads = {}  # By namespace and pod. A real picker also forgets pods that are gone.
lock = threading.Lock()


def pick(namespace, candidates, pods):
    """Returns which of the candidates to remove, and which it cannot decide between."""
    with lock:
        # A worker that has not reported may be busy.
        load = {pod: loads.get((namespace, pod), math.inf) for pod in candidates}
    last = sorted(load.values())[min(pods, len(load)) - 1]
    chosen = [pod for pod in candidates if load[pod] < last]
    tied = [pod for pod in candidates if load[pod] == last]
    return chosen, tied


class Handler(BaseHTTPRequestHandler):
    timeout = 10  # Seconds in which a client must send its request.

    def do_POST(self):
        body = self.read(MAX_REQUEST_BYTES)
        if body is None:
            return
        try:
            question = json.loads(body)
            candidates, pods = question["candidate_pods"], question["number_of_pods_requested"]
            if not candidates or type(pods) is not int or pods < 1 or not all(isinstance(pod, str) for pod in candidates):
                raise ValueError("candidate_pods or number_of_pods_requested is wrong")
        except (ValueError, KeyError, TypeError) as error:
            self.answer(400, "no question: %s" % error)
            return
        # It may be asked again about the same pods, so it must change nothing.
        chosen, tied = pick(self.headers.get("Kubernetes-Namespace", ""), candidates, pods)
        self.answer(200, json.dumps({"chosen_pods": chosen, "tied_pods": tied}), "application/json")

    def do_PUT(self):
        parts = self.path.split("/")
        body = self.read(64)
        if body is None:
            return
        try:
            if len(parts) != 4 or parts[1] != "load":
                raise ValueError("the path must be /load/NAMESPACE/POD")
            load = float(body)
            if not math.isfinite(load):
                raise ValueError("the load must be a finite number")
        except ValueError as error:
            self.answer(400, str(error))
            return
        with lock:
            loads[parts[2], parts[3]] = load
        self.answer(200, "ok")

    def read(self, limit):
        """Returns the body, or None after an answer that refuses the request."""
        token = os.environ.get("TOKEN", "")
        sent = self.headers.get("Authorization", "")
        if token and not hmac.compare_digest(sent.encode("utf-8", "replace"), ("Bearer " + token).encode()):
            self.answer(401, "wrong token")
            return None
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > limit:
            self.answer(413, "the body must have a length, of at most %d bytes" % limit)
            return None
        return self.rfile.read(int(length))

    def answer(self, status, text, content_type="text/plain"):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code="-", size="-"):
        pass  # A query may be secret.


if __name__ == "__main__":
    server = ThreadingHTTPServer(("", int(os.environ.get("PORT", "8080"))), Handler)
    print("listening on port %d" % server.server_address[1], flush=True)
    server.serve_forever()
