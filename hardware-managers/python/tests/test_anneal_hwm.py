"""Tests of the module. `python3 -m unittest discover tests`; cargo test -p hwm-conformance runs them too."""

import json
import os
import re
import socket
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import anneal_hwm as hwm  # noqa: E402

PROTOCOL = os.path.join(HERE, "..", "..", "hwm-sdk", "PROTOCOL.md")


class Schemas(unittest.TestCase):
    def test_every_keyword_accepts_and_refuses(self):
        for schema, good, bad in [
            ({"type": "string"}, "x", 1),
            ({"type": ["null", "integer"]}, 2.0, 2.5),
            ({"type": "integer"}, 1, True),
            ({"type": "number"}, 2.5, "2"),
            ({"type": "boolean"}, False, 0),
            ({"type": "array"}, [], {}),
            ({"type": "object"}, {}, None),
            ({"enum": ["0", 1]}, 1, True),
            ({"minimum": 0}, 0, -0.5),
            ({"maximum": 9}, "no number", 9.5),
            ({"minLength": 1}, "x", ""),
            ({"maxItems": 1}, [0], [0, 0]),
            ({"required": ["a"]}, {"a": 0}, {"b": 0}),
            ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 0}, {"b": 0}),
            ({"additionalProperties": {"type": "string"}}, {"a": ""}, {"a": 0}),
            ({"items": {"properties": {"a": {"type": "string"}}}}, [{"a": ""}], [{}, {"a": 5}]),
        ]:
            self.assertIsNone(hwm.check(schema, good), (schema, good))
            self.assertIsNotNone(hwm.check(schema, bad), (schema, bad))
        self.assertIn("pattern", hwm.check({"pattern": "^a$"}, "a"))

    def test_a_problem_never_contains_the_value(self):
        with self.assertRaises(hwm.Argument) as caught:
            hwm._check_args({"size": "secret"}, {"size": hwm.arg("GiB", {"type": "integer"})})
        self.assertNotIn("secret", json.dumps(caught.exception.wire()))


class Document(unittest.TestCase):
    """The messages that the module makes are those of PROTOCOL.md."""

    def test_errors_have_the_codes_of_the_document(self):
        with open(PROTOCOL, encoding="utf-8") as document:
            text = document.read()
        documented = {int(code) for code in re.findall(r'"code":(-\d+)', text)}
        for error in (hwm.Failed("x"), hwm.Argument("a", "b"), hwm.Cancelled(), hwm.Declined("x")):
            self.assertIn(error.code, documented)

    def test_a_manager_answers_the_agent_of_the_document(self):
        class Quiet(hwm.HardwareManager):
            name, version, vendor = "quiet", "1", "x"

            def detect(self, inventory):
                return hwm.NONE

        with open(PROTOCOL, encoding="utf-8") as document:
            text = document.read()
        blocks = re.findall(r"```transcript\n(.*?)```", text, re.S)
        requests = [json.loads(line[3:]) for block in blocks for line in block.splitlines()
                    if line.startswith("A: ") and '"method"' in line and '"id"' in line.split('"params"')[0]]
        self.assertGreater(len(requests), 15)
        ours, theirs = socket.socketpair()
        server = hwm._Server(Quiet(), theirs)
        lines = ours.makefile("r", encoding="utf-8")
        for request in requests:
            server.line(json.dumps(request).encode())
            answer = json.loads(lines.readline())
            self.assertEqual(answer["id"], request["id"])
            self.assertTrue(("result" in answer) != ("error" in answer))
            if request["method"] == "dance":
                self.assertEqual(answer["error"]["code"], -32601)
            elif request["method"] == "detect":
                self.assertEqual(answer["result"], {"support": "none"})
        ours.close()
        theirs.close()
        lines.close()


if __name__ == "__main__":
    unittest.main()
