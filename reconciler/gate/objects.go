package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
)

// A finding is what a gate has found on one cluster: bad is the first object that is not as it has to be, and err why nothing can be
// said; both are empty if all of its objects are good.
type finding struct {
	bad string
	err error
}

// lookAt reads the objects on each cluster of the stage, and compares them with the condition. One that is not as it has to be makes the
// answer bad, whatever cannot be told of others.
func (a *Asker) lookAt(ctx context.Context, g *api.ObjectsGate, targets []placement.GateTarget) (good bool, text string, err error) {
	condition, err := expression.CompileGate(g.Condition)
	if err != nil {
		return false, "", err
	}
	if len(targets) == 0 {
		return false, "", errors.New("the stage has no cluster with the placement")
	}
	found := make([]finding, len(targets))
	var running sync.WaitGroup
	for i, t := range targets {
		running.Go(func() { found[i] = a.lookAtCluster(ctx, g, condition, t) })
	}
	running.Wait()
	if i := slices.IndexFunc(found, func(f finding) bool { return f.bad != "" }); i >= 0 {
		return false, fmt.Sprintf("cluster %s: %s is not: %s", targets[i].Cluster, found[i].bad, g.Condition), nil
	}
	n := 0
	var unknown []int
	for i, t := range targets {
		if n += len(t.Objects); found[i].err != nil {
			unknown = append(unknown, i)
		}
	}
	switch len(unknown) {
	case 0:
		return true, fmt.Sprintf("objects: %d, clusters: %d; all are: %s", n, len(targets), g.Condition), nil
	case 1:
		return false, "", fmt.Errorf("cluster %s: %w", targets[unknown[0]].Cluster, found[unknown[0]].err)
	}
	return false, "", fmt.Errorf("cluster %s and %d more: %w", targets[unknown[0]].Cluster, len(unknown)-1, found[unknown[0]].err)
}

func (a *Asker) lookAtCluster(ctx context.Context, g *api.ObjectsGate, condition *expression.Expression, t placement.GateTarget) finding {
	switch n := len(t.Objects); {
	case t.Unknown != "":
		return finding{err: errors.New(t.Unknown)}
	case n == 0:
		return finding{err: fmt.Errorf("the placement has no such object there (%s, %s)", g.APIVersion, g.Text())}
	case n > maxObjects:
		return finding{err: fmt.Errorf("the placement has %d such objects there, more than %d; name one, or its namespace", n, maxObjects)}
	}
	select {
	case a.reads <- struct{}{}:
		defer func() { <-a.reads }()
	case <-ctx.Done():
		return finding{err: ctx.Err()}
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	live, err := a.cfg.Read(ctx, t)
	if err != nil {
		return finding{err: err}
	}
	var out finding
	for i, o := range t.Objects {
		holds, err := judgeObject(condition, o, live[i])
		switch {
		case err != nil && out.err == nil:
			out.err = fmt.Errorf("%s: %w", o.ID, err)
		case err == nil && !holds && out.bad == "":
			out.bad = o.ID.String()
		}
	}
	return out
}

// judgeObject says whether a condition is true of an object. It reads what Git says and what the cluster reports: what somebody else has
// set on the cluster beside that does not count.
func judgeObject(condition *expression.Expression, o *api.Object, live *unstructured.Unstructured) (bool, error) {
	switch {
	case live == nil:
		return false, errors.New("it is not there, or not gitfleet's")
	case live.GetDeletionTimestamp() != nil:
		return false, errors.New("it is being deleted")
	}
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	if seen, has, err := unstructured.NestedInt64(status, "observedGeneration"); err == nil && has && seen < live.GetGeneration() {
		return false, fmt.Errorf("its status is of generation %d, and the object of %d", seen, live.GetGeneration())
	}
	holds, err := condition.Holds(reported(o, live, status))
	if err != nil {
		return false, fmt.Errorf("the condition cannot be evaluated: %w", err)
	}
	return holds, nil
}

// reported is an object as Git says, with what only the cluster can say of it.
func reported(o *api.Object, live *unstructured.Unstructured, status map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(o.Content.Object)
	delete(out, "status")
	if status != nil {
		out["status"] = status
	}
	metadata, _ := out["metadata"].(map[string]any)
	for _, name := range []string{"generation", "creationTimestamp"} {
		if value, has, _ := unstructured.NestedFieldCopy(live.Object, "metadata", name); has {
			metadata[name] = value
		}
	}
	return out
}
