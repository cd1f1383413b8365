package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	timer    *time.Timer
	observed time.Time // when the cluster was last looked at in full
	failed   backoff
}

// beat starts a probe. Its result comes in probes.
func (s *session) beat(ctx context.Context) {
	observe := time.Since(s.pulse.observed) >= s.cfg.Observe
	s.running.Go(func() {
		p := s.probe(ctx, observe)
		select {
		case s.probes <- &p:
		case <-ctx.Done():
		}
	})
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

// probe asks whether the API server is ready, and if observe is set, who the
// cluster is and how large.
func (s *session) probe(ctx context.Context, observe bool) probe {
	ctx, cancel := context.WithTimeout(ctx, min(s.cfg.Timeout, 10*time.Second))
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
		if err != nil {
			s.cfg.Log.Warn("cluster not observed in full", "cluster", s.cfg.Name, "err", plain(err))
		}
		p.uid, p.properties, p.namespaces = o.uid, o.properties, slices.Sorted(maps.Keys(o.namespaces))
	}
	return p
}

func (s *session) ready(ctx context.Context) error {
	err := s.conn.rest.Get().AbsPath("readyz").MaxRetries(0).Do(ctx).Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("health probe failed with status code %d", status.Status().Code)
	}
	return err
}
