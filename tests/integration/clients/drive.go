// Drives clients/go/later.go for test_thin_clients.c: drive WHAT [ARGUMENT...]
package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"later"
	"os"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func dial() (redis.Conn, error) {
	seconds, _ := strconv.Atoi(env("TIMEOUT", "30"))
	return redis.Dial("tcp", "127.0.0.1:"+os.Getenv("REDIS_PORT"),
		redis.DialUsername(env("REDIS_USER", "manager")), redis.DialPassword(os.Getenv("REDISCLI_AUTH")),
		redis.DialReadTimeout(time.Duration(seconds)*time.Second))
}

var jobs = later.New(&redis.Pool{Dial: dial, MaxIdle: 2}, "default")

func kindOf(e *later.Error) string {
	switch {
	case e.IsTemporary():
		return "temporary"
	case e.IsNotAllowed():
		return "not allowed"
	case e.IsMistake():
		return "mistake"
	}
	return "other"
}

// The error of a call that was answered; any other ends the program.
func told(err error) string {
	var e *later.Error
	if !errors.As(err, &e) {
		fmt.Println(err)
		os.Exit(1)
	}
	return e.Code + " " + kindOf(e)
}

func show(o *later.Outcome, err error) {
	if errors.Is(err, later.ErrNotEnded) {
		fmt.Println("none")
	} else if err != nil {
		fmt.Println(told(err))
	} else {
		fmt.Println(o.State, o.Code, o.Start, o.Text)
		fmt.Println(hex.EncodeToString(o.Output))
	}
}

func showJob(job later.Job, err error) {
	if err != nil {
		fmt.Println(told(err))
	} else {
		fmt.Println(job.ID, job.Status)
	}
}

func bulk() {
	payloads := make([][]byte, 1000)
	for k := range payloads {
		payloads[k] = []byte{byte(k), byte(k >> 8), byte(k), byte(k >> 8)}
	}
	added, err := jobs.AddMany("mail", payloads, "in", "1h")
	var e *later.Error
	if err != nil && !errors.As(err, &e) {
		fmt.Println("lost")
		return
	}
	for _, job := range added {
		showJob(job, err)
	}
}

func add(times, delay string) {
	n, _ := strconv.Atoi(times)
	for i := 0; i < n; i++ {
		showJob(jobs.Add("mail", []byte("x"), "in", delay))
	}
}

func showCancel(id string) {
	said, err := jobs.Cancel(id)
	if err != nil {
		said = told(err)
	}
	fmt.Println(said)
}

func look() {
	options := []string{"in", "1h", "keep", "1h", "token", "t", "then", "first", "then", "second"}
	job, err := jobs.Add("mail", []byte("grüße"), options...)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(job.ID, job.Status, job.DueMs)
	again, _ := jobs.Add("mail", []byte("grüße"), options...)
	fmt.Println(again.Status)
	show(jobs.Result(job.ID))
	show(jobs.Wait(job.ID, 300*time.Millisecond))
	showCancel(job.ID)
	showCancel(job.ID)
	show(jobs.Wait(job.ID, 30*time.Second))
	show(jobs.Wait("j0000000000a", 30*time.Second))
}

func main() {
	args := append(os.Args[1:], "1h")
	switch args[0] {
	case "bulk":
		bulk()
	case "add":
		add(args[1], args[2])
	case "wait":
		seconds, _ := strconv.ParseFloat(args[2], 64)
		show(jobs.Wait(args[1], time.Duration(seconds*float64(time.Second))))
	case "look":
		look()
	}
}
