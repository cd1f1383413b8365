package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A lossy watch drops the events of objects whose name begins with "lost".
type lossy struct {
	on   atomic.Bool
	lost atomic.Int32
}

func (l *lossy) watch(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	from, to := io.Pipe()
	body := response.Body
	go func() {
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if l.on.Load() && bytes.Contains(line, []byte(`"name":"lost`)) {
				l.lost.Add(1)
				line = nil
			}
			if _, werr := to.Write(line); werr != nil || err != nil {
				to.CloseWithError(err)
				return
			}
		}
	}()
	response.Body = struct {
		io.Reader
		io.Closer
	}{from, body}
	return response, nil
}

// The sweep finds changes that a watch has missed, reverts them like other drift, counts them
// and logs that a watch missed them; for all other objects it does nothing.
func TestSweepFindsChangesThatWatchesMissed(t *testing.T) {
	t.Parallel()
	l, metrics, said := &lossy{}, member.NewMetrics(), &lines{}
	a, f := newFaulty(t, func(cfg *member.Config) {
		cfg.Sweep, cfg.Metrics = 300*time.Millisecond, metrics
		cfg.Log = slog.New(slog.NewTextHandler(said, nil))
	})
	f.set("watch", fault{func(r *http.Request) bool {
		return r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/api/v1/configmaps")
	}, l.watch})
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "lost-edit", "a"), configMap(ns, "lost-deletion", "a"), configMap(ns, "other", "a"), deployment(ns, "web", 2, nil))})
	a.until(key, "applied", func(w protocol.WorkSeen) bool { return w.Applied() })
	swept := func() float64 { return metrics.Swept.Value("member-1") }
	missed := func() float64 { return metrics.SweepMissed.Value("member-1") }
	a.eventually("swept", func() (bool, error) { return swept() > 0, nil })
	a.sent.Reset()
	first := swept()
	a.eventually("swept again", func() (bool, error) { return swept() > first, nil })
	if got := a.writes(); len(got) > 0 || missed() > 0 {
		t.Errorf("with nothing wrong it wrote %v and missed %v", got, missed())
	}

	l.on.Store(true)
	cms := a.client.CoreV1().ConfigMaps(ns)
	noError(t, situation{a, ns, "lost-edit"}.edit(ctx, `{"data":{"key":"tampered"}}`))
	noError(t, cms.Delete(ctx, "lost-deletion", metav1.DeleteOptions{}))
	a.eventually("restored", func() (bool, error) {
		edited, err := a.get(ns, "lost-edit")
		if err != nil || edited.Data["key"] != "a" {
			return false, err
		}
		_, err = a.get(ns, "lost-deletion")
		return err == nil, err
	})
	if l.lost.Load() < 2 {
		t.Error("no event was lost")
	}
	a.eventually("counted", func() (bool, error) { return missed() == 2, nil })
	if text := said.String(); strings.Count(text, "no watch told") != 2 || !strings.Contains(text, "level=ERROR") {
		t.Errorf("it says:\n%s", text)
	}
	a.awaitDrift(key, "lost-edit", "repaired", func(d protocol.Drift) bool { return d.State == api.DriftRepaired && len(d.By) == 1 })
}
