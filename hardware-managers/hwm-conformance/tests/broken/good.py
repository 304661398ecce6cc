#!/usr/bin/env python3
"""A good manager, written from PROTOCOL.md alone, without an SDK. The broken ones are made of it."""

import json
import os
import socket
import threading
import time


class Error(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.wire = {"code": code, "message": message}
        if data is not None:
            self.wire["data"] = data


class Good:
    name = "good"
    version = "1.0"

    def __init__(self):
        self.socket = socket.socket(fileno=3)
        self.writing = threading.Lock()
        self.cancelled = set()
        self.answered = {}
        self.last = 0
        self.claimed = []

    # ---- the wire

    def write(self, line):
        with self.writing:
            self.socket.sendall(line)

    def send(self, message):
        self.write(json.dumps(dict(jsonrpc="2.0", **message)).encode() + b"\n")

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def ask(self, method, **params):
        self.last += 1
        id = self.last
        self.answered[id] = None
        self.send({"id": id, "method": method, "params": params})
        while self.answered[id] is None:
            time.sleep(0.002)
        return self.answered[id]

    def serve(self):
        rest = b""
        while True:
            try:
                received = self.socket.recv(65536)
            except ConnectionError:
                received = b""
            if not received:
                self.closed()
                return
            lines = (rest + received).split(b"\n")
            rest = lines.pop()
            for line in lines:
                self.line(line)

    def closed(self):
        os._exit(0)

    def line(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            self.bad_line(-32700)
            return
        if not isinstance(message, dict) or not ({"method", "result", "error"} & set(message)):
            self.bad_line(-32600)
        elif "method" not in message:
            self.answered[message["id"]] = message
        elif "id" not in message:
            self.notified(message["method"], message.get("params", {}))
        else:
            threading.Thread(target=self.work, args=(message,), daemon=True).start()

    def bad_line(self, code):
        self.send({"id": None, "error": {"code": code, "message": "bad line"}})

    def notified(self, method, params):
        if method == "cancel":
            self.cancelled.add(params["id"])

    def work(self, message):
        id, method, params = message["id"], message["method"], message.get("params", {})
        try:
            do = getattr(self, "do_" + method, None)
            if do is None:
                self.unknown_method(method)
            result = do(id, params)
            self.answer(id, {"result": result})
        except Error as error:
            self.answer(id, {"error": error.wire})
        if method == "shutdown":
            self.exit()

    def answer(self, id, outcome):
        self.send(dict(id=id, **outcome))

    def exit(self):
        os._exit(0)

    def unknown_method(self, method):
        raise Error(-32601, "no such method: " + method)

    def param(self, params, name, kind):
        if not isinstance(params.get(name), kind):
            raise Error(-32602, "%s is missing or wrong" % name)
        return params[name]

    # ---- the methods

    def do_hello(self, id, params):
        if 1 not in self.param(params, "protocol_versions", list):
            raise Error(-32000, "only version 1", {"supported": [1]})
        return {"protocol_version": 1, "name": self.name, "version": self.version, "vendor": "none"}

    def do_detect(self, id, params):
        self.param(params, "inventory", dict)
        return {"support": "service_provider", "claims": [{"kind": "block", "match": {"model": "ACME *"}}],
                "quirks": [{"suppress": "bmc", "match": {"product_name": "R1*"}, "reason": "it hangs"}]}

    def do_init(self, id, params):
        return {}

    def do_inventory(self, id, params):
        return {"patch": {"firmware": [{"component": "raid:0", "current_version": "1"}]}}

    def offer(self):
        return {
            "interface": "raid", "step": "count", "priority": 0, "abortable": True, "idempotent": True,
            "destructive": "none", "estimated_duration_s": 1,
            "argsinfo": {"times": {"description": "How often", "schema": {"type": "integer", "minimum": 1}}},
            "result_schema": {"type": "object", "required": ["counted"],
                              "properties": {"counted": {"type": "integer"}}},
        }

    def do_steps(self, id, params):
        if params.get("kind") not in ("clean", "deploy", "service", "inspect"):
            raise Error(-32602, "no such kind")
        return {"steps": [self.offer()] if params["kind"] == "clean" else []}

    def do_run(self, id, params):
        self.param(params, "interface", str)
        self.find(self.param(params, "step", str))
        args = params.get("args", {})
        self.check(args)
        return {"result": self.count(id, args.get("times", 10), params.get("checkpoint") or 0)}

    def find(self, step):
        if step != "count":
            raise Error(-32005, "no step " + step)

    def check(self, args):
        for name in args:
            if name != "times":
                raise Error(-32001, "unknown", {"name": name, "problem": "unknown"})
        times = args.get("times", 10)
        if isinstance(times, bool) or not isinstance(times, int) or times < 1:
            raise Error(-32001, "times", {"name": "times", "problem": "must be a whole number"})

    def count(self, id, times, begin):
        for n in range(begin, times):
            if self.is_cancelled(id):
                raise Error(-32002, "cancelled", {"report": n})
            time.sleep(0.01)
            self.notify("progress", id=id, percent=100 * (n + 1) // times, disks=[])
            self.notify("checkpoint", id=id, data=n + 1)
        return {"counted": times}

    def is_cancelled(self, id):
        return id in self.cancelled

    def do_erase_capabilities(self, id, params):
        disk = self.param(params, "disk", dict)
        if not (disk.get("model") or "").startswith("ACME "):
            return {"methods": None}
        return {"methods": [{"method": "acme-purge", "level": "purge", "expected": "zeroes"}]}

    def do_erase(self, id, params):
        disk = self.param(params, "disk", dict)
        if not (disk.get("model") or "").startswith("ACME "):
            raise Error(-32004, "not ours")
        self.ask("read_device", claim={"kind": "block", "id": disk["name"]}, offset=0, length=512)
        return {"record": {"method": params["method"], "bytes_erased": disk["size"]}}

    def do_shutdown(self, id, params):
        return {}


if __name__ == "__main__":
    Good().serve()
