# shellcheck shell=bash
# A letter, a file of jobs, and the schedule of another system.
stage() {
    echo '{"to":"a@b.c"}' > letter.json
    echo '{"payload":"x"}' > jobs
    keep FILE "$WORLD/jobs"
    redis-cli ZADD schedule 4102444800 '{"class":"Mail"}' > /dev/null
}
