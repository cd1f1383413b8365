package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// runStages are the stages of the measured update run, with the numbers of their clusters. Half of a stage is updated at once.
var runStages = []struct {
	name     string
	clusters int
}{{"canary", 10}, {"region", 30}, {"rest", 60}}

// runTurns is how many runs are measured; the median counts.
const runTurns = 5

// updateRun measures a staged update run of the built binary on a hundred simulated members, on which everything is available as
// soon as it is applied. The baseline is a client that sends the changed object to the clusters of a stage in two halves, one after the
// other. The overhead of a stage is what it takes beyond that.
func updateRun(ctx context.Context, b *runner) (map[string]float64, error) {
	kubeconfigs, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	members := simulated.New(simulated.Options{})
	var stages [][]string
	for _, s := range runStages {
		var names []string
		for i := range s.clusters {
			names = append(names, members.Cluster(fmt.Sprintf("%s-%02d", s.name, i)).Name())
		}
		stages = append(stages, names)
	}
	if err := members.WriteKubeconfigs(kubeconfigs); err != nil {
		return nil, errors.Join(err, members.Close())
	}
	out := map[string]float64{}
	bare, err := bareStages(ctx, members, stages)
	if err == nil {
		err = b.updateRuns(ctx, kubeconfigs, stages, bare, out)
	}
	return out, errors.Join(err, members.Close())
}

// bareStages returns how long a bare client takes for the clusters of each stage.
func bareStages(ctx context.Context, members *simulated.Fleet, stages [][]string) ([]time.Duration, error) {
	list := marked(mix("bare", crowdObjects), "bare")
	var took []time.Duration
	for _, names := range stages {
		var clients []*bare
		for _, name := range names {
			config, err := members.Cluster(name).Listen()
			if err != nil {
				return nil, err
			}
			client, err := newBare(config)
			if err != nil {
				return nil, err
			}
			defer client.client.CloseIdleConnections()
			if err := client.apply(ctx, list[0]); err != nil { // opens the connection
				return nil, err
			}
			clients = append(clients, client)
		}
		began := time.Now()
		for _, half := range [][]*bare{clients[:len(clients)/2], clients[len(clients)/2:]} {
			if err := each(half, func(c *bare) error { return c.apply(ctx, list[1]) }); err != nil {
				return nil, err
			}
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// updateRuns has the built binary do some runs.
func (b *runner) updateRuns(ctx context.Context, kubeconfigs string, stages [][]string, bare []time.Duration, out map[string]float64) (err error) {
	const name = "run"
	d, err := b.newDaemon(ctx, kubeconfigs, name, runFiles(name, stages))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.start(); err != nil {
		return err
	}
	finished := func(r *status.Report, head string) *updaterun.Run {
		if len(r.Details) == 0 || r.Details[0].UpdateRun == nil {
			return nil
		}
		if u := r.Details[0].UpdateRun; u.Commit == head && !u.Finished.IsZero() {
			return u
		}
		return nil
	}
	if err := d.await(ctx, "updated by the first run", func(r *status.Report) bool { return finished(r, d.head) != nil }); err != nil {
		return err
	}
	var whole, slowest []float64
	for i := range runTurns {
		changed := configMap(name, 1, fmt.Sprint("run ", i))
		head, err := d.repo.Change("main", githttp.Change{Files: map[string]string{changed.file: changed.yaml}})
		if err != nil {
			return err
		}
		var run *updaterun.Run
		var began time.Time
		if err := d.await(ctx, "updated by run "+head, func(r *status.Report) bool {
			run, began = finished(r, head), r.Source.Since
			return run != nil
		}); err != nil {
			return err
		}
		overhead, from := 0.0, began
		for s, stage := range run.Stages {
			overhead, from = max(overhead, milliseconds(stage.Finished.Sub(from)-bare[s])), stage.Finished
		}
		whole, slowest = append(whole, milliseconds(run.Finished.Sub(began))), append(slowest, overhead)
	}
	out["ms"], out["overhead ms per stage"] = median(whole), median(slowest)
	for s, took := range bare {
		out["bare ms, "+runStages[s].name] = milliseconds(took)
	}
	return nil
}

// runFiles returns a repository in which every change of the content of a placement makes an update run.
func runFiles(name string, stages [][]string) map[string]string {
	out := map[string]string{}
	strategy := "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterStagedUpdateStrategy\nmetadata: {name: stages}\nspec:\n  stages:\n"
	for i, names := range stages {
		stage := runStages[i].name
		strategy += "  - {name: " + stage + ", maxConcurrency: 50%, labelSelector: {matchLabels: {stage: " + stage + "}}}\n"
		maps.Copy(out, files(name, names, mix(name, crowdObjects)))
		for _, member := range names {
			out["clusters/"+member+".yaml"] += "  labels: {stage: " + stage + "}\n"
		}
	}
	out["strategy.yaml"] = strategy
	out["placement.yaml"] = `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata:
  name: ` + name + `
  annotations: {gitfleet.dev/staged-update-strategy: stages}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: ` + name + `}
  policy: {placementType: PickAll}
  strategy: {type: External}
`
	return out
}
