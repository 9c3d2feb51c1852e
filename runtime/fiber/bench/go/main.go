// Go's part of the fiber runtime's benchmark. The command line and the output are those of the
// crate fiber_bench_meter beside this folder.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	fibers   = 4
	sleepers = 100_000
	large    = 1024
)

func spawnJoin(count uint64) uint64 {
	var sum uint64
	done := make(chan uint64)
	for i := range count {
		go func() { done <- i }()
		sum += <-done
	}
	return sum
}

func yields(count uint64) uint64 {
	done := make(chan uint64)
	for range fibers {
		go func() {
			for range count / fibers {
				runtime.Gosched()
			}
			done <- count / fibers
		}()
	}
	var sum uint64
	for range fibers {
		sum += <-done
	}
	return sum
}

func roundTrips(capacity int) func(uint64) uint64 {
	return func(count uint64) uint64 {
		ask, answer := make(chan uint64, capacity), make(chan uint64, capacity)
		go func() {
			for value := range ask {
				answer <- value + 1
			}
		}()
		var sum uint64
		for i := range count {
			ask <- i
			sum += <-answer
		}
		close(ask)
		return sum
	}
}

func sendAll(to chan<- uint64, count uint64) {
	for i := range count {
		to <- i
	}
}

func throughput(pairs uint64) func(uint64) uint64 {
	return func(count uint64) uint64 {
		values := make(chan uint64, large)
		var senders sync.WaitGroup
		for range pairs {
			senders.Go(func() { sendAll(values, count/pairs) })
		}
		sums := make(chan uint64)
		for range pairs {
			go func() {
				var sum uint64
				for value := range values {
					sum += value
				}
				sums <- sum
			}()
		}
		senders.Wait()
		close(values)
		var sum uint64
		for range pairs {
			sum += <-sums
		}
		return sum
	}
}

func select4(count uint64) uint64 {
	var c [fibers]chan uint64
	for i := range c {
		c[i] = make(chan uint64, 1)
		go sendAll(c[i], count/fibers)
	}
	var sum uint64
	for range count {
		select {
		case value := <-c[0]:
			sum += value
		case value := <-c[1]:
			sum += value
		case value := <-c[2]:
			sum += value
		case value := <-c[3]:
			sum += value
		}
	}
	return sum
}

func mutex(count uint64) uint64 {
	var lock sync.Mutex
	var total uint64
	var group sync.WaitGroup
	for range fibers {
		group.Go(func() {
			for range count / fibers {
				lock.Lock()
				total++
				runtime.Gosched()
				lock.Unlock()
			}
		})
	}
	group.Wait()
	return total
}

type request struct {
	value  uint64
	answer chan uint64
}

func requests(count uint64) uint64 {
	ask := make(chan request, 1)
	go func() {
		for r := range ask {
			r.answer <- r.value + 1
		}
	}()
	var sum uint64
	for i := range count {
		answer := make(chan uint64, 1)
		ask <- request{i, answer}
		sum += <-answer
	}
	close(ask)
	return sum
}

func timers(count uint64) uint64 {
	const length = time.Millisecond
	done := make(chan uint64)
	n := min(uint64(sleepers), count)
	for range n {
		go func() {
			var sleeps uint64
			for range count / n {
				start := time.Now()
				time.Sleep(length)
				if time.Since(start) >= length {
					sleeps++
				}
			}
			done <- sleeps
		}()
	}
	var sum uint64
	for range n {
		sum += <-done
	}
	return sum
}

var parts = []struct {
	row  string
	body func(uint64) uint64
}{
	{"spawn_join", spawnJoin},
	{"yield", yields},
	{"unbuffered", roundTrips(0)},
	{"bounded1", roundTrips(1)},
	{"bounded1024_1to1", throughput(1)},
	{"bounded1024_4to4", throughput(fibers)},
	{"select4", select4},
	{"mutex", mutex},
	{"oneshot", requests},
	{"timer_1ms", timers},
}

func cpuNs() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, text)
	fmt.Fprintln(os.Stderr, "usage: --list, or --row ROW --workers N --count N (a multiple of 4)")
	os.Exit(2)
}

func main() {
	words := os.Args[1:]
	if len(words) == 1 && words[0] == "--list" {
		for _, part := range parts {
			fmt.Println(part.row)
		}
		return
	}
	if len(words) != 6 || words[0] != "--row" || words[2] != "--workers" || words[4] != "--count" {
		fail(fmt.Sprint("not understood: ", words))
	}
	workers, err1 := strconv.Atoi(words[3])
	count, err2 := strconv.ParseUint(words[5], 10, 64)
	if err1 != nil || err2 != nil || workers < 1 || count < fibers || count%fibers != 0 {
		fail(fmt.Sprintf("%s workers, %s operations", words[3], words[5]))
	}
	runtime.GOMAXPROCS(workers)
	for _, part := range parts {
		if part.row == words[1] {
			warm := (count/10 + fibers - 1) / fibers * fibers
			part.body(warm)
			before := cpuNs()
			sum := part.body(count)
			fmt.Println("cpu_ns", cpuNs()-before, "sum", sum)
			return
		}
	}
	fail("there is no row " + words[1])
}
