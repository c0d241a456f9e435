// A load client for HTTP/3: so many connections, so many requests at once on each, one after the other.
//
//	h3 [-connections 32] [-streams 10] [-requests 20000 | -seconds 5] https://host:port/path
//
// Prints what it saw as one line of JSON. With -once it prints one response, head and length, and which protocol it came over. Certificates are
// not judged: the servers that are measured have made their own.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

type result struct {
	Requests  int64   `json:"requests"`
	Errors    int64   `json:"errors"`
	Bytes     int64   `json:"bytes"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"requests_per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

func transport() *http3.Transport {
	return &http3.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		QUICConfig:         &quic.Config{MaxIdleTimeout: 30 * time.Second},
		DisableCompression: true,
	}
}

func once(url string) error {
	client := transport()
	defer client.Close()
	response, err := (&http.Client{Transport: client}).Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	length, err := io.Copy(io.Discard, response.Body)
	fmt.Println(response.Proto, response.Status)
	response.Header.Write(os.Stdout)
	fmt.Println(length, "bytes")
	return err
}

func main() {
	connections := flag.Int("connections", 32, "connections")
	streams := flag.Int("streams", 10, "requests at once on each")
	requests := flag.Int64("requests", 0, "requests in all; 0: as many as there is time for")
	seconds := flag.Float64("seconds", 5, "for how long, without -requests")
	single := flag.Bool("once", false, "one request, and what came of it")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	url := flag.Arg(0)
	if *single {
		if err := once(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}

	var left, done, errors, bytes atomic.Int64
	left.Store(*requests)
	var lock sync.Mutex
	var times []float64
	var ready, workers sync.WaitGroup
	begin := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range *connections {
		client := transport()
		defer client.Close()
		ready.Add(1)
		workers.Add(*streams)
		go func() {
			// Hands are shaken before the time begins.
			if response, err := (&http.Client{Transport: client}).Head(url); err == nil {
				response.Body.Close()
			} else {
				errors.Add(1)
			}
			ready.Done()
			<-begin
			for range *streams {
				go func() {
					defer workers.Done()
					http := &http.Client{Transport: client}
					own := make([]float64, 0, 4096)
					for ctx.Err() == nil && (*requests == 0 || left.Add(-1) >= 0) {
						started := time.Now()
						response, err := http.Get(url)
						if err != nil {
							errors.Add(1)
							continue
						}
						length, err := io.Copy(io.Discard, response.Body)
						response.Body.Close()
						if err != nil || response.StatusCode != 200 {
							errors.Add(1)
							continue
						}
						bytes.Add(length)
						done.Add(1)
						own = append(own, float64(time.Since(started).Microseconds())/1000)
					}
					lock.Lock()
					times = append(times, own...)
					lock.Unlock()
				}()
			}
		}()
	}
	ready.Wait()
	started := time.Now()
	close(begin)
	if *requests == 0 {
		time.AfterFunc(time.Duration(*seconds*float64(time.Second)), cancel)
	}
	workers.Wait()
	spent := time.Since(started).Seconds()
	slices.Sort(times)
	at := func(part float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return times[int(part*float64(len(times)-1))]
	}
	json.NewEncoder(os.Stdout).Encode(result{
		Requests: done.Load(), Errors: errors.Load(), Bytes: bytes.Load(), Seconds: spent,
		PerSecond: float64(done.Load()) / spent, P50: at(0.5), P99: at(0.99),
	})
	if errors.Load() > 0 {
		os.Exit(1)
	}
}
