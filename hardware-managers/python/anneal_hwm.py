"""Hardware managers for Anneal, in one module without dependencies (Python 3.8 or newer).

    import anneal_hwm as hwm

    class Acme(hwm.HardwareManager):
        name, version, vendor = "acme", "1.0", "ACME Inc."

        def detect(self, inventory):
            made_by = inventory["system_vendor"]["manufacturer"]
            return hwm.SERVICE_PROVIDER if made_by == "ACME" else hwm.NONE

        @hwm.step("management", clean=0, destructive="none", idempotent=True)
        def blink(self, call):
            "Blinks the locator LED."
            call.progress(percent=50)
            return {"blinked": True}

    if __name__ == "__main__":
        hwm.serve(Acme())

The protocol that this speaks is in PROTOCOL.md of hwm-sdk. Print as you like: standard output is the log.
"""

import base64
import inspect
import json
import os
import socket
import sys
import threading
import time
import traceback

__version__ = "1.0.0"
__all__ = [
    "GENERIC", "MAINLINE", "NONE", "SERVICE_PROVIDER", "Argument", "Call", "Cancelled", "Claimed", "Declined",
    "Failed", "HardwareManager", "HwmError", "RefusedByAgent", "arg", "block", "dmi", "pci", "quirk",
    "reboot", "serve", "step",
]

PROTOCOL_VERSION = 1
LINE_MAX = 1 << 20
PROGRESS_INTERVAL = 0.1

NONE = "none"
GENERIC = "generic"
MAINLINE = "mainline"
SERVICE_PROVIDER = "service_provider"

KINDS = ("clean", "deploy", "service", "inspect")


# ---------------------------------------------------------------------------------------------- errors

class HwmError(Exception):
    """An error with its code on the wire."""

    code = -32603

    def __init__(self, message, data=None):
        super().__init__(message)
        self.message = str(message)
        self.data = data

    def wire(self):
        error = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


class Failed(HwmError):
    """The work failed. `report` keeps what is known, for the operator."""

    code = -32003

    def __init__(self, message, report=None):
        super().__init__(message, {"report": report})


class Argument(HwmError):
    """An argument is missing, unknown or wrong. Never put its value into `problem`: it may be a secret."""

    code = -32001

    def __init__(self, name, problem):
        super().__init__('argument "%s": %s' % (name, problem), {"name": name, "problem": problem})


class Cancelled(HwmError):
    """The step stopped because it was cancelled. `report` says what was done until then."""

    code = -32002

    def __init__(self, report=None):
        super().__init__("cancelled", {"report": report})


class Declined(HwmError):
    """Nothing was touched: another manager shall do it."""

    code = -32004


class RefusedByAgent(HwmError):
    """The agent did not give what it was asked for."""


class _Coded(HwmError):
    def __init__(self, code, message, data=None):
        super().__init__(message, data)
        self.code = code


# ---------------------------------------------------------------------------------------------- declarations

def step(interface, *, clean=None, deploy=None, service=None, inspect=None, args=None, result=None,
         abortable=False, idempotent=False, destructive="data", estimated_duration_s=None,
         reboot_requested=False):
    """Makes a method a step. `clean=10`: it is a clean step with priority 10 (0: only when it is asked for).

    `args` are its arguments by name, see `arg`; `result` is the JSON Schema of what it returns.
    """
    priorities = {"clean": clean, "deploy": deploy, "service": service, "inspect": inspect}

    def declare(method):
        offer = {
            "interface": interface,
            "step": method.__name__,
            "argsinfo": dict(args or {}),
            "reboot_requested": reboot_requested,
            "abortable": abortable,
            "idempotent": idempotent,
            "destructive": destructive,
        }
        if result is not None:
            offer["result_schema"] = result
        if estimated_duration_s is not None:
            offer["estimated_duration_s"] = estimated_duration_s
        method._hwm_step = (offer, priorities)
        return method

    return declare


def arg(description, schema=None, *, required=False):
    """An argument of a step."""
    info = {"description": description, "required": required}
    if schema is not None:
        info["schema"] = schema
    return info


def block(id=None, **match):
    """A claim on disks: by name of the inventory, or by model, serial, vendor, wwn, tran (`*`: any characters)."""
    return _claim("block", id, match)


def pci(id=None, **match):
    """A claim on PCI functions: by address, or by vendor, device, class (`0x1000`)."""
    return _claim("pci", id, match)


def dmi(**match):
    """A claim on the machine: by manufacturer, product_name, serial_number."""
    return _claim("dmi", None, match)


def quirk(suppress, reason, **match):
    """What the agent must leave out (`bmc`, `lldp`) on machines with this manufacturer, product_name …"""
    return {"suppress": suppress, "match": match, "reason": reason}


def _claim(kind, id, match):
    claim = {"kind": kind}
    if id is not None:
        claim["id"] = id
    if match:
        claim["match"] = match
    return claim


class reboot:
    """Return this from a step when the node must be rebooted before the next."""

    def __init__(self, result=None):
        self.result = result


class Claimed:
    """Return this from `detect` when there are claims or quirks to report."""

    def __init__(self, support, claims=(), quirks=()):
        self.support = support
        self.claims = list(claims)
        self.quirks = list(quirks)


class HardwareManager:
    """What a manager is. Give it a name and a version, say which machines are its own, and add steps."""

    name = None
    version = None
    vendor = ""

    def detect(self, inventory):
        """How well is this machine supported? One of NONE, GENERIC, MAINLINE, SERVICE_PROVIDER, or a `Claimed`.

        Quick, and from the inventory alone.
        """
        raise NotImplementedError

    def init(self, call):
        """Get ready; up to a minute."""

    def inventory(self, call):
        """What the agent cannot see: a dict with any of bios_settings, firmware, raid, extra."""
        return {}

    def priorities(self, kind):
        """Other priorities for steps of other managers: a list of (interface, step, priority)."""
        return []

    def erase_capabilities(self, disk):
        """How can this disk be erased? A list of methods, or None to decline. Decline what you do not know."""
        return None

    def erase(self, call):
        """Erase `call.disk` with `call.method`; return the number of bytes, or (bytes, detail)."""
        raise Declined("%s does not erase %s" % (self.name, call.disk.get("name")))


# ---------------------------------------------------------------------------------------------- calls

class Call:
    """A call that is under way: its parameters, and the connection to the agent."""

    def __init__(self, peer, id, params):
        self._peer = peer
        self._id = id
        self._cancelled = threading.Event()
        self._reported_at = 0.0
        self._waiting = None
        self.kind = params.get("kind")
        #: Arguments of the step, checked against their schemas.
        self.args = params.get("args", {})
        #: The node as the controller sent it.
        self.node = params.get("node", {})
        #: What the step saved last before it was interrupted, or None.
        self.resumed = params.get("checkpoint")
        #: Disk and method of an erase.
        self.disk = params.get("disk")
        self.method = params.get("method")

    @property
    def cancelled(self):
        """Whether the agent wants the work to stop."""
        return self._cancelled.is_set()

    def check_cancelled(self, report=None):
        """Ends the step here, as cancelled, if the agent wants that. Call it once a second in an abortable step."""
        if self.cancelled:
            raise Cancelled(report)

    def sleep(self, seconds):
        """Sleeps, and wakes up at once when cancelled."""
        self._cancelled.wait(seconds)

    def progress(self, percent=None, text=None, disks=()):
        """How far it is. Nothing may go back."""
        report = {"id": self._id}
        if percent is not None:
            report["percent"] = int(percent)
        if text is not None:
            report["text"] = text
        report["disks"] = list(disks)
        if time.monotonic() - self._reported_at < PROGRESS_INTERVAL:
            self._waiting = report
            return
        self._reported_at = time.monotonic()
        self._waiting = None
        self._peer.notify("progress", report)

    def checkpoint(self, data):
        """Keep this (64 KiB of JSON) for the case that the step is interrupted and started again."""
        self._peer.notify("checkpoint", {"id": self._id, "data": data})

    def log(self, text, level="info"):
        """A line for the log: level debug, info, warning or error."""
        self._peer.notify("log", {"level": level, "text": str(text)})

    def read_device(self, claim, offset, length):
        """Bytes of a disk that was claimed."""
        answer = self._peer.ask("read_device", {"claim": claim, "offset": offset, "length": length})
        return base64.b64decode(answer["data"])

    def fetch(self, digest):
        """The path of a file that the controller has, by `sha256:` and its digest."""
        return self._peer.ask("fetch", {"digest": digest})["path"]

    def _flush(self):
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._peer.notify("progress", waiting)


class _Peer:
    """The agent: messages to it, and questions it answers."""

    def __init__(self, connection):
        self._connection = connection
        self._writing = threading.Lock()
        self._asking = threading.Lock()
        self._asked = {}
        self._last = 0

    def send(self, message):
        line = json.dumps(dict(jsonrpc="2.0", **message), separators=(",", ":")).encode() + b"\n"
        if len(line) > LINE_MAX:
            if "result" not in message:
                return
            error = {"code": -32603, "message": "the answer has more than %d bytes" % LINE_MAX}
            self.send({"id": message["id"], "error": error})
            return
        try:
            with self._writing:
                self._connection.sendall(line)
        except OSError:
            pass  # The reader sees the end.

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        answered, box = threading.Event(), {}
        with self._asking:
            self._last += 1
            id = self._last
            self._asked[id] = (answered, box)
        self.send({"id": id, "method": method, "params": params})
        answered.wait()
        if "error" in box:
            error = box["error"]
            raise RefusedByAgent(error.get("message", "refused"), error.get("data"))
        return box["result"]

    def answered(self, message):
        with self._asking:
            waiting = self._asked.pop(message.get("id"), None)
        if waiting:
            waiting[1].update(message)
            waiting[0].set()


# ---------------------------------------------------------------------------------------------- serving

class _Server:
    def __init__(self, manager, connection):
        self.manager = manager
        self.peer = _Peer(connection)
        self.running = {}
        self.steps = [method._hwm_step + (method,) for _, method in
                      inspect.getmembers(manager, callable) if hasattr(method, "_hwm_step")]

    def line(self, line):
        """Takes a line; false when it was the last."""
        try:
            message = json.loads(line.decode("utf-8"))
        except ValueError as error:
            self.peer.send({"id": None, "error": {"code": -32700, "message": "not JSON: %s" % error}})
            return True
        if not _is_message(message):
            self.peer.send({"id": None, "error": {"code": -32600, "message": "no JSON-RPC 2.0 message"}})
            return True
        method = message.get("method")
        if method is None:
            self.peer.answered(message)
        elif "id" not in message:
            call = self.running.get(message.get("params", {}).get("id")) if method == "cancel" else None
            if call:
                call._cancelled.set()
        elif method == "shutdown":
            self.peer.send({"id": message["id"], "result": {}})
            return False
        else:
            params = message.get("params", {})
            call = Call(self.peer, message["id"], params)
            self.running[message["id"]] = call
            threading.Thread(target=self.work, args=(message["id"], method, params, call), daemon=True).start()
        return True

    def work(self, id, method, params, call):
        try:
            handler = getattr(self, "do_" + method, None)
            if handler is None:
                raise _Coded(-32601, "no such method: %s" % method)
            answer = {"id": id, "result": handler(params, call)}
        except HwmError as error:
            answer = {"id": id, "error": error.wire()}
        except Exception as error:  # The manager broke: that is the answer, and it goes on.
            traceback.print_exc()
            text = "hardware manager %s broke in %s: %s: %s" % (
                self.manager.name, method, type(error).__name__, error)
            answer = {"id": id, "error": {"code": -32603, "message": text}}
        call._flush()
        self.running.pop(id, None)
        self.peer.send(answer)

    def do_hello(self, params, call):
        offered = _param(params, "protocol_versions", list)
        if PROTOCOL_VERSION not in offered:
            text = "protocol versions offered: %s; spoken here: 1" % ", ".join(map(str, offered))
            raise _Coded(-32000, text, {"supported": [PROTOCOL_VERSION]})
        return {"protocol_version": PROTOCOL_VERSION, "name": self.manager.name,
                "version": self.manager.version, "vendor": self.manager.vendor}

    def do_detect(self, params, call):
        found = self.manager.detect(_param(params, "inventory", dict))
        if not isinstance(found, Claimed):
            return {"support": found}
        answer = {"support": found.support}
        if found.claims:
            answer["claims"] = found.claims
        if found.quirks:
            answer["quirks"] = found.quirks
        return answer

    def do_init(self, params, call):
        self.manager.init(call)
        return {}

    def do_inventory(self, params, call):
        return {"patch": self.manager.inventory(call)}

    def do_steps(self, params, call):
        kind = _kind(params)
        steps = [dict(offer, priority=priorities[kind])
                 for offer, priorities, _ in self.steps if priorities[kind] is not None]
        answer = {"steps": steps}
        others = [{"interface": interface, "step": step, "priority": priority}
                  for interface, step, priority in self.manager.priorities(kind)]
        if others:
            answer["priorities"] = others
        return answer

    def do_run(self, params, call):
        kind = _kind(params)
        wanted = (_param(params, "interface", str), _param(params, "step", str))
        for offer, priorities, method in self.steps:
            if priorities[kind] is not None and (offer["interface"], offer["step"]) == wanted:
                break
        else:
            raise _Coded(-32005, 'hardware manager %s has no step "%s"' % (self.manager.name, wanted[1]))
        _check_args(call.args, offer["argsinfo"])
        result = method(call)
        rebooting = isinstance(result, reboot)
        return {"result": result.result if rebooting else result, "reboot_requested": rebooting}

    def do_erase_capabilities(self, params, call):
        methods = self.manager.erase_capabilities(_param(params, "disk", dict))
        return {"methods": methods, "parallel": False}

    def do_erase(self, params, call):
        _param(params, "disk", dict)
        done = self.manager.erase(call)
        erased, detail = done if isinstance(done, tuple) else (done, {})
        return {"record": {"method": _param(params, "method", str), "bytes_erased": erased, "detail": detail}}


def serve(manager, connection=None):
    """Serves until the agent is done, and ends the program."""
    if connection is None:
        try:
            connection = socket.socket(fileno=int(os.environ.get("ANNEAL_HWM_FD", "3")))
            connection.set_inheritable(False)
        except OSError as error:
            sys.exit("this is a hardware manager: an agent starts it, with a socket on file descriptor 3 (%s); "
                     "try it with hwm-conformance" % error)
    server = _Server(manager, connection)
    rest = b""
    while True:
        try:
            received = connection.recv(65536)
        except ConnectionError:
            received = b""
        if not received:
            break
        lines = (rest + received).split(b"\n")
        rest = lines.pop()
        if len(rest) >= LINE_MAX or not all(map(server.line, lines)):
            break
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: work that is still going on in a thread is given up.
    os._exit(0)


def _is_message(message):
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    if not isinstance(message.get("params", {}), dict):
        return False
    number = isinstance(message.get("id"), int) and not isinstance(message["id"], bool)
    if "method" in message:
        return isinstance(message["method"], str) and (number or "id" not in message)
    return "id" in message and ("result" in message) != ("error" in message)


def _param(params, name, kind):
    if not isinstance(params.get(name), kind):
        raise _Coded(-32602, "%s must be given, as %s" % (name, kind.__name__))
    return params[name]


def _kind(params):
    kind = _param(params, "kind", str)
    if kind not in KINDS:
        raise _Coded(-32602, "kind must be one of %s" % ", ".join(KINDS))
    return kind


# ---------------------------------------------------------------------------------------------- schemas

def _check_args(args, argsinfo):
    for name, info in argsinfo.items():
        if name not in args:
            if info.get("required"):
                raise Argument(name, "required, not given")
        elif "schema" in info:
            problem = check(info["schema"], args[name])
            if problem:
                raise Argument(name, problem)
    for name in args:
        if name not in argsinfo:
            raise Argument(name, "this step has no such argument")


_TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _number(value) and float(value).is_integer(),
    "number": lambda value: _number(value),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(left, right):
    return type(left) is type(right) and left == right or (_number(left) and _number(right) and left == right)


def check(schema, value):
    """What is not as the schema says, or None. The keywords are those of PROTOCOL.md."""
    if not isinstance(schema, dict):
        return "has a schema that is no object"
    for keyword, rule in schema.items():
        problem = _check_keyword(keyword, rule, schema, value)
        if problem:
            return problem
    return None


def _check_keyword(keyword, rule, schema, value):
    if keyword in ("title", "description", "default"):
        return None
    if keyword == "type":
        names = [rule] if isinstance(rule, str) else rule
        return None if any(_TYPES[name](value) for name in names) else "must be %s" % " or ".join(names)
    if keyword == "enum":
        return None if any(_same(one, value) for one in rule) else "must be one of %s" % json.dumps(rule)
    if keyword == "minimum":
        return "must be at least %s" % rule if _number(value) and value < rule else None
    if keyword == "maximum":
        return "must be at most %s" % rule if _number(value) and value > rule else None
    if keyword in ("minLength", "maxLength", "minItems", "maxItems"):
        if not isinstance(value, str if keyword.endswith("Length") else list):
            return None
        if keyword.startswith("min"):
            return "must have at least %s entries" % rule if len(value) < rule else None
        return "must have at most %s entries" % rule if len(value) > rule else None
    if keyword == "items":
        found = (check(rule, one) for one in value) if isinstance(value, list) else ()
        return next((problem for problem in found if problem), None)
    if keyword == "required":
        missing = [name for name in rule if name not in value] if isinstance(value, dict) else []
        return "lacks '%s'" % missing[0] if missing else None
    if keyword == "properties":
        known = [name for name in rule if name in value] if isinstance(value, dict) else []
        found = ((name, check(rule[name], value[name])) for name in known)
        return next(("'%s' %s" % pair for pair in found if pair[1]), None)
    if keyword == "additionalProperties":
        known = schema.get("properties", {})
        others = [name for name in value if name not in known] if isinstance(value, dict) else []
        if rule is True or not others:
            return None
        if rule is False:
            return "has the unknown key '%s'" % others[0]
        found = ((name, check(rule, value[name])) for name in others)
        return next(("'%s' %s" % pair for pair in found if pair[1]), None)
    return "has a schema with the unknown keyword %s" % keyword
