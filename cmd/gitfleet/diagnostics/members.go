package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// tolerableSkew is the tolerated difference of a member's clock. It is read from the header
// Date, which has whole seconds.
const tolerableSkew = 10 * time.Second

// maxChecks is the maximum number of members that are checked in parallel.
const maxChecks = 16

const synchronizeClocks = "synchronize the clocks (NTP); certificates, tokens and times in the status depend on them"

// checkMembers checks all members of a commit, several at a time.
func checkMembers(ctx context.Context, c settings.Config, s *hub.Snapshot) []check {
	if len(s.Clusters) == 0 {
		return []check{{"member", "", checkWarn, "the repository declares no member", "commit a MemberCluster; gitfleet member join writes one"}}
	}
	credentials, err := c.Members.Credentials()
	if err != nil {
		return []check{{"member", "", checkFail, err.Error(), "run doctor where the daemon runs"}}
	}
	if _, err := c.NameFleet(""); err != nil {
		return []check{{"config", "fleetName", checkFail, err.Error(), ""}}
	}
	o, err := offline.Input{}.Forecast(s)
	if err != nil {
		return []check{{"repository", "", checkFail, err.Error(), ""}}
	}
	encoder := apply.NewEncoder(c.FleetName, c.Source.URL)
	all, seen := make([][]check, len(s.Clusters)), make([]protocol.ClusterSeen, len(s.Clusters))
	var group errgroup.Group
	group.SetLimit(maxChecks)
	for i, cluster := range s.Clusters {
		group.Go(func() error {
			cfg := c.MemberConfig(cluster.Name, cluster.Annotations[api.ContextAnnotation], credentials, encoder)
			works, namespaces := o.Plan.Works[cluster.Name], []string(nil)
			for _, w := range works {
				namespaces = append(namespaces, s.JobNamespaces(w.Placement)...)
			}
			all[i], seen[i] = checkMember(ctx, cluster.Name, works, namespaces, cfg)
			return nil
		})
	}
	group.Wait() // the checks return no errors
	return append(slices.Concat(all...), checkIdentities(c.FleetName, seen)...)
}

// checkIdentities returns a failed check for each member that is the same cluster as another one that
// has claimed it.
func checkIdentities(fleet string, seen []protocol.ClusterSeen) []check {
	l := ledger.New()
	l.SetFleet(protocol.Fleet{Name: fleet})
	for _, o := range seen {
		o.At = time.Time{} // which of them answered first does not matter
		l.Fold(o)
	}
	var out []check
	for _, o := range seen {
		if holder := l.SameAs(o.Cluster); o.Cluster != "" && holder != "" {
			out = append(out, check{"member", o.Cluster, checkFail,
				fmt.Sprintf("it is the same cluster as the member %s (identity: the UID of its Namespace kube-system is %s): nothing is written to it under one of the two names", holder, o.UID),
				fmt.Sprintf("correct the kubeconfig of %s or of %s, or remove one of the two MemberClusters", o.Cluster, holder)})
		}
	}
	return out
}

// checkMember checks one member that shall get these works, with gates that run Jobs in some namespaces, and returns what it has seen of it.
func checkMember(ctx context.Context, name string, works []*work.Work, namespaces []string, cfg member.Config) ([]check, protocol.ClusterSeen) {
	clock := &clock{}
	cfg.Wrap = clock.wrap
	preview, seen, err := member.Peek(ctx, cfg)
	failed := func(err error, fix string) ([]check, protocol.ClusterSeen) {
		return []check{{"member", name, checkFail, err.Error(), fix}}, seen
	}
	var missing *member.ForbiddenError
	switch {
	case errors.As(err, &missing):
		return failed(err, grantPermissions(name))
	case err != nil:
		return failed(err, "check its kubeconfig and the network; gitfleet member join writes the kubeconfig")
	}
	defer preview.Close()
	lacking, err := preview.MissingPermissions(ctx, works, namespaces)
	if err != nil {
		return failed(fmt.Errorf("review its permissions: %w", err), "check that it answers in time")
	}
	if len(lacking) > 0 {
		return failed(errors.New("permissions are missing: "+strings.Join(lacking, "; ")), grantPermissions(name))
	}
	found := check{"member", name, checkOK, "reachable, Kubernetes " + seen.Properties["k8s.io/k8s-version"] + ", all permissions granted", ""}
	if skew, known := clock.skew(); known && skew.Abs() > tolerableSkew {
		found.State, found.Message = checkWarn, fmt.Sprintf("%s; its clock differs by %s from this machine's", found.Message, skew.Round(time.Second))
		found.Fix = synchronizeClocks
	}
	return append([]check{found}, expiryChecks("member", name, preview.Expiries(), time.Now())...), seen
}

// expiryChecks returns a check for each end of credentials or certificates. They count as due for renewal when the alert
// GitfleetMemberCredentialsExpire does.
func expiryChecks(what, subject string, all []connection.Expiry, now time.Time) (out []check) {
	for _, e := range all {
		found := check{what, subject, checkOK, fmt.Sprintf("its %s is valid until %s", e.What, e.Until.UTC().Format(time.DateOnly)), ""}
		switch {
		case !now.Before(e.Until):
			found.State, found.Message, found.Fix = checkFail, fmt.Sprintf("its %s has expired on %s", e.What, e.Until.UTC().Format(time.DateOnly)), renew
		case !now.Before(e.Due):
			found.State, found.Fix = checkWarn, renew
		}
		out = append(out, found)
	}
	return out
}

const renew = "replace it; it is read again when the file changes"

func grantPermissions(name string) string {
	return "grant them: gitfleet member join " + name + ", or gitfleet member rbac"
}

// A clock compares the clock of a server with that of this machine, at the first response.
type clock struct {
	mu         sync.Mutex
	found      bool
	difference time.Duration
}

func (c *clock) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		began := time.Now()
		resp, err := next.RoundTrip(r)
		if err == nil {
			c.compare(resp.Header.Get("Date"), began, time.Now())
		}
		return resp, err
	})
}

// compare compares a Date with the times of a request and its response.
func (c *clock) compare(date string, began, ended time.Time) {
	serverTime, err := http.ParseTime(date)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.found {
		return
	}
	c.found, c.difference = true, serverTime.Sub(began.Add(ended.Sub(began)/2))
}

func (c *clock) skew() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.difference, c.found
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
