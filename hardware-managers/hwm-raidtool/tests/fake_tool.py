#!/usr/bin/env python3
"""A RAID command-line tool that is none: one that behaves like storcli, over a file instead of a controller.

    fake_tool.py /call show all J                          controllers, drives, volumes, settings
    fake_tool.py /cN add vd type=raid1 size=all|10GB names=NAME drives=E:S,E:S J
    fake_tool.py /cN/vM del force J
    fake_tool.py /cN/vM start|show|stop init [full] J      each `show` is a quarter of the way
    fake_tool.py /cN set PROPERTY=VALUE J

The state is STATE.json next to this file's copy. Its member "faults" makes it misbehave: by the words of a command, either
a text that the controller says, or {"print": TEXT}, {"hang": true}, {"forget": true}. Every command is written to the log
next to the state.
"""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STATE = os.path.join(HERE, "STATE.json")
DATA_DRIVES = {"raid0": lambda n: n, "raid1": lambda n: 1, "raid5": lambda n: n - 1, "raid6": lambda n: n - 2,
               "raid10": lambda n: n // 2}


class Refused(Exception):
    pass


def show_all(controller):
    drives = []
    for drive in controller["drives"]:
        volume = next((v for v in controller["volumes"] if drive["id"] in v["drives"]), None)
        drives.append({"EID:Slt": drive["id"], "DID": 7, "State": drive.get("state") or ("Onln" if volume else "UGood"),
                       "DG": volume["group"] if volume else "-", "Size": "%.3f GB" % drive["gib"], "Intf": "SAS",
                       "Med": drive["media"], "Model": drive.get("model", "PM1643  "), "SN": drive.get("serial", "-")})
    volumes = [{"DG/VD": "%d/%d" % (v["group"], v["id"]), "TYPE": v["type"].upper(), "State": v.get("state", "Optl"),
                "Size": "%.3f GB" % v["gib"], "Name": v["name"], "OS Drive Name": "/dev/sd" + chr(97 + v["id"])}
               for v in controller["volumes"]]
    return {"Basics": {"Model": controller["model"], "PCI Address": controller["pci"]},
            "Version": {"Firmware Version": controller["firmware"]}, "PD LIST": drives, "VD LIST": volumes,
            "Controller Properties": [dict({"Ctrl_Prop": name}, **value) for name, value in controller["properties"].items()]}


def add(controller, words):
    options = dict(word.split("=", 1) for word in words)
    wanted = options["drives"].split(",")
    drives = [drive for drive in controller["drives"] if drive["id"] in wanted]
    if len(drives) != len(wanted):
        raise Refused("drive not found")
    taken = [drive for volume in controller["volumes"] for drive in volume["drives"]]
    if any(drive["id"] in taken or drive.get("state") for drive in drives):
        raise Refused("physical disk is not in UGood state")
    room = DATA_DRIVES[options["type"]](len(drives)) * min(drive["gib"] for drive in drives)
    gib = room if options["size"] == "all" else int(options["size"].removesuffix("GB"))
    if gib > room:
        raise Refused("requested size is not available")
    number = max([volume["id"] for volume in controller["volumes"]], default=-1) + 1
    controller["volumes"].append({"id": number, "group": number, "type": options["type"], "gib": gib,
                                  "name": options["names"], "drives": [drive["id"] for drive in drives]})
    return {}


def volume_command(controller, volume, words):
    if words[0] == "del":
        controller["volumes"].remove(volume)
    elif words == ["start", "init", "full"]:
        volume["init"] = 0
    elif words == ["stop", "init"]:
        if "init" not in volume:
            raise Refused("no initialization is running")
        del volume["init"]
    elif words == ["show", "init"]:
        row = {"VD": volume["id"], "Progress%": volume.get("init", "-"), "Status": "Not in progress"}
        if "init" in volume:
            row["Status"] = "In progress"
            volume["init"] += 25
            if volume["init"] > 100:
                del volume["init"]
        return [row]
    else:
        raise Refused("syntax error, unexpected " + words[0])
    return {}


def run(state, words):
    path, words = words[0], words[1:]
    if path == "/call" and words == ["show", "all"]:
        return [(controller["id"], show_all(controller)) for controller in state["controllers"]]
    parts = path.strip("/").split("/")
    controller = next((c for c in state["controllers"] if "c%d" % c["id"] == parts[0]), None)
    if controller is None:
        raise Refused("Controller %s not found" % parts[0][1:])
    if len(parts) == 2:
        volume = next((v for v in controller["volumes"] if "v%d" % v["id"] == parts[1]), None)
        if volume is None:
            raise Refused("VD %s doesn't exist" % parts[1][1:])
        answer = volume_command(controller, volume, words)
    elif words[:2] == ["add", "vd"]:
        answer = add(controller, words[2:])
    elif words[0] == "set":
        name, value = words[1].split("=", 1)
        controller["properties"][name]["Value"] = value
        answer = {}
    else:
        raise Refused("syntax error, unexpected " + words[0])
    return [(controller["id"], answer)]


def main():
    words = sys.argv[1:]
    assert words.pop() == "J", "only JSON is modelled"
    with open(os.path.join(HERE, "log"), "a") as log:
        log.write(" ".join(words) + "\n")
    with open(STATE) as file:
        state = json.load(file)
    kept = json.dumps(state)
    fault = next((fault for begin, fault in state.get("faults", {}).items() if " ".join(words).startswith(begin)), None)
    status = {"CLI Version": "007.fake", "Status": "Success", "Description": "None"}
    try:
        if isinstance(fault, str):
            raise Refused(fault)
        if fault and "print" in fault:
            print(fault["print"])
            return
        if fault and "hang" in fault:
            time.sleep(3600)
        answers = run(state, words)
        controllers = [{"Command Status": dict(status, Controller=number), "Response Data": data} for number, data in answers]
    except Refused as refused:
        status.update({"Status": "Failure", "Description": "Operation failed", "Controller": 0,
                       "Detailed Status": [{"Ctrl": 0, "Status": "Failed", "ErrCd": 255, "ErrMsg": str(refused)}]})
        controllers = [{"Command Status": status}]
    with open(STATE + ".new", "w") as file:
        file.write(kept if fault and "forget" in fault else json.dumps(state))
    os.replace(STATE + ".new", STATE)
    print(json.dumps({"Controllers": controllers}, indent=1))
    sys.exit(0 if controllers[0]["Command Status"]["Status"] == "Success" else 1)


main()
