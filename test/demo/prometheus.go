package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/process"
)

// prometheusAddress is the address of Prometheus, unless it is in use.
const prometheusAddress = "127.0.0.1:9090"

// A prometheus is a running Prometheus that scrapes the demo's daemon, with the alerts of
// deploy.
type prometheus struct {
	*process.Process
	url        string
	dashboards string // the URL of the pages that draw its data
	promtool   string // the path of promtool
}

// startPrometheus runs Prometheus with the configuration and the alerts of deploy, and waits
// until it is ready.
func (d *demo) startPrometheus(ctx context.Context) (string, error) {
	program, promtool, err := checkout.Prometheus(ctx)
	if err != nil {
		return "", err
	}
	address, err := free(prometheusAddress)
	if err != nil {
		return "", err
	}
	deployed := filepath.Join(d.root, "deploy", "prometheus")
	text, err := os.ReadFile(filepath.Join(deployed, "prometheus.yaml"))
	if err != nil {
		return "", err
	}
	set := strings.NewReplacer(daemonAddress, d.daemon.address, "15s", "1s", "- rules.yaml", "- "+quote(filepath.Join(deployed, "rules.yaml")))
	config := d.file("prometheus.yaml")
	if err := os.WriteFile(config, []byte(set.Replace(string(text))), 0o644); err != nil {
		return "", err
	}
	log, err := os.Create(d.file("prometheus.log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	running, err := process.Start(log, program, "--config.file="+config, "--storage.tsdb.path="+d.file("prometheus"), "--web.listen-address="+address)
	if err != nil {
		return "", err
	}
	d.prometheus = &prometheus{Process: running, url: "http://" + address, promtool: promtool}
	if err := d.prometheus.await(ctx, log.Name()); err != nil {
		return "", err
	}
	if d.dashboards, d.prometheus.dashboards, err = d.serveDashboards(); err != nil {
		return "", err
	}
	return d.prometheus.url, nil
}

// await waits until Prometheus is ready.
func (p *prometheus) await(ctx context.Context, log string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/-/ready", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.Ended():
			return fmt.Errorf("the Prometheus server ended: %w; its log is %s", p.Err(), log)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("wait for Prometheus at %s, whose log is %s", p.url, log), ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// queries are the example queries that the demo prints.
var queries = []string{
	`sum by (placement, state) (gitfleet_placement_clusters) > 0`,
	`max by (cluster) (gitfleet_member_lag_seconds)`,
	`sum by (stage) (gitfleet_propagation_duration_seconds_sum) / sum by (stage) (gitfleet_propagation_duration_seconds_count)`,
}

// prometheusTour says what there is to see with Prometheus.
func (d *demo) prometheusTour() []string {
	lines := []string{
		"", d.paint(bold, "Watch a rollout on the dashboards") + ", which need no Grafana here:", "",
		"    " + d.prometheus.dashboards, "",
		"Prometheus is at " + d.prometheus.url + ", as a data source for your Grafana",
		"(dashboards in deploy/grafana); it has no web pages of its own. Queries to try:", "",
	}
	for _, q := range queries {
		lines = append(lines, "    "+shell(d.short(d.prometheus.promtool))+" query instant "+d.prometheus.url+" "+shell(q))
	}
	return lines
}
