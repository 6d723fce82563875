# Which Redis commands each function of the library can call: reads laterd.lua, prints lines "FUNCTION COMMAND PART",
# where PART is the part of the library that calls it. A part that names another one counts as calling it: too many
# rather than too few. db('HSET', ...) and other functions of the transaction count as the commands that txn/ makes
# of them: they read what they change, and may have to undo what they wrote.
# Definitions begin in the first column: function module.x, local function x, register('later_x', and tables.
BEGIN {
    via["HGET"] = via["HEXISTS"] = "HGET"
    via["HMGET"] = "HGET HMGET"
    via["HSET"] = via["HDEL"] = via["HSETNX"] = via["HINCRBY"] = "HGET HMGET HSET HDEL"
    via["HKEYS"] = "HKEYS"
    via["HGETALL"] = "HGETALL"
    via["HLEN"] = "HLEN"
    via["ZSCORE"] = "ZSCORE"
    via["ZMSCORE"] = "ZSCORE ZMSCORE"
    via["ZADD"] = via["ZREM"] = "ZSCORE ZMSCORE ZADD ZREM"
    via["ZRANGE"] = "ZRANGE ZRANGEBYSCORE"
    via["ZRANGEBYSCORE"] = "ZRANGEBYSCORE"
    via["ZCOUNT"] = "ZCOUNT"
    via["ZCARD"] = "ZCARD"
    via["ZRANDMEMBER"] = "ZRANDMEMBER"
    via["SISMEMBER"] = "SISMEMBER"
    via["SADD"] = via["SREM"] = "SISMEMBER SADD SREM"
    via["SCARD"] = "SCARD"
    via["SRANDMEMBER"] = "SRANDMEMBER"
    via["GET"] = "GET"
    via["SET"] = via["DEL"] = "GET SET DEL PEXPIREAT"
    via["EXISTS"] = "EXISTS ZCARD HLEN SCARD GET"
    via["PEXPIREAT"] = "PEXPIREAT"
    via["PERSIST"] = "PERSIST PEXPIRETIME PEXPIREAT"
    via["TYPE"] = "TYPE"
    via["change.drop_key"] = "PEXPIRE PERSIST DEL"
    via["change.erase"] = "HLEN HDEL"
    via["txn.know_keys"] = via["txn.learn_absent"] = "EXISTS"
    via["lock_rows.lock_row"] = "HMGET"
    via["lock_rows.put_lock"] = "HMGET HSET HDEL DEL PEXPIREAT PERSIST"
    via["txn.read_fields"] = "HMGET"
    via["txn.know"] = "HLEN HGETALL HGET HMGET"
    via["txn.need_types"] = "HLEN ZCARD"
    via["txn.last_score"] = "ZRANGE"
    via["change.write_together"] = "HSET HDEL ZADD ZREM SET DEL"
    via["commit.count"] = via["commit.count_as"] = "HINCRBY SADD"
    via["commit.wake"] = via["commit.say"] = "PUBLISH"
}
/^-- ==== / { file = $3; part = file; next }
/^[ \t]*--/ || file ~ /^txn\/(txn|change|commands|commit|lock_rows)\.lua$/ { next }
/^function [a-z_]+[.(]/ { part = $2; sub(/\(.*/, "", part); parts[part] = file }
/^local function / { part = $3; sub(/\(.*/, "", part); part = file " " part; parts[part] = file }
/^local [A-Za-z_]+ = / { part = file " " $2; parts[part] = file }
/^[a-z_]+\.[A-Z_]+ = / { part = $1; parts[part] = file }
/^register\('/ { split($0, word, "'"); part = word[2]; parts[part] = file; functions[part] = 1 }
{
    rest = $0
    while (match(rest, /redis\.p?call\('[A-Z]+'/)) {
        split(substr(rest, RSTART, RLENGTH), word, "'")
        calls[part] = calls[part] " " word[2]
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = $0
    while (match(rest, /txn\.ask\([^()]*, '[a-z]+', '[A-Z]+'/)) {
        n = split(substr(rest, RSTART, RLENGTH), word, "'")
        calls[part] = calls[part] " " word[n - 1] " TYPE"
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = $0
    while (match(rest, /db\('[A-Z]+'/)) {
        split(substr(rest, RSTART, RLENGTH), word, "'")
        calls[part] = calls[part] " " via[word[2]] " TYPE"
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = $0
    while (match(rest, /[A-Za-z_]+[A-Za-z_0-9.]*/)) {
        word[1] = substr(rest, RSTART, RLENGTH)
        if (word[1] ~ /\./ && (word[1] in via))
            calls[part] = calls[part] " " via[word[1]]
        names[part] = names[part] " " word[1]
        rest = substr(rest, RSTART + RLENGTH)
    }
}
function visit(part) {
    if ((part in parts) && !(part in seen)) {
        seen[part] = 1
        todo[++left] = part
    }
}
# kinds.KINDS[kind].take(...), and the same with rates.RATES: visit all of them that have a method named in the calling
# part.
function visit_all(prefix, names_there,   part, method) {
    for (part in parts) {
        method = part
        sub(/.*\./, "", method)
        if (index(part, prefix) == 1 && (" " names_there " ") ~ ("[ .]" method " "))
            visit(part)
    }
}
function reach(name,   part, i, n, list) {
    split("", seen)
    left = 0
    visit(name)
    while (left > 0) {
        part = todo[left--]
        n = split(calls[part], list, " ")
        for (i = 1; i <= n; i++)
            print name, list[i], part
        n = split(names[part], list, " ")
        for (i = 1; i <= n; i++) {
            visit(list[i])
            visit(parts[part] " " list[i])
            if (list[i] ~ /^(kinds\.KINDS|rates\.RATES)/)
                visit_all(substr(list[i], 1, 11), names[part])
        }
    }
}
END {
    for (name in functions)
        reach(name)
}
