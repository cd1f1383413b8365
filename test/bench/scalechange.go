package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/test/githttp"
)

// crowdChange is the ConfigMap of the first placement with other content.
func crowdChange(i int) object { return configMap(crowd{}.placement(0), 1, fmt.Sprint("change ", i)) }

// A lastWrite counts the writes of the ConfigMap that crowdChange changes, and has the time of the last one.
type lastWrite struct {
	mu    sync.Mutex
	count int
	at    time.Time
}

func (w *lastWrite) wrote(_, namespace, name string) {
	if namespace != (crowd{}).placement(0) || name != crowdChange(0).name {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.at = w.count+1, time.Now()
}

func (w *lastWrite) last() (count int, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.at
}

// change measures commits that change one object on all members, from when they are detected to when the last member has the change.
// The members are connected, and have everything else.
func (c crowd) change(ctx context.Context, d *daemon, w *lastWrite, out map[string]float64) error {
	if c.changes == 0 || out["missing"] > 0 {
		return nil
	}
	var took []float64
	for i := range c.changes {
		before, _ := w.last()
		changed := crowdChange(i)
		path := c.placement(0) + "/" + changed.file
		head, err := d.repo.Change("main", githttp.Change{Files: map[string]string{path: changed.yaml}})
		if err != nil {
			return err
		}
		at, err := w.wait(ctx, before+c.members)
		if err != nil {
			return d.failure(fmt.Sprintf("change %d: %v", i, err))
		}
		detected, err := d.detected(head)
		if err != nil {
			return err
		}
		took = append(took, milliseconds(at.Sub(detected)))
		if err := wait(ctx, 3*time.Second); err != nil { // the reports of the members do not belong to the next change
			return err
		}
	}
	out["change ms"], out["change budget ms"] = median(took), 1.3*out["bare change ms"]+200
	return nil
}

// wait waits until an object was written so often, and returns the time of the last write.
func (w *lastWrite) wait(ctx context.Context, count int) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if n, at := w.last(); n >= count {
			return at, nil
		}
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			n, _ := w.last()
			return time.Time{}, fmt.Errorf("%d of %d writes: %w", n, count, err)
		}
	}
}

// detected returns when the daemon has detected a commit that is in force, from its log.
func (d *daemon) detected(commit string) (time.Time, error) {
	text, err := os.ReadFile(d.log())
	if err != nil {
		return time.Time{}, err
	}
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(`msg="commit in force" commit=`+commit)) {
			continue
		}
		var at, took string
		for field := range bytes.FieldsSeq(line) {
			if value, found := bytes.CutPrefix(field, []byte("time=")); found {
				at = string(value)
			}
			if value, found := bytes.CutPrefix(field, []byte("took=")); found {
				took = string(value)
			}
		}
		inForce, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return time.Time{}, err
		}
		loading, err := time.ParseDuration(took)
		return inForce.Add(-loading), err
	}
	return time.Time{}, errors.New("the log does not say that commit " + commit + " is in force")
}
