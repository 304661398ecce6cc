"""Runs OpenStack's command line client again and again without importing it each time, which takes most of a second.

Reads a JSON list of words a line, answers a JSON object a line: how the command ended and what it said. What runs is
the console script `openstack`, entered where its own wrapper enters it, each time in a process of its own, forked from
this one.
"""
import contextlib
import io
import json
import os
import sys
import tempfile
import time
import types

from ironicclient.common import http
from openstackclient import shell

# The client tries what is refused with 409 six times. It still does, with two seconds less in between.
http.time = types.SimpleNamespace(sleep=lambda seconds: time.sleep(0.02))


def command(words, out, err):
    """The console script in this process."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.exit(shell.main(words))


# Imports what commands need, and makes no connection yet.
with contextlib.redirect_stdout(io.StringIO()):
    shell.main(['help', 'baremetal', 'node', 'list'])
for line in sys.stdin:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            command(json.loads(line), out, err)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    print(json.dumps({'code': code, 'out': texts[0], 'err': texts[1]}), flush=True)
