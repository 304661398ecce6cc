#!/bin/sh
# A hardware manager in shell, with jq and nothing else: see hwm-sdk/PROTOCOL.md. It blinks the locator LED of ACME's machines.
# Try it: hwm-conformance hwm-example-external/shell/acme.sh

# One JSON value a line, out on file descriptor 3. What programs print goes to the log: they get no file descriptor 3 (3>&-).
say() { printf '%s\n' "$1" >&3; }
answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
refuse() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":$1,\"message\":\"$2\"${3:+,\"data\":$3}}}"; }
# A value of the message, or nothing.
get() { printf '%s' "$line" | jq -c "$1 // empty" 3>&-; }
# Whether something holds for the message.
is() { printf '%s' "$line" | jq -e "$1" >/dev/null 2>&1 3>&-; }

STEP='{"interface":"management","step":"blink","priority":0,"destructive":"none","idempotent":true,"estimated_duration_s":1,
 "argsinfo":{"times":{"description":"How often","schema":{"type":"integer","minimum":1}}},"result_schema":{"type":"object","required":["blinked"]}}'
STEP=$(printf '%s' "$STEP" | tr -d '\n')

run() {
    if ! is '.params.step == "blink" and .params.interface == "management"'; then
        refuse -32005 "acme_shell has no such step"
    elif ! is '.params.args // {} | keys - ["times"] == []'; then
        refuse -32001 "this step takes times alone" '{"name":"args","problem":"only times is taken"}'
    elif ! is '.params.args // {} | if has("times") then (.times | type == "number" and . >= 1 and . == floor) else true end'; then
        refuse -32001 "times must be a whole number" '{"name":"times","problem":"must be a whole number, at least 1"}'
    else
        times=$(get '.params.args.times'); times=${times:-3}; n=0
        while [ "$n" -lt "$times" ]; do
            n=$((n + 1))
            echo "blink $n"
            say "{\"jsonrpc\":\"2.0\",\"method\":\"progress\",\"params\":{\"id\":$id,\"percent\":$((100 * n / times)),\"disks\":[]}}"
        done
        answer "{\"result\":{\"blinked\":$times}}"
    fi
}

while IFS= read -r line <&3; do
    if ! printf '%s' "$line" | jq empty 2>/dev/null 3>&-; then
        id=null refuse -32700 "not JSON"
        continue
    elif ! is 'type == "object" and (has("method") or has("result") or has("error"))'; then
        id=null refuse -32600 "no message"
        continue
    fi
    method=$(get .method | tr -d '"')
    id=$(get .id)
    # A notification (cancel: no step of ours is abortable), or an answer (nothing is asked).
    [ -n "$id" ] && [ -n "$method" ] || continue
    case $method in
    hello)
        if is '.params.protocol_versions | index(1)'; then
            answer '{"protocol_version":1,"name":"acme_shell","version":"1.0","vendor":"ACME Inc."}'
        else
            refuse -32000 "only version 1 is spoken here" '{"supported":[1]}'
        fi ;;
    detect)
        if ! is '.params.inventory | type == "object"'; then
            refuse -32602 "no inventory"
        elif is '.params.inventory.system_vendor.manufacturer == "ACME"'; then
            answer '{"support":"service_provider"}'
        else
            answer '{"support":"none"}'
        fi ;;
    init) answer '{}' ;;
    inventory) answer '{"patch":{}}' ;;
    steps)
        case $(get .params.kind) in
        '"clean"' | '"service"') answer "{\"steps\":[$STEP]}" ;;
        '"deploy"' | '"inspect"') answer '{"steps":[]}' ;;
        *) refuse -32602 "no such kind" ;;
        esac ;;
    run) if is '.params | has("step") and has("interface")'; then run; else refuse -32602 "no step"; fi ;;
    erase_capabilities) if is '.params.disk | type == "object"'; then answer '{"methods":null}'; else refuse -32602 "no disk"; fi ;;
    erase) refuse -32004 "acme_shell erases nothing" ;;
    shutdown) answer '{}'; exit 0 ;;
    *) refuse -32601 "no such method" ;;
    esac
done
