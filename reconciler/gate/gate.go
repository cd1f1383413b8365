// Package gate asks what gates of staged runs wait for: a query to Prometheus, an answer over HTTP, objects on member clusters, or Jobs
// that run there.
//
// Asker.Set says what has to be asked from now on, and Run asks it at the interval of each gate and hands over the answers. Only servers
// of the configuration and the clusters of a stage are asked, a few questions at a time each, and time and size of an answer are limited,
// so that one that is slow or lies delays nothing but its own gates.
package gate

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/mask"
	"github.com/gitfleet/gitfleet/placement"
)

// Config configures an Asker.
type Config struct {
	Servers []Server
	// Getenv returns environment variables with secrets.
	Getenv func(string) string
	// Read reads the objects of a cluster, and returns nil for one that does not exist or is not gitfleet's.
	Read func(context.Context, placement.GateTarget) ([]*unstructured.Unstructured, error)
	// RunJob returns a Job as it is on a cluster, and creates it if it does not exist.
	RunJob func(ctx context.Context, cluster string, job *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Log    *slog.Logger
}

// An Asker asks gates.
type Asker struct {
	cfg     Config
	servers []*server
	changed chan struct{}
	// reads limits from how many clusters objects or Jobs are read at the same time.
	reads chan struct{}
	// timeout limits the time of one question.
	timeout time.Duration

	mu        sync.Mutex
	questions []placement.GateQuestion
	answer    func(placement.GateAnswer)
}

// New returns an Asker. Run starts it.
func New(cfg Config) *Asker {
	a := &Asker{cfg: cfg, changed: make(chan struct{}, 1), reads: make(chan struct{}, maxReads), timeout: requestTimeout}
	for _, s := range cfg.Servers {
		a.servers = append(a.servers, &server{s, make(chan struct{}, maxAtOnce)})
	}
	return a
}

// Set replaces what has to be asked, and what receives the answers, which never blocks. Set never blocks, either.
func (a *Asker) Set(questions []placement.GateQuestion, answer func(placement.GateAnswer)) {
	a.mu.Lock()
	a.questions, a.answer = questions, answer
	a.mu.Unlock()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Run asks until ctx is done, and has ended everything that it started by then.
func (a *Asker) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	asked := map[placement.GateRound]*asking{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
		}
		a.mu.Lock()
		questions, answer := a.questions, a.answer
		a.mu.Unlock()
		now := map[placement.GateRound]bool{}
		for _, q := range questions {
			now[q.GateRound] = true
			if one := asked[q.GateRound]; one != nil {
				one.question.Store(&q)
				continue
			}
			each, cancel := context.WithCancel(ctx)
			one := &asking{cancel: cancel}
			one.question.Store(&q)
			asked[q.GateRound] = one
			running.Go(func() { a.repeat(each, one, answer) })
		}
		for round, one := range asked {
			if !now[round] {
				one.cancel()
				delete(asked, round)
			}
		}
	}
}

// An asking is a question that is asked at its interval. The newest question of its round may have other objects.
type asking struct {
	question atomic.Pointer[placement.GateQuestion]
	cancel   context.CancelFunc
}

// repeat asks one question at its interval until ctx is done.
func (a *Asker) repeat(ctx context.Context, one *asking, receive func(placement.GateAnswer)) {
	q := one.question.Load()
	interval := q.Spec.Schedule().Every()
	timer := time.NewTimer(min(interval, max(0, time.Until(q.Last.Add(interval)))))
	defer timer.Stop()
	last := placement.GateVerdict("")
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		answer := a.ask(ctx, *one.question.Load())
		if ctx.Err() != nil {
			return
		}
		if answer.Verdict != last {
			a.cfg.Log.Info("gate answered", "placement", q.Placement.String(), "run", q.Run, "stage", q.Stage, "gate", q.Gate, "verdict", string(answer.Verdict), "answer", answer.Text)
		}
		last = answer.Verdict
		receive(answer)
		timer.Reset(interval)
	}
}

// ask asks once. What cannot be evaluated is unknown, and the text says why.
func (a *Asker) ask(ctx context.Context, q placement.GateQuestion) placement.GateAnswer {
	var answer placement.GateAnswer
	if q.Spec.Job != nil {
		answer = a.runJobs(ctx, q)
	} else {
		good, text, err := a.evaluate(ctx, q)
		switch {
		case err != nil:
			answer.Verdict, text = placement.GateUnknown, err.Error()
		case good:
			answer.Verdict = placement.GateGood
		default:
			answer.Verdict = placement.GateBad
		}
		answer.Text = text
	}
	answer.GateRound, answer.Text, answer.At = q.GateRound, mask.Line(answer.Text, longestText), time.Now()
	return answer
}

func (a *Asker) evaluate(ctx context.Context, q placement.GateQuestion) (good bool, text string, err error) {
	switch spec := q.Spec; {
	case spec.Prometheus != nil:
		return a.queryPrometheus(ctx, spec.Prometheus)
	case spec.HTTP != nil:
		return a.requestHTTP(ctx, spec.HTTP)
	case spec.Objects != nil:
		return a.lookAt(ctx, spec.Objects, q.Targets)
	}
	return false, "", errors.New("this version of gitfleet does not know what to ask")
}
