package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/test/process"
)

// daemonAddress is the default address of gitfleet and of its command line.
const daemonAddress = "127.0.0.1:8085"

// A daemon is the running gitfleet binary.
type daemon struct {
	*process.Process
	address string
	log     string
}

const configuration = `# What the demo runs gitfleet with: gitfleet run --config %[1]s
stateDir: %[2]s
listen: %[3]s
source:
  url: %[4]s
  branch: %[5]s
  interval: 1s    # between two looks at the repository; the default is 30s
  allowHTTP: true # the Git server is on this machine
members:
  kubeconfigDir: %[6]s # a file NAME.kubeconfig for each MemberCluster
rollout:
  podFailureTimeout: 5s # how long a pod may fail to start; the default is 30s
%[7]s`

// startDaemon runs gitfleet and waits until every placement is applied, except the one that waits for an approval.
func (d *demo) startDaemon(ctx context.Context) (string, error) {
	address, err := free(daemonAddress)
	if err != nil {
		return "", err
	}
	config := d.file("gitfleet.yaml")
	text := fmt.Sprintf(configuration, d.short(config), quote(d.file("state")), address, d.repository.url, branch, quote(d.kubeconfigs()), d.forgeSettings())
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return "", err
	}
	log, err := os.Create(d.file("gitfleet.log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	running, err := process.Start(log, d.binary, "run", "--config", config)
	if err != nil {
		return "", err
	}
	d.daemon = &daemon{Process: running, address: address, log: log.Name()}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if _, err := d.await(ctx, "Applied", stagedPlacement); err != nil {
		return "", err
	}
	return "at commit " + d.repository.head[:8], nil
}

// awaitAvailable gives up after a while without an error: a workload that was broken in Git
// is not a failure of the demo.
func (d *demo) awaitAvailable(ctx context.Context) (string, error) {
	patient, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var left []string
	if !d.repository.created {
		left = append(left, stagedPlacement) // its run may wait for an approval
	}
	missing, err := d.await(patient, "Available", left...)
	if ctx.Err() == nil && patient.Err() != nil {
		return "not yet: " + strings.Join(missing, ", "), nil
	}
	return "", err
}

// A report is the part of the daemon's report that the demo needs.
type report struct {
	Source struct {
		Newest, InForce struct{ Hash string }
		Problems        []json.RawMessage
		LoadError       string
	}
	Placements, ResourcePlacements []placement
}

type placement struct {
	Kind     string
	Metadata struct{ Name string }
	Status   struct {
		Conditions []struct{ Type, Status, Message string }
	}
}

// await waits until a condition is true for every placement at the head of the repository, except some, and
// returns those for which it is not.
func (d *demo) await(ctx context.Context, condition string, but ...string) (missing []string, err error) {
	after := ""
	for {
		r, number, err := d.daemon.report(ctx, after)
		if err == nil && r.Source.InForce.Hash == d.repository.head {
			if missing = r.missing(condition, but...); len(missing) == 0 {
				return nil, nil
			}
		}
		if err == nil && r.Source.Newest.Hash == d.repository.head && len(r.Source.Problems) > 0 {
			return missing, d.daemon.failure("the commit is refused")
		}
		after = number
		select {
		case <-d.daemon.Ended():
			return missing, d.daemon.failure(fmt.Sprintf("gitfleet ended: %v", d.daemon.Err()))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return missing, ctx.Err()
			}
			return missing, d.daemon.failure("it takes too long; not there: " + strings.Join(missing, ", "))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// missing names the placements for which a condition is not true, except some. A report without placements
// does not belong to the repository.
func (r report) missing(condition string, but ...string) []string {
	var names []string
	all := append(r.Placements, r.ResourcePlacements...)
	if len(all) == 0 {
		return []string{"every placement"}
	}
	for _, p := range all {
		if !p.has(condition) && !slices.Contains(but, p.Metadata.Name) {
			names = append(names, p.Metadata.Name)
		}
	}
	return names
}

// has reports whether a condition is true; its type begins with the kind:
// ClusterResourcePlacementApplied.
func (p placement) has(condition string) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == p.Kind+condition {
			return c.Status == "True"
		}
	}
	return false
}

// report requests the newest report, or waits a while for one newer than after.
func (d *daemon) report(ctx context.Context, after string) (report, string, error) {
	var r report
	url := "http://" + d.address + "/report"
	if after != "" {
		url += "?after=" + after
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return r, after, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return r, after, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return r, after, errors.New(response.Status)
	}
	return r, response.Header.Get("Gitfleet-Report"), json.NewDecoder(response.Body).Decode(&r)
}

// failure returns an error with the end of the daemon's log.
func (d *daemon) failure(what string) error {
	const most = 20
	text, err := os.ReadFile(d.log)
	if err != nil {
		return fmt.Errorf("%s; its log cannot be read: %w", what, err)
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s; the end of its log:\n    %s", what, strings.Join(all[max(0, len(all)-most):], "\n    "))
}

func (d *daemon) stop() error {
	select {
	case <-d.Ended():
		return nil // already reported
	default:
		return d.Stop()
	}
}

// gitfleet runs the command line against the demo's daemon.
func (d *demo) gitfleet(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, d.binary, args...)
	command.Env = append(os.Environ(), "GITFLEET_SERVER=http://"+d.daemon.address)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gitfleet %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// quote returns a path as a YAML string.
func quote(path string) string {
	text, _ := json.Marshal(path) // a string can always be encoded
	return string(text)
}
