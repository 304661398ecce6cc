#!/usr/bin/env python3
"""Makes the conversations next to it from transcripts of the real Ironic 39: what is compared, and nothing else.

usage: make.py TRANSCRIPTS_DIR
"""
import json
import os
import sys

NAMES = ["cli_walk", "ipa_autoclean_plain", "ipa_conductor_restart", "ipa_deploy_service_plain", "ipa_inspect_plain",
         "ipa_manual_clean", "ipa_stale_step", "ipa_tls_clean"]
HEADERS = ["content-type", "location", "openstack-request-id", "x-openstack-ironic-api-maximum-version",
           "x-openstack-ironic-api-minimum-version", "x-openstack-ironic-api-version", "x-openstack-request-id"]


def kept(exchange):
    sent = {name.lower(): value for name, value in exchange["req_headers"]}
    got = {name.lower(): value for name, value in exchange.get("resp_headers") or []}
    return {
        "from": exchange["direction"].split("->")[0],
        "method": exchange["method"],
        "path": exchange["path"],
        "version": sent.get("x-openstack-ironic-api-version"),
        "sent": exchange["req_body"],
        "status": exchange["status"],
        "headers": {name: got[name] for name in HEADERS if name in got},
        "answer": exchange.get("resp_body"),
    }


for name in NAMES:
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, name + ".jsonl"), "w") as out:
        for line in open(os.path.join(sys.argv[1], name + ".jsonl")):
            json.dump(kept(json.loads(line)), out)
            out.write("\n")
