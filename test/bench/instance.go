package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// An instance is gitfleet without its command line, in this process, where requests and their
// times can be recorded: a real repository, the loop with its ledger on disk, and an agent for
// each member.
type instance struct {
	members []fleet.Member
	repo    *githttp.Repo
	git     *gitsource.Repo
	store   *timedStore
	sent    *requestLog
	cancel  context.CancelFunc
	ended   chan error

	mu     sync.Mutex
	report *status.Report
	at     time.Time            // of the report
	seen   map[string]time.Time // when a commit was passed to the loop
	news   chan struct{}
}

// newInstance creates a repository with some files below dir, and an instance of gitfleet that
// follows it. Nothing runs before run is called.
func newInstance(dir string, members []fleet.Member, content map[string]string) (*instance, error) {
	repo, err := githttp.Create(filepath.Join(dir, "hub.git"))
	if err != nil {
		return nil, err
	}
	if _, err := repo.Change("main", githttp.Change{Files: content}); err != nil {
		return nil, err
	}
	h := &instance{members: members, repo: repo, sent: &requestLog{}, seen: map[string]time.Time{}, news: make(chan struct{}, 1), ended: make(chan error, 1)}
	h.git, err = gitsource.Open(gitsource.Config{
		URL: repo.Dir, AllowFile: true, Ref: gitsource.Ref{Branch: "main"},
		Interval: time.Hour, Dir: filepath.Join(dir, "git"), // change notifies it of each commit
	})
	if err != nil {
		return nil, err
	}
	store, err := ledger.Open(filepath.Join(dir, "ledger"))
	if err != nil {
		return nil, errors.Join(err, h.git.Close())
	}
	h.store = &timedStore{Store: store}
	return h, nil
}

// run starts the loop. The caller must close the instance.
func (h *instance) run(fleetName string) {
	limit, arrivals := make(chan struct{}, 128), make(chan struct{}, 128)
	encoder := apply.NewEncoder(fleetName, h.git.Status().URL)
	loop := reconciler.New(reconciler.Config{
		Source: h, Loader: hub.NewLoader(hub.Options{}), Past: hub.NewLoader(hub.Options{}), Store: h.store,
		Member: func(c *hub.Cluster, report func(protocol.Observation)) reconciler.Member {
			return member.New(member.Config{
				Name: c.Name, Fleet: fleetName, Encoder: encoder, Report: report, Limit: limit, Arrivals: arrivals,
				Connect: func(context.Context) (*rest.Config, error) { return h.config(c.Name) },
				Log:     slog.New(slog.DiscardHandler),
				Wrap:    func(next http.RoundTripper) http.RoundTripper { return h.sent.record(next) },
			})
		},
		Publish: h.publish, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	go pprof.Do(ctx, pprof.Labels("work", "gitfleet"), func(ctx context.Context) { h.ended <- loop.Run(ctx) })
}

func (h *instance) config(name string) (*rest.Config, error) {
	for _, m := range h.members {
		if m.Name == name {
			return m.Config, nil
		}
	}
	return nil, fmt.Errorf("no cluster %s", name)
}

// close stops the loop and releases all resources.
func (h *instance) close() error {
	var err error
	if h.cancel != nil {
		h.cancel()
		err = <-h.ended
	}
	return errors.Join(err, h.store.Close(), h.git.Close())
}

// publish records a report and its time.
func (h *instance) publish(r *status.Report) {
	h.mu.Lock()
	h.report, h.at = r, time.Now()
	h.mu.Unlock()
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// change commits files, and notifies gitfleet.
func (h *instance) change(files map[string]string) (string, error) {
	hash, err := h.repo.Change("main", githttp.Change{Files: files})
	if err == nil {
		h.git.RequestPoll()
	}
	return hash, err
}

// applied waits until all members have applied a commit, and returns how long that took since
// the commit was detected. The commit must change something of every placement.
func (h *instance) applied(ctx context.Context, hash string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		h.mu.Lock()
		done, at, seen := h.holds(hash), h.at, h.seen[hash]
		h.mu.Unlock()
		if done {
			return at.Sub(seen), nil
		}
		select {
		case <-h.news:
		case err := <-h.ended:
			h.ended <- err
			return 0, fmt.Errorf("the loop ended: %w", err)
		case <-ctx.Done():
			return 0, fmt.Errorf("commit %s is not applied: %w", hash, ctx.Err())
		}
	}
}

// holds reports whether according to the newest report every member has applied a commit.
func (h *instance) holds(hash string) bool {
	if h.report == nil || h.report.Source.InForce.Hash != hash || len(h.report.Details) == 0 {
		return false
	}
	for d := range h.report.Each() {
		if len(d.Clusters) != len(h.members) {
			return false
		}
		for _, c := range d.Clusters {
			if c.Commit != hash || !c.Applied {
				return false
			}
		}
	}
	return true
}
