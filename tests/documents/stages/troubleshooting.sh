# shellcheck shell=bash
. "$STAGES/held.sh"

stage() {
    held
    redis-cli ZADD schedule 4102444800 '{"class":"Mail"}' > /dev/null
    redis-cli ZADD delayed 4102444800000 one > /dev/null
    redis-cli HSET bodies one '{"to":"a@b.c"}' > /dev/null
}
