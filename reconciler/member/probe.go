package member

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
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
	connection.Rotation
	// returned says that one before had failed, and that nobody has acted on that.
	returned bool
}

// overtakes takes over what is still of use in an older probe that nobody has taken
// in, and nobody will.
func (p *probe) overtakes(old *probe) {
	p.returned = p.err == nil && (old.err != nil || old.returned)
	if p.uid == "" {
		p.uid = old.uid
	}
	p.Replaced = append(old.Replaced, p.Replaced...)
	if p.Another == nil {
		p.Another = old.Another
	}
	if p.namespaces == nil {
		p.namespaces = old.namespaces
	}
}

func (p probe) seen(cluster string) ledger.ClusterSeen {
	o := ledger.ClusterSeen{
		Cluster: cluster, At: p.at, Healthy: p.err == nil, UID: p.uid,
		Properties: p.properties, Namespaces: p.namespaces, Unrenewed: p.Unrenewed,
	}
	if p.err != nil {
		o.Error = p.err.Error()
	}
	return o
}

// A probeSchedule is when to probe next: slowly while all is well, quickly as long as the
// cluster does not answer, so that its return is noticed at once. Between two
// probes nothing of it runs, and a session at work does not hold it up.
type probeSchedule struct {
	observed time.Time // when the cluster was last looked at in full
	uid      string    // who it was then
	failed   retry.Backoff
	partly   retry.LogLimiter // why it was not looked at in full

	next time.Time // of the next probe; credentials are looked at more often

	mu    sync.Mutex
	timer *time.Timer // runs the next probe
	over  bool        // nothing begins any more
}

// start has probe called, and again whenever it asks for that, until stop.
func (p *probeSchedule) start(after time.Duration, probe func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(after, probe)
}

// again has the next probe run after some time.
func (p *probeSchedule) again(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.timer.Reset(after)
	}
}

// stop returns when no probe can begin any more.
func (p *probeSchedule) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// runProbe probes, reports the result, and leaves it in probes instead of one that nobody
// has taken yet: the session may be at work, and wait for just this server.
func (s *session) runProbe(ctx context.Context) {
	s.probing.mu.Lock()
	if s.probing.over {
		s.probing.mu.Unlock()
		return
	}
	s.running.Add(1)
	s.probing.mu.Unlock()
	defer s.running.Done()
	r := s.conn.Renew(ctx, s.probing.uid)
	if len(r.Replaced) == 0 && r.Another == nil && time.Now().Before(s.probing.next) {
		s.probing.again(min(connection.CredentialsPoll, time.Until(s.probing.next)))
		return
	}
	p := s.probe(ctx, time.Since(s.probing.observed) >= s.cfg.Observe)
	p.Rotation = r
	if ctx.Err() != nil {
		for _, c := range r.Replaced {
			c.Close()
		}
		return
	}
	same := r.Another == nil && p.uid == "" || s.probing.uid == "" || p.uid == s.probing.uid
	if same {
		s.publishProbe(p)
	}
	select {
	case old := <-s.probes:
		p.overtakes(old)
	default:
	}
	s.probes <- &p
	if same {
		wait := s.pace(p)
		s.probing.next = time.Now().Add(wait)
		s.probing.again(min(wait, connection.CredentialsPoll))
	} // else the session is to end
}

// seen returns the observation of a probe, with the permissions that are missing.
func (s *session) seen(p probe) ledger.ClusterSeen {
	seen := p.seen(s.cfg.Name)
	switch forbidden := s.access.forbidden(); {
	case p.err == nil:
		seen.Forbidden = forbidden
	case apierrors.IsForbidden(p.err) && len(forbidden) > 0:
		seen.Forbidden, seen.Error = forbidden, (&ForbiddenError{p.err, forbidden}).Error()
	}
	return seen
}

// publishProbe reports what a probe has found, and logs what is new of it.
func (s *session) publishProbe(p probe) {
	s.access.refused(p.err)
	s.cfg.Report(s.seen(p))
	s.answers(p.err)
}

// pace returns when the next probe is, after one that found p.
func (s *session) pace(p probe) time.Duration {
	if p.observed {
		s.probing.observed = p.at
	}
	if p.uid != "" {
		s.probing.uid = p.uid
	}
	if p.err != nil {
		return min(s.cfg.Probe, s.probing.failed.Next(500*time.Millisecond, s.cfg.Probe))
	}
	s.probing.failed = 0
	return s.cfg.Probe
}

const (
	// observedWithin is how long it may take until all is told of a cluster.
	observedWithin = 10 * time.Second
)

// probe asks whether the API server is ready, and if observe is set, who the
// cluster is and how large.
func (s *session) probe(ctx context.Context, observe bool) probe {
	ctx, cancel := context.WithTimeout(ctx, min(s.cfg.Timeout, observedWithin))
	defer cancel()
	p := probe{at: time.Now()}
	p.err = s.conn.Ready(ctx)
	s.cfg.Metrics.ProbeSeconds.WithLabelValues(s.cfg.Name).Set(time.Since(p.at).Seconds())
	if p.err != nil {
		p.unauthorized = apierrors.IsUnauthorized(p.err)
		p.err = connection.Plain(p.err)
		return p
	}
	if observe {
		p.observed = true
		o, err := s.observe(ctx)
		if err != nil && s.probing.partly.Due(connection.Plain(err).Error()) {
			s.cfg.Log.Warn("cluster not observed in full", "cluster", s.cfg.Name, "err", connection.Plain(err))
		}
		p.uid, p.properties, p.namespaces = o.uid, o.properties, slices.Sorted(maps.Keys(o.namespaces))
	}
	return p
}
