#!/usr/bin/env python3
"""Broken managers: each is the good one but for one thing, and breaks one rule.

    broken.py NAME      the manager NAME
    broken.py --list    names of all, each with the rule that it breaks
"""

import json
import os
import sys
import time

from good import Error, Good

BROKEN = {}


def breaks(rule):
    """The class below is a broken manager, and breaks this rule."""

    def register(broken):
        BROKEN[broken.__name__] = (rule, broken)
        return broken

    return register


def hang():
    time.sleep(3600)


# ---------------------------------------------------------------------------------- the process and its lines

@breaks("alive")
class exits_at_start(Good):
    def serve(self):
        sys.exit(3)


@breaks("alive")
class exits_in_detect(Good):
    def do_detect(self, id, params):
        os._exit(3)


@breaks("alive")
class exits_in_run(Good):
    def count(self, id, times, begin):
        os.kill(os.getpid(), 11)
        hang()


@breaks("only-messages")
class prints_to_the_socket(Good):
    def do_init(self, id, params):
        self.write(b"initialising...\n")
        return {}


@breaks("only-messages")
class empty_lines(Good):
    def send(self, message):
        super().send(message)
        self.write(b"\n")


@breaks("only-messages")
class pretty_json(Good):
    def send(self, message):
        self.write(json.dumps(dict(jsonrpc="2.0", **message), indent=2).encode() + b"\n")


@breaks("only-messages")
class answers_with_a_list(Good):
    def do_init(self, id, params):
        return []


@breaks("only-messages")
class not_json_rpc_2(Good):
    def send(self, message):
        self.write(json.dumps(dict(jsonrpc="1.0", **message)).encode() + b"\n")


@breaks("line-limit")
class floods(Good):
    def do_inventory(self, id, params):
        return {"patch": {"extra": {"dump": "x" * (2 << 20)}}}


@breaks("line-limit")
class never_ends_a_line(Good):
    def do_init(self, id, params):
        while True:
            self.write(b"x" * 65536)


@breaks("answers-once")
class answers_twice(Good):
    def answer(self, id, outcome):
        super().answer(id, outcome)
        super().answer(id, outcome)


@breaks("answers-once")
class answers_another_id(Good):
    def do_detect(self, id, params):
        self.send({"id": id + 1000, "result": {"support": "none"}})
        return super().do_detect(id, params)


@breaks("answers-once")
class complains_of_nothing(Good):
    def do_init(self, id, params):
        self.bad_line(-32700)
        return {}


@breaks("notifications")
class log_without_level(Good):
    def do_init(self, id, params):
        self.notify("log", text="hello")
        return {}


# ---------------------------------------------------------------------------------- hello and versions

@breaks("hello-deadline")
class hangs_in_hello(Good):
    def do_hello(self, id, params):
        hang()


@breaks("hello")
class newer_than_offered(Good):
    def do_hello(self, id, params):
        return dict(super().do_hello(id, params), protocol_version=2)


@breaks("hello")
class nameless(Good):
    def do_hello(self, id, params):
        answer = super().do_hello(id, params)
        del answer["name"]
        return answer


@breaks("version")
class accepts_any_version(Good):
    def do_hello(self, id, params):
        return super().do_hello(id, dict(params, protocol_versions=[1]))


@breaks("version")
class refuses_without_saying_what_it_speaks(Good):
    def do_hello(self, id, params):
        try:
            return super().do_hello(id, params)
        except Error as error:
            error.wire.pop("data", None)
            raise


@breaks("manager-name")
class takes_the_name_of_the_generic_manager(Good):
    name = "generic_hardware_manager"


@breaks("manager-name")
class version_with_spaces(Good):
    version = "1.0 (beta)"


# ---------------------------------------------------------------------------------- what it does not know

@breaks("unknown-fields")
class refuses_unknown_members(Good):
    def param(self, params, name, kind):
        if any(key.startswith("a_later") for key in params):
            raise Error(-32602, "unknown member")
        return super().param(params, name, kind)


@breaks("unknown-method")
class answers_any_method(Good):
    def work(self, message):
        if not hasattr(self, "do_" + message["method"]):
            self.answer(message["id"], {"result": {}})
        else:
            super().work(message)


@breaks("unknown-method")
class silent_to_unknown_methods(Good):
    def work(self, message):
        if hasattr(self, "do_" + message["method"]):
            super().work(message)


@breaks("unknown-notification")
class dies_of_unknown_notifications(Good):
    def notified(self, method, params):
        if method != "cancel":
            os._exit(1)
        super().notified(method, params)


@breaks("bad-line")
class dies_of_bad_lines(Good):
    def bad_line(self, code):
        os._exit(1)


@breaks("bad-line")
class same_code_for_every_bad_line(Good):
    def bad_line(self, code):
        super().bad_line(-32700)


@breaks("bad-params")
class answers_wrong_params(Good):
    def param(self, params, name, kind):
        value = params.get(name)
        return value if isinstance(value, kind) else kind()


# ---------------------------------------------------------------------------------- detect

@breaks("detect")
class enthusiastic(Good):
    def do_detect(self, id, params):
        return dict(super().do_detect(id, params), support="yes")


@breaks("detect-deadline")
class hangs_in_detect(Good):
    def do_detect(self, id, params):
        hang()


@breaks("detect-repeats")
class changes_its_mind(Good):
    asked = 0

    def do_detect(self, id, params):
        found = super().do_detect(id, params)
        self.asked += 1
        return found if self.asked == 1 else {"support": "generic"}


@breaks("detect-any-machine")
class wants_disks(Good):
    def do_detect(self, id, params):
        found = super().do_detect(id, params)
        if not params["inventory"]["disks"]:
            os._exit(1)
        return found


@breaks("claims")
class claims_everything(Good):
    def do_detect(self, id, params):
        return {"support": "service_provider", "claims": [{"kind": "block"}]}


@breaks("quirks")
class quirk_for_every_machine(Good):
    def do_detect(self, id, params):
        return {"support": "generic", "quirks": [{"suppress": "bmc", "match": {}, "reason": "I like it"}]}


# ---------------------------------------------------------------------------------- init, inventory, steps

@breaks("init")
class has_no_init(Good):
    def do_init(self, id, params):
        self.unknown_method("init")


@breaks("init-deadline")
class hangs_in_init(Good):
    def do_init(self, id, params):
        hang()


@breaks("inventory")
class settings_as_a_dict(Good):
    def do_inventory(self, id, params):
        return {"patch": {"bios_settings": {"BootMode": "Uefi"}}}


@breaks("inventory-deadline")
class hangs_in_inventory(Good):
    def do_inventory(self, id, params):
        hang()


@breaks("steps")
class priority_as_text(Good):
    def offer(self):
        return dict(super().offer(), priority="high")


@breaks("steps")
class interface_of_its_own(Good):
    def offer(self):
        return dict(super().offer(), interface="acme")


@breaks("steps-deadline")
class hangs_in_steps(Good):
    def do_steps(self, id, params):
        hang()


@breaks("steps-repeat")
class steps_come_and_go(Good):
    asked = 0

    def do_steps(self, id, params):
        self.asked += params.get("kind") == "clean"
        return super().do_steps(id, params) if self.asked <= 1 else {"steps": []}


@breaks("step-names")
class one_name_twice(Good):
    def do_steps(self, id, params):
        return {"steps": super().do_steps(id, params)["steps"] * 2}


@breaks("step-names")
class name_with_a_dot(Good):
    def offer(self):
        return dict(super().offer(), step="raid.count")


@breaks("reserved-steps")
class shadows_the_erase(Good):
    def offer(self):
        return dict(super().offer(), interface="deploy", step="erase_devices_metadata")


@breaks("reserved-steps")
class switches_power(Good):
    def offer(self):
        return dict(super().offer(), interface="power", step="cycle")


@breaks("schemas")
class schema_with_a_pattern(Good):
    def offer(self):
        offer = super().offer()
        offer["argsinfo"]["name"] = {"schema": {"type": "string", "pattern": "^a"}}
        return offer


@breaks("schemas")
class result_schema_of_an_unknown_type(Good):
    def offer(self):
        return dict(super().offer(), result_schema={"properties": {"counted": {"type": "int"}}})


# ---------------------------------------------------------------------------------- run

@breaks("unknown-step")
class runs_any_step(Good):
    def find(self, step):
        pass


@breaks("arguments")
class takes_any_argument(Good):
    def check(self, args):
        pass

    def count(self, id, times, begin):
        return super().count(id, times if isinstance(times, int) and times > 0 else 1, begin)


@breaks("arguments")
class fails_late_of_wrong_arguments(Good):
    def check(self, args):
        try:
            super().check(args)
        except Error:
            raise Error(-32003, "it did not work", {"report": None})


@breaks("run")
class fails_always(Good):
    def count(self, id, times, begin):
        raise Error(-32003, "no luck today", {"report": None})

    def offer(self):
        return dict(super().offer(), abortable=False)


@breaks("run-deadline")
class hangs_in_run(Good):
    def count(self, id, times, begin):
        while not self.is_cancelled(id):
            time.sleep(0.01)
        raise Error(-32002, "cancelled")


@breaks("result-schema")
class other_result_than_promised(Good):
    def count(self, id, times, begin):
        super().count(id, times, begin)
        return {"counted": "all"}


@breaks("progress")
class progress_goes_back(Good):
    def count(self, id, times, begin):
        self.notify("progress", id=id, percent=50, disks=[])
        self.notify("progress", id=id, percent=40, disks=[])
        return super().count(id, times, begin)


@breaks("progress")
class progress_of_a_disk_goes_back(Good):
    def count(self, id, times, begin):
        for phase, done in (("erasing", 5), ("verifying", 1), ("erasing", 6)):
            disk = {"device": "/dev/sda", "phase": phase, "bytes_done": done, "bytes_total": 9, "rate": 0}
            self.notify("progress", id=id, disks=[disk])
        return super().count(id, times, begin)


@breaks("progress")
class progress_of_nothing(Good):
    def count(self, id, times, begin):
        self.notify("progress", id=id + 1000, percent=1, disks=[])
        return super().count(id, times, begin)


@breaks("progress")
class more_than_all(Good):
    def count(self, id, times, begin):
        self.notify("progress", id=id, percent=101, disks=[])
        return super().count(id, times, begin)


@breaks("checkpoint")
class saves_too_much(Good):
    def count(self, id, times, begin):
        self.notify("checkpoint", id=id, data="x" * 70000)
        return super().count(id, times, begin)


@breaks("checkpoint")
class saves_for_another(Good):
    def count(self, id, times, begin):
        self.notify("checkpoint", id=id + 1000, data=1)
        return super().count(id, times, begin)


@breaks("resume")
class cannot_go_on(Good):
    def count(self, id, times, begin):
        if begin:
            raise Error(-32003, "there is a volume already", {"report": None})
        return super().count(id, times, begin)


@breaks("idempotent")
class only_once(Good):
    ran = False

    def count(self, id, times, begin):
        if self.ran:
            raise Error(-32003, "there is a volume already", {"report": None})
        counted = super().count(id, times, begin)
        self.ran = True
        return counted


@breaks("cancel")
class ignores_cancel(Good):
    def count(self, id, times, begin):
        self.notify("progress", id=id, percent=0, disks=[])
        time.sleep(4)
        return {"counted": times}


@breaks("cancel")
class reads_only_between_calls(Good):
    def count(self, id, times, begin):
        with self.writing:
            time.sleep(4)
        return {"counted": times}


@breaks("cancel")
class fails_when_cancelled(Good):
    def is_cancelled(self, id):
        if super().is_cancelled(id):
            raise Error(-32603, "KeyboardInterrupt")
        return False


@breaks("late-cancel")
class dies_of_late_cancels(Good):
    def notified(self, method, params):
        if method == "cancel" and params["id"] > 1000:
            os._exit(1)
        super().notified(method, params)


# ---------------------------------------------------------------------------------- erase and services

@breaks("erase-capabilities")
class no_way_to_erase(Good):
    def do_erase_capabilities(self, id, params):
        offered = super().do_erase_capabilities(id, params)
        return {"methods": []} if offered["methods"] else offered


@breaks("erase-capabilities-deadline")
class hangs_in_erase_capabilities(Good):
    def do_erase_capabilities(self, id, params):
        self.param(params, "disk", dict)
        hang()


@breaks("declines")
class erases_every_disk(Good):
    def do_erase_capabilities(self, id, params):
        self.param(params, "disk", dict)
        return super().do_erase_capabilities(id, {"disk": {"model": "ACME 1"}})


@breaks("erase-refused")
class says_that_it_erased(Good):
    def do_erase(self, id, params):
        return {"record": {"method": params["method"], "bytes_erased": params["disk"]["size"]}}


@breaks("erase")
class erases_in_another_way(Good):
    def do_erase(self, id, params):
        erased = super().do_erase(id, params)
        erased["record"]["method"] = "quick"
        return erased


@breaks("services")
class asks_before_init(Good):
    def do_detect(self, id, params):
        found = super().do_detect(id, params)
        self.ask("read_device", claim={"kind": "block", "id": "/dev/nvme0n1"}, offset=0, length=512)
        return found


@breaks("services")
class reads_what_it_did_not_claim(Good):
    def do_inventory(self, id, params):
        self.ask("read_device", claim={"kind": "block", "id": "/dev/sda"}, offset=0, length=512)
        return super().do_inventory(id, params)


@breaks("services")
class asks_for_a_shell(Good):
    def do_init(self, id, params):
        self.ask("shell", command="id")
        return {}


# ---------------------------------------------------------------------------------- the end

@breaks("shutdown")
class stays_after_shutdown(Good):
    def exit(self):
        pass


@breaks("shutdown")
class ends_with_a_failure(Good):
    def exit(self):
        os._exit(1)


@breaks("closed-socket")
class stays_when_the_agent_is_gone(Good):
    def closed(self):
        hang()


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        for name, (rule, _) in BROKEN.items():
            print(name, rule)
    else:
        BROKEN[sys.argv[1]][1]().serve()
