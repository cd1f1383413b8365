package kubeapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// watcher watches all placements over a separate connection, and calls has for each event.
func (s *served) watcher(b *testing.B, version string, has func()) {
	b.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET %s/clusterresourceplacements?watch=1&resourceVersion=%s HTTP/1.1\r\nHost: %s\r\n\r\n", placementPath, version, at.Host)
	in := bufio.NewReaderSize(conn, 8<<10)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%v: %v", resp, err)
	}
	go func() {
		buf := make([]byte, 8<<10)
		for {
			n, err := resp.Body.Read(buf)
			for _, c := range buf[:n] {
				if c == '\n' { // the end of an event
					has()
				}
			}
			if err != nil {
				return
			}
		}
	}()
}

// version returns the version of the newest list.
func (s *served) version(b *testing.B) string {
	b.Helper()
	resp, err := http.Get(s.url + placementPath + "/clusterresourceplacements?limit=1")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	var l struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		b.Fatal(err)
	}
	return l.Metadata.ResourceVersion
}

// BenchmarkWatch measures the time from the publication of a report, in which one of 1,000
// placements on 100 clusters each has changed, until all watchers have received the placement.
// It also measures the memory of the watchers, both ends of their connections together, after
// each got an event.
func BenchmarkWatch(b *testing.B) {
	for _, watchers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			r := fleet(b)
			s := serve(b, r)
			version := s.version(b)
			before := occupied()
			var told sync.WaitGroup
			for range watchers {
				s.watcher(b, version, told.Done)
			}
			generation := int64(1)
			publish := func() {
				generation++
				next := *r
				next.Placements = slices.Clone(r.Placements)
				next.Placements[500] = large("placement-0500", generation)
				told.Add(watchers)
				s.api.Publish(&next)
			}
			publish()
			told.Wait()
			for b.Loop() {
				publish()
				told.Wait()
			}
			b.ReportMetric(float64(occupied()-before)/(1<<20), "MiB")
		})
	}
}

// occupied returns the size of the live heap and the stacks.
func occupied() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
