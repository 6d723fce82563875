// Package later is a thin client of laterd over redigo: copy this file, or use its module.
//
//	l := later.New(&redis.Pool{Dial: dial}, "default") // dial with redis.DialReadTimeout
//	job, err := l.Add("mail", []byte("hello"), "in", "5m", "key", "user:42")
//	if err == nil {
//		outcome, err := l.Wait(job.ID, 10*time.Minute)
//
// Options are names and values in turn, those of doc/protocol.md. Payloads and outputs are bytes. An
// error reply is an *Error; a lost connection, or no answer in time, an error of redigo or net. A Later
// may be used by many goroutines.
package later

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A wait makes sure now and then that the job and the connection are there.
const askAgain = 30 * time.Second

// ErrNotEnded is what Wait says when the time is over.
var ErrNotEnded = errors.New("later: the job has not ended yet")

// Error is an error reply. Code is its first word, as "ELATER_NOJOB".
type Error struct{ Code, Text string }

func (e *Error) Error() string { return e.Code + " " + e.Text }

func (e *Error) isOneOf(codes string) bool { return strings.Contains(" "+codes+" ", " "+e.Code+" ") }

// IsTemporary: nothing was done: try again after a while.
func (e *Error) IsTemporary() bool {
	return e.isOneOf("LOADING BUSY OOM READONLY MASTERDOWN ELATER_FULL TRYAGAIN CLUSTERDOWN")
}

// IsNotAllowed: an operator has to cure it: rights, a password, `later setup`.
func (e *Error) IsNotAllowed() bool {
	return e.isOneOf("NOPERM WRONGPASS NOAUTH") || strings.HasPrefix(e.Text, "Function not found")
}

// IsMistake: it would fail again: the text says why. Also ELATER_NOJOB, where the job has ended.
func (e *Error) IsMistake() bool { return strings.HasPrefix(e.Code, "ELATER_") && !e.IsTemporary() }

func byCode(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	code, text, _ := strings.Cut(string(reply), " ")
	return &Error{code, text}
}

// Job is what an add answers.
type Job struct {
	ID, Status string
	DueMs      int64
}

// Outcome is that of the last attempt. State: waiting, parked, running, failed, done, dead or cancelled.
type Outcome struct {
	State         string
	Code          int
	WhenMs, Start int64
	Text          string
	Output        []byte
}

func (o *Outcome) hasEnded() bool {
	return o.State == "done" || o.State == "dead" || o.State == "cancelled"
}

// Later is the jobs of a namespace.
type Later struct {
	pool *redis.Pool
	root string
}

// New uses connections of the pool.
func New(pool *redis.Pool, namespace string) *Later {
	return &Later{pool, "later:{" + namespace + "}"}
}

// Add adds a job. If the answer is lost it is asked for once more, with the same token.
func (l *Later) Add(queue string, payload []byte, options ...string) (Job, error) {
	if len(options)%2 != 0 {
		return Job{}, errors.New("later: an option without a value")
	}
	args := words(queue, options)
	if !hasToken(options) {
		token := make([]byte, 16)
		if _, err := rand.Read(token); err != nil {
			return Job{}, err
		}
		args = append(args, "token", hex.EncodeToString(token))
	}
	reply, err := l.call("add", append(args, payload)...)
	var told *Error
	if err != nil && !errors.As(err, &told) {
		reply, err = l.call("add", append(args, payload)...)
	}
	return jobOf(reply, err)
}

// AddMany adds all or none, at most 1,000 and 16 MiB. It has no token, so an answer that is lost is not
// asked for again: the jobs may have been added.
func (l *Later) AddMany(queue string, payloads [][]byte, options ...string) ([]Job, error) {
	args := append(words(queue, options), "--")
	for _, payload := range payloads {
		args = append(args, payload)
	}
	replies, err := redis.Values(l.call("add_many", args...))
	jobs := make([]Job, len(replies))
	for i := 0; i < len(replies) && err == nil; i++ {
		jobs[i], err = jobOf(replies[i], nil)
	}
	return jobs, err
}

// Wait returns the outcome once the job has ended, and ErrNotEnded if it has not in this time. The id is
// one that Add gave. ELATER_NOJOB: it has ended, and its outcome was not kept (option keep).
func (l *Later) Wait(id string, timeout time.Duration) (*Outcome, error) {
	until := time.Now().Add(timeout)
	conn, err := l.dial()
	if err != nil {
		return nil, byCode(err)
	}
	done := make(chan struct{})
	defer close(done)
	defer conn.Close()
	messages := listen(conn, l.root+":ended:"+id, done)
	for {
		left := time.Until(until)
		pause := askAgain
		if left < pause {
			pause = left
		}
		select {
		case message := <-messages:
			switch m := message.(type) {
			case redis.Message:
				return outcomeOfMessage(m.Data)
			case error:
				return nil, byCode(m)
			}
		case <-time.After(pause):
		}
		// It listens now, or has heard nothing for long.
		outcome, err := outcomeOf(redis.ByteSlices(l.call("v1_await", id)))
		if err != nil || outcome.hasEnded() {
			return outcome, err
		}
		if left <= 0 {
			return nil, ErrNotEnded
		}
	}
}

// Result returns the outcome as it is now.
func (l *Later) Result(id string) (*Outcome, error) {
	return outcomeOf(redis.ByteSlices(l.call("result", id)))
}

// Cancel returns "cancelled", "cancelling" (it runs) or "freed".
func (l *Later) Cancel(id string) (string, error) { return redis.String(l.call("cancel", id)) }

func (l *Later) call(function string, args ...interface{}) (interface{}, error) {
	conn := l.pool.Get()
	defer conn.Close()
	reply, err := conn.Do("FCALL", append([]interface{}{"later_" + function, 1, l.root}, args...)...)
	return reply, byCode(err)
}

// A connection that is subscribed does not go back to the pool.
func (l *Later) dial() (redis.Conn, error) {
	if l.pool.DialContext != nil {
		return l.pool.DialContext(context.Background())
	}
	return l.pool.Dial()
}

// All that comes on the channel, that it is subscribed to, and at the end an error.
func listen(conn redis.Conn, channel string, done <-chan struct{}) <-chan interface{} {
	messages := make(chan interface{})
	events := redis.PubSubConn{Conn: conn}
	go func() {
		var failed bool
		for err := events.Subscribe(channel); !failed; {
			message := interface{}(err)
			if err == nil {
				message = events.ReceiveWithTimeout(0)
			}
			_, failed = message.(error)
			select {
			case messages <- message:
			case <-done:
				return
			}
		}
	}()
	return messages
}

func words(queue string, options []string) []interface{} {
	args := []interface{}{queue}
	for _, word := range options {
		args = append(args, word)
	}
	return args
}

func hasToken(options []string) bool {
	for i := 0; i < len(options); i += 2 {
		if strings.EqualFold(options[i], "token") {
			return true
		}
	}
	return false
}

func jobOf(reply interface{}, err error) (Job, error) {
	fields, err := redis.Values(reply, err)
	var job Job
	if err == nil {
		_, err = redis.Scan(fields, &job.ID, &job.Status, &job.DueMs)
	}
	return job, err
}

func outcomeOf(fields [][]byte, err error) (*Outcome, error) {
	if err != nil {
		return nil, err
	}
	if len(fields) != 6 {
		return nil, fmt.Errorf("later: an outcome of %d fields", len(fields))
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(string(fields[i]), 10, 64); return n }
	return &Outcome{string(fields[0]), int(number(1)), number(2), number(3), string(fields[4]), fields[5]}, nil
}

func outcomeOfMessage(data []byte) (*Outcome, error) {
	head, output, _ := bytes.Cut(data, []byte("\n"))
	return outcomeOf(append(bytes.SplitN(head, []byte(" "), 5), output), nil)
}
