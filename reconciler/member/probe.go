package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A probe is what one look at the cluster found.
type probe struct {
	at           time.Time
	err          error
	unauthorized bool
	uid          string
	properties   map[string]string
	namespaces   []string
	observed     bool // it was looked at in full
}

func (p probe) seen(cluster string) ledger.ClusterSeen {
	o := ledger.ClusterSeen{
		Cluster: cluster, At: p.at, Healthy: p.err == nil, UID: p.uid,
		Properties: p.properties, Namespaces: p.namespaces,
	}
	if p.err != nil {
		o.Error = p.err.Error()
	}
	return o
}

// A pulse is when to probe next: slowly while all is well, quickly as long as the
// cluster does not answer, so that its return is noticed at once. Between two
// probes nothing of it runs.
type pulse struct {
	timer    *time.Timer // calls beat
	observed time.Time   // when the cluster was last looked at in full
	failed   backoff
	partly   grumble // why it was not looked at in full

	mu   sync.Mutex
	over bool // nothing begins any more
}

// start has beat called from now on, until stop.
func (p *pulse) start(after time.Duration, beat func()) { p.timer = time.AfterFunc(after, beat) }

// stop returns when no beat can begin any more.
func (p *pulse) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// beat probes. Its result comes in probes; that the cluster does not answer is told
// at once, since the session may be at work on just that.
func (s *session) beat(ctx context.Context) {
	s.pulse.mu.Lock()
	if s.pulse.over {
		s.pulse.mu.Unlock()
		return
	}
	s.running.Add(1)
	s.pulse.mu.Unlock()
	defer s.running.Done()
	p := s.probe(ctx, time.Since(s.pulse.observed) >= s.cfg.Observe)
	if p.err != nil && ctx.Err() == nil {
		s.cfg.Report(p.seen(s.cfg.Name))
	}
	select {
	case s.probes <- &p:
	case <-ctx.Done():
	}
}

// pace sets when the next probe is, after one that found p.
func (s *session) pace(p probe) {
	wait := s.cfg.Probe
	if p.err != nil {
		wait = min(wait, s.pulse.failed.next(500*time.Millisecond, s.cfg.Probe))
	} else {
		s.pulse.failed = 0
	}
	if p.observed {
		s.pulse.observed = p.at
	}
	s.pulse.timer.Reset(wait)
}

const (
	// readyWithin is how long a server may take to say that it is ready. With the
	// time between two probes that is how long one that hangs is held to be there.
	readyWithin = 5 * time.Second
	// observedWithin is how long it may take until all is told of a cluster.
	observedWithin = 10 * time.Second
)

// probe asks whether the API server is ready, and if observe is set, who the
// cluster is and how large.
func (s *session) probe(ctx context.Context, observe bool) probe {
	ctx, cancel := context.WithTimeout(ctx, min(s.cfg.Timeout, observedWithin))
	defer cancel()
	p := probe{at: time.Now()}
	if p.err = s.ready(ctx); p.err != nil {
		p.unauthorized = apierrors.IsUnauthorized(p.err)
		p.err = plain(p.err)
		return p
	}
	if observe {
		p.observed = true
		o, err := s.observe(ctx)
		if err != nil && s.pulse.partly.due(plain(err).Error()) {
			s.cfg.Log.Warn("cluster not observed in full", "cluster", s.cfg.Name, "err", plain(err))
		}
		p.uid, p.properties, p.namespaces = o.uid, o.properties, slices.Sorted(maps.Keys(o.namespaces))
	}
	return p
}

func (s *session) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	err := s.conn.rest.Get().AbsPath("readyz").MaxRetries(0).Do(ctx).Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("health probe failed with status code %d", status.Status().Code)
	}
	return err
}
