# A hardware manager of a vendor, in a shell of busybox (hwm-sdk/PROTOCOL.md): one step of every kind that a conductor
# treats differently.
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1" >&3; }
step() {
    printf '{"interface":"deploy","step":"%s","priority":%s,"reboot_requested":%s,"abortable":%s,"idempotent":true,"destructive":"none"}' "$@"
}
run() {
    case $1 in
    greet | restart) ;;
    linger | finish) busybox sleep 2 ;;
    esac
    answer '{"result":{"did":"'"$1"'"}}'
}

while IFS= read -r line <&3; do
    id=${line#*\"id\":}; id=${id%%[!0-9]*}
    method=${line#*\"method\":\"}; method=${method%%\"*}
    case $method in
    hello) answer '{"protocol_version":1,"name":"contract_vendor","version":"1.0","vendor":"ACME"}' ;;
    detect) answer '{"support":"service_provider"}' ;;
    init) answer '{}' ;;
    inventory) answer '{"patch":{}}' ;;
    steps)
        # Only greet runs by itself. The agent does not wait for the end of linger, but for the end of finish.
        answer '{"steps":['"$(step greet 5 false true),$(step restart 0 true false),$(step linger 0 false true),$(step finish 0 false false)"']}' ;;
    run) named=${line#*\"step\":\"}; run "${named%%\"*}" ;;
    shutdown) answer '{}'; exit 0 ;;
    esac
done
