package series

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

// Series are exported as those of the Prometheus library are, and those of a cluster are gone once they are deleted.
func TestSeriesAreExported(t *testing.T) {
	requests, memory := NewCounter("requests_total", "Requests.", "verb", "code"), NewGauge("memory", "Memory.")
	requests.Inc("east", "get", "200")
	requests.Add(2, "east", "get", "200")
	requests.Inc("east", "patch", "409")
	requests.Inc("west", "get", "200")
	requests.Add(0, "west", "delete", "200")
	memory.Set(7, "east")
	memory.Dec("east")
	memory.Set(5, "west")
	const east = `
memory{cluster="east"} 6
requests_total{cluster="east",code="200",verb="get"} 3
requests_total{cluster="east",code="409",verb="patch"} 1
`
	const west = `
memory{cluster="west"} 5
requests_total{cluster="west",code="200",verb="delete"} 0
requests_total{cluster="west",code="200",verb="get"} 1
`
	exported := func(want string) {
		t.Helper()
		gatherer := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return Gather(nil, requests, memory), nil })
		want = "# HELP requests_total Requests.\n# TYPE requests_total counter\n# HELP memory Memory.\n# TYPE memory gauge" + want
		if err := testutil.GatherAndCompare(gatherer, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	exported(east + west)
	if got := fmt.Sprint(requests.Value("east", "get", "200"), memory.Value("west"), requests.Value("north", "get", "200")); got != "3 5 0" {
		t.Errorf("the values are %s", got)
	}
	requests.Delete("east")
	memory.Delete("east")
	memory.Dec("east") // whatever was counted has ended late
	exported(west)
}

// Several goroutines count at once, also while the series are exported.
func TestSeriesAreCountedConcurrently(t *testing.T) {
	v := NewCounter("requests_total", "Requests.", "verb")
	var counting sync.WaitGroup
	for range 4 {
		counting.Go(func() {
			for i := range 100 {
				v.Inc("east", fmt.Sprint("verb", i%3))
			}
		})
	}
	Gather(nil, v)
	counting.Wait()
	if sum := v.Value("east", "verb0") + v.Value("east", "verb1") + v.Value("east", "verb2"); sum != 400 {
		t.Errorf("counted %v of 400", sum)
	}
}

// The number of labels is that of the metric.
func TestOtherLabelsPanic(t *testing.T) {
	v := NewCounter("requests_total", "Requests.", "verb")
	for _, others := range [][]string{nil, {"get", "200"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is accepted", others)
				}
			}()
			v.Inc("east", others...)
		}()
	}
}

// A series takes a fraction of the memory that one of the library does.
func TestSeriesAreSmall(t *testing.T) {
	const clusters, most = 2000, 150
	v := NewCounter("requests_total", "Requests.", "verb", "code")
	before := heap()
	for i := range clusters {
		for _, verb := range []string{"get", "patch", "watch", "delete"} {
			v.Inc(fmt.Sprint("cluster-", i), verb, "200")
		}
	}
	if each := (heap() - before) / (4 * clusters); each > most {
		t.Errorf("a series takes %d bytes, at most %d are allowed", each, most)
	}
	runtime.KeepAlive(v)
}

// A scrape allocates memory for many series at a time, since tens of thousands would else be a noticeable part of all garbage.
func TestScrapesAllocateBlocks(t *testing.T) {
	const clusters = 2000
	v := NewCounter("requests_total", "Requests.", "verb", "code")
	for i := range clusters {
		for _, verb := range []string{"get", "patch", "watch", "delete"} {
			v.Inc(fmt.Sprint("cluster-", i), verb, "200")
		}
	}
	name, fleet := "fleet", "prod"
	if n := testing.AllocsPerRun(5, func() { Gather(&dto.LabelPair{Name: &name, Value: &fleet}, v) }); n > 4*clusters/20 {
		t.Errorf("%v allocations for %d series", n, 4*clusters)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
