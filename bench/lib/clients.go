// Go's net/http as a client of Seawall, in HTTP/1.1 and HTTP/2: `go run clients.go ADDRESS ROOTS`, one line for each protocol. See bench/clients.
package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

const requests, atOnce, large = 500, 50, 3 << 20

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func ask(client *http.Client, request *http.Request, length int) (*http.Response, [32]byte) {
	response, err := client.Do(request)
	must(err)
	content, err := io.ReadAll(response.Body)
	must(err)
	response.Body.Close()
	if response.StatusCode != 200 || length >= 0 && len(content) != length {
		must(fmt.Errorf("%s: %s with %d bytes", request.URL, response.Status, len(content)))
	}
	return response, sha256.Sum256(content)
}

func get(url string) *http.Request {
	request, err := http.NewRequest("GET", url, nil)
	must(err)
	return request
}

func try(base string, pool *x509.CertPool, version string) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == "HTTP/1.1")
	protocols.SetHTTP2(version == "HTTP/2.0")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: protocols, MaxIdleConnsPerHost: atOnce}}

	first, _ := ask(client, get(base+"/"), -1)
	if first.Proto != version {
		must(fmt.Errorf("%s, not %s", first.Proto, version))
	}
	var all sync.WaitGroup
	for worker := range atOnce {
		all.Go(func() {
			for number := range requests / atOnce {
				ask(client, get(fmt.Sprintf("%s/page/%d", base, worker*number%17)), 8192)
			}
		})
	}
	all.Wait()
	_, once := ask(client, get(base+"/large"), large)
	_, again := ask(client, get(base+"/large"), large)
	if once != again {
		must(fmt.Errorf("a miss and a hit of 3 MB differ"))
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), large/16)
	for _, reader := range []io.Reader{bytes.NewReader(body), struct{ io.Reader }{bytes.NewReader(body)}} {
		// The second one's length is not known: chunked, or a stream that just ends.
		request, err := http.NewRequest("POST", base+"/echo", reader)
		must(err)
		_, echoed := ask(client, request, large)
		if echoed != sha256.Sum256(body) {
			must(fmt.Errorf("an upload came back changed"))
		}
	}
	fmt.Printf("%s, %s, %s, %s\n", first.Proto, tls.VersionName(first.TLS.Version), tls.CipherSuiteName(first.TLS.CipherSuite), first.TLS.CurveID)
}

func main() {
	roots, err := os.ReadFile(os.Args[2])
	must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		try("https://"+os.Args[1], pool, version)
	}
}
