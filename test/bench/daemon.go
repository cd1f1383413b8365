package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/process"
)

// A daemon is the built binary, with a repository that is served over HTTP.
type daemon struct {
	dir     string // of its own; removed by close
	head    string // the commit with the files
	repo    *githttp.Repo
	git     *githttp.Server
	address string
	argv    []string
	running *process.Process
}

// newDaemon builds gitfleet, as make build does, and creates a repository with some files. The
// daemon runs after start. It has no members if kubeconfigs is empty.
func (b *runner) newDaemon(ctx context.Context, kubeconfigs, fleetName string, content map[string]string) (_ *daemon, err error) {
	binary := filepath.Join(b.root, "build", "gitfleet")
	if err := checkout.Build(ctx, b.root, []string{"CGO_ENABLED=0"}, binary, "-trimpath", "-ldflags=-s -w", "./cmd/gitfleet"); err != nil {
		return nil, err
	}
	dir, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	d := &daemon{dir: dir}
	root := filepath.Join(dir, "repositories")
	if d.repo, err = githttp.Create(filepath.Join(root, "hub.git")); err != nil {
		return nil, err
	}
	if d.head, err = d.repo.Change("main", githttp.Change{Files: content}); err != nil {
		return nil, err
	}
	if d.address, err = process.FreeAddress(); err != nil {
		return nil, err
	}
	if d.git, err = githttp.New(githttp.Config{Root: root}); err != nil {
		return nil, err
	}
	if kubeconfigs == "" {
		kubeconfigs = dir
	}
	d.argv = []string{
		binary, "run", "--url", d.git.URL("hub.git"), "--set", "source.allowHTTP=true", "--branch", "main", "--interval", "1s",
		"--state-dir", filepath.Join(dir, "state"), "--kubeconfig-dir", kubeconfigs, "--listen", d.address, "--fleet-name", fleetName,
	}
	return d, nil
}

func (d *daemon) log() string { return filepath.Join(d.dir, "daemon.log") }

func (d *daemon) start() error {
	log, err := os.OpenFile(d.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	d.running, err = process.Start(log, d.argv...)
	return err
}

func (d *daemon) stop() error {
	if d.running == nil {
		return nil
	}
	err := d.running.Stop()
	d.running = nil
	return err
}

func (d *daemon) close() error { return errors.Join(d.stop(), d.git.Close(), os.RemoveAll(d.dir)) }

// await waits for a report that satisfies ok.
func (d *daemon) await(ctx context.Context, what string, ok func(*status.Report) bool) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		if r, err := d.report(ctx); err == nil && ok(r) {
			return nil
		}
		select {
		case <-d.running.Ended():
			return d.failure(fmt.Sprintf("gitfleet ended: %v", d.running.Err()))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return d.failure("not " + what)
}

// applied waits until every placement has applied a commit.
func (d *daemon) applied(ctx context.Context, head string) error {
	return d.await(ctx, "applied at "+head, func(r *status.Report) bool {
		for _, p := range r.Details {
			for _, c := range p.Clusters {
				if !c.Applied || c.Commit != head {
					return false
				}
			}
		}
		return r.Source.InForce.Hash == head && len(r.Details) > 0 && len(r.Details[0].Clusters) > 0
	})
}

func (d *daemon) report(ctx context.Context) (*status.Report, error) {
	body, err := d.get(ctx, "/report")
	if err != nil {
		return nil, err
	}
	defer body.Body.Close()
	r := &status.Report{}
	return r, json.NewDecoder(body.Body).Decode(r)
}

func (d *daemon) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close()
		err = errors.New(response.Status)
	}
	return response, err
}

// gauge reads one metric without labels from the daemon.
func (d *daemon) gauge(ctx context.Context, name string) (float64, error) {
	values, err := d.gauges(ctx, name)
	if err != nil {
		return 0, err
	}
	return values[0], nil
}

// gauges reads some metrics in one request. For a summary it returns the count.
func (d *daemon) gauges(ctx context.Context, names ...string) ([]float64, error) {
	m, _, err := d.metrics(ctx)
	if err != nil {
		return nil, err
	}
	return m.values(names...)
}

// values returns some metrics without labels. For a summary it returns the count.
func (s scrape) values(names ...string) ([]float64, error) {
	var values []float64
	for _, name := range names {
		family := s[name]
		if family == nil || len(family.Metric) != 1 {
			return nil, fmt.Errorf("metrics: no %s", name)
		}
		m := family.Metric[0]
		values = append(values, m.GetGauge().GetValue()+m.GetCounter().GetValue()+float64(m.GetSummary().GetSampleCount()))
	}
	return values, nil
}

// A scrape has all metrics of the daemon.
type scrape map[string]*dto.MetricFamily

// metrics returns all metrics, and how long the response took. To parse it takes as long again in a process that simulates members.
func (d *daemon) metrics(ctx context.Context) (scrape, time.Duration, error) {
	asked := time.Now()
	response, err := d.get(ctx, "/metrics")
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	took := time.Since(asked)
	if err != nil {
		return nil, 0, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return nil, 0, fmt.Errorf("metrics: %w", err)
	}
	return families, took, nil
}

// sum adds up the gauges of a name whose label has a value.
func (s scrape) sum(name, label, value string) float64 {
	total := 0.0
	for _, m := range s[name].GetMetric() {
		if slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == value }) {
			total += m.GetGauge().GetValue()
		}
	}
	return total
}

// listTable requests all placements, as kubectl get crp does.
func (d *daemon) listTable(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+"/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements?limit=500", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// mebibytes returns the memory that the daemon has obtained from the operating system. The
// pages of its binary are not counted: how many of them are resident depends on the page cache,
// and they can be evicted.
func (d *daemon) mebibytes(ctx context.Context) (float64, error) {
	v, err := d.gauges(ctx, "go_memstats_sys_bytes", "go_memstats_heap_released_bytes")
	if err != nil {
		return 0, err
	}
	return (v[0] - v[1]) / (1 << 20), nil
}

// failure returns an error with the end of the daemon's log.
func (d *daemon) failure(what string) error {
	text, err := os.ReadFile(d.log())
	if err != nil {
		return errors.Join(errors.New(what), err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s; the end of its log:\n    %s", what, strings.Join(lines[max(0, len(lines)-20):], "\n    "))
}
