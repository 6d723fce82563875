. "$(dirname "$0")/common.sh"

# Another caller holds `door` and, with a lease that is over, `old`. Jobs wait for `old`, too.
root_laterd
root FCALL later_lock 1 "$R" old other ttl 1ms
root FCALL later_lock 1 "$R" door other ttl 1h
fcall later_lock door me ttl 1h wait 1h
root FCALL later_unlock 1 "$R" door other
fcall later_lock door me ttl 1h
fcall later_lock old me ttl 1h
fcall later_lock old me ttl 1h
fcall later_renew old me ttl 1h
fcall later_fence_check old 1
for n in 1 2 3; do
    id=$(root_add mail --lock old --sem permits $n)
done
wait_for is_state "$id" parked
fcall later_lock single me ttl 1h
id=$(root_add mail --lock single --rate speed x)
wait_for is_state "$id" parked
fcall later_unlock single me
fcall later_unlock old me token first
fcall later_unlock old me token first
fcall later_unlock old me token second
# It asks what was seen, also for a filter that is full.
for key in 1 2 3 1; do
    fcall later_seen mine $key capacity 1
done
# The next caller that waits is told that it is its turn.
fcall later_lock turn me ttl 1h
root FCALL later_lock 1 "$R" turn other ttl 1h wait 1h
listen
fcall later_unlock turn me
heard =other
fcall later_unlock door me
fcall later_sem_acquire permits me ttl 1h
fcall later_sem_acquire permits me ttl 1h
fcall later_sem_release permits me
fcall later_throttle speed
root_later limits set slow rate 1/1h --algorithm sliding >/dev/null
root_later limits set fixed rate 1/1h --algorithm fixed >/dev/null
for gate in slow fixed speed; do
    fcall later_throttle $gate
    fcall later_throttle $gate
done
