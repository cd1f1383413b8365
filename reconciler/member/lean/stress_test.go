package lean_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// Of thousands of requests of any size, many of which are given up, each has the
// answer that the standard library has for it, or was given up.
func TestAnswersAreThoseOfTheStandardLibrary(t *testing.T) {
	requests := 2000
	if testing.Short() {
		requests = 200
	}
	limits := http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerStream: 2 << 10, MaxReceiveBufferPerConnection: 65535, MaxReadFrameSize: 16 << 10}
	s := serve(t, lean.Config{Silent: time.Minute, Patience: time.Minute}, limits, func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // given up
		}
		w.Header().Set("Sum", fmt.Sprintf("%x", sha256.Sum256(body)))
		w.Header().Set("Long", strings.Repeat("h", size%5000))
		w.WriteHeader(200 + size%90)
		for piece := []byte(strings.Repeat(strconv.Itoa(size), 500)); size > 0; size -= len(piece) {
			w.Write(piece[:min(size, len(piece))])
			if size%3 == 0 {
				w.(http.Flusher).Flush()
			}
		}
	})
	usual := serve(t, lean.Config{}, http.HTTP2Config{}, s.server.Config.Handler.ServeHTTP).server // it does not wait for such windows
	var all sync.WaitGroup
	var whole, given atomic.Int32
	jobs := make(chan uint64)
	try := func(seed uint64, server *httptest.Server, client *http.Client) (string, error) {
		random := rand.New(rand.NewPCG(seed, 1))
		url := fmt.Sprint(server.URL, "?size=", random.IntN(1<<(1+random.IntN(19))))
		body := strings.Repeat("b", random.IntN(lean.MaxBody))
		if random.IntN(3) == 0 {
			body = ""
		}
		ctx := t.Context()
		if brief := time.Duration(random.IntN(20000)) * time.Microsecond; random.IntN(3) == 0 && server == s.server {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, brief)
			defer cancel()
		}
		request, err := http.NewRequestWithContext(ctx, []string{"POST", "PUT", "GET", "HEAD"}[random.IntN(4)], url, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		answer, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, answer.Body); err != nil {
			return "", err
		}
		answer.Header.Del("Date")
		answer.Header.Set("Long", fmt.Sprint(len(answer.Header.Get("Long"))))
		return fmt.Sprintf("%d %d %v %x", answer.StatusCode, answer.ContentLength, answer.Header, sum.Sum(nil)), nil
	}
	for range 40 {
		all.Go(func() {
			for seed := range jobs {
				got, err := try(seed, s.server, s.Client)
				if errors.Is(err, context.DeadlineExceeded) {
					given.Add(1)
					continue
				}
				want, wrong := try(seed, usual, usual.Client())
				if err != nil || wrong != nil || got != want {
					t.Errorf("%d: %.200q, %v; want %.200q, %v", seed, got, err, want, wrong)
				}
				whole.Add(1)
			}
		})
	}
	for seed := range uint64(requests) {
		jobs <- seed
	}
	close(jobs)
	all.Wait()
	if whole.Load() == 0 {
		t.Errorf("%d answers, %d given up", whole.Load(), given.Load())
	}
}

// A server that leaves in good order, under load and again and again, loses no
// request and has none twice.
func TestServersLeaveInGoodOrder(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	start := func() *httptest.Server {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			seen[string(body)]++
			mu.Unlock()
			w.Write(body)
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		return server
	}
	current := start()
	var left sync.WaitGroup
	secure := current.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	secure.NextProtos = []string{"h2"}
	transport := lean.New(lean.Config{Dial: func(ctx context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", current.Listener.Addr().String())
	}})
	t.Cleanup(transport.Close)
	var all sync.WaitGroup
	var asked atomic.Int32
	stop := make(chan bool)
	for range 10 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				body := fmt.Sprint("body ", asked.Add(1))
				if got, err := ask(t, transport, http.MethodPost, strings.NewReader(body)); err != nil || got != body {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	for range 5 {
		before := asked.Load()
		for asked.Load() < before+100 {
			time.Sleep(time.Millisecond)
		}
		next := start()
		mu.Lock()
		old := current
		current = next
		mu.Unlock()
		left.Go(func() {
			old.Config.Shutdown(context.Background()) //nolint:errcheck // it waits as long as it takes
			old.Close()
		})
	}
	close(stop)
	all.Wait()
	transport.Close()
	left.Wait()
	current.Close()
	if len(seen) != int(asked.Load()) {
		t.Errorf("%d of %d requests were seen", len(seen), asked.Load())
	}
	for body, n := range seen {
		if n != 1 {
			t.Errorf("%s was seen %d times", body, n)
		}
	}
}
