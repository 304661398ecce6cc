# A hardware manager in shell, good as it stands; a test puts other functions behind it.
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1" >&3; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s","data":{"report":"kept"}}}\n' "$id" "$1" "$2" >&3; }
notify() { printf '{"jsonrpc":"2.0","method":"%s","params":%s}\n' "$1" "$2" >&3; }
ask() { printf '{"jsonrpc":"2.0","id":7,"method":"%s","params":%s}\n' "$1" "$2" >&3; IFS= read -r heard <&3; }

on_hello() { answer '{"protocol_version":1,"name":"'$NAME'","version":"1.0","vendor":"ACME"}'; }
on_detect() { answer '{"support":"service_provider"}'; }
on_init() { answer '{}'; }
on_inventory() { answer '{"patch":{"extra":{"enclosure":7}}}'; }
on_steps() { answer '{"steps":[{"interface":"vendor","step":"'$NAME'_step","priority":7,"abortable":true,"idempotent":true,"argsinfo":{"seconds":{"description":"any"}}}]}'; }
on_run() { echo working >&2; answer '{"result":{"by":"'$NAME'"}}'; }
on_cancel() { :; }
on_shutdown() { answer '{}'; exit 0; }

serve() {
    while IFS= read -r line <&3; do
        # Of a cancel the id is in its params.
        number=${line#*\"id\":}; number=${number%%[!0-9]*}
        method=${line#*\"method\":\"}; method=${method%%\"*}
        [ "$method" = cancel ] || id=$number
        on_$method
    done
}
