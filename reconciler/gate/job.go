package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// A jobFinding is the state of the Job of a gate on one cluster.
type jobFinding struct {
	verdict placement.GateVerdict
	text    string
}

// runJobs runs the Job of a gate on the clusters of the question where it has not completed yet, and returns their combined answer. It is
// bad if any Job has failed, even if the state of other Jobs is unknown.
func (a *Asker) runJobs(ctx context.Context, q placement.GateQuestion) placement.GateAnswer {
	if len(q.Targets) == 0 {
		return placement.GateAnswer{Verdict: placement.GateUnknown, Text: "the stage has no cluster with the placement"}
	}
	found := make([]jobFinding, len(q.Targets))
	var running sync.WaitGroup
	for i, t := range q.Targets {
		running.Go(func() { found[i] = a.runJob(ctx, q, t) })
	}
	running.Wait()
	answer := placement.GateAnswer{}
	completed := 0
	for i, t := range q.Targets {
		job := t.Job
		switch found[i].verdict {
		case placement.GateGood:
			job.Completed = true
			completed++
		case placement.GateBad:
			job.Failed++
		}
		answer.Jobs = append(answer.Jobs, job)
	}
	sum := fmt.Sprintf("Jobs completed: %d of %d", completed, len(q.Targets))
	answer.Verdict, answer.Text = placement.GateGood, sum
	for _, verdict := range []placement.GateVerdict{placement.GateBad, placement.GateUnknown, placement.GateWaiting} {
		if i := slices.IndexFunc(found, func(f jobFinding) bool { return f.verdict == verdict }); i >= 0 {
			answer.Verdict, answer.Text = verdict, fmt.Sprintf("cluster %s: %s; %s", q.Targets[i].Cluster, found[i].text, sum)
			break
		}
	}
	return answer
}

func (a *Asker) runJob(ctx context.Context, q placement.GateQuestion, t placement.GateTarget) jobFinding {
	unknown := func(err error) jobFinding { return jobFinding{placement.GateUnknown, err.Error()} }
	switch {
	case t.Job.Completed:
		return jobFinding{verdict: placement.GateGood}
	case t.Unknown != "":
		return unknown(errors.New(t.Unknown))
	}
	select {
	case a.reads <- struct{}{}:
		defer func() { <-a.reads }()
	case <-ctx.Done():
		return unknown(ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	job, err := a.cfg.RunJob(ctx, t.Cluster, q.Job(t))
	if err != nil {
		return unknown(err)
	}
	return judgeJob(job)
}

// judgeJob returns the verdict on a Job according to the status that its controller has set.
func judgeJob(job *unstructured.Unstructured) jobFinding {
	name := "the Job " + job.GetNamespace() + "/" + job.GetName()
	started, _, _ := unstructured.NestedString(job.Object, "status", "startTime")
	suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	switch failed := health.TrueCondition(job, "Failed"); {
	case job.GetDeletionTimestamp() != nil:
		return jobFinding{placement.GateWaiting, name + " is being deleted, and is created again then"}
	case failed != nil:
		reason, _ := failed["reason"].(string)
		message, _ := failed["message"].(string)
		return jobFinding{placement.GateBad, strings.TrimRight(fmt.Sprintf("%s has failed: %s: %s", name, reason, message), ": ")}
	case health.TrueCondition(job, "Complete") != nil:
		return jobFinding{placement.GateGood, name + " has completed"}
	case suspended:
		return jobFinding{placement.GateWaiting, name + " is suspended"}
	case started == "":
		return jobFinding{placement.GateWaiting, name + " has not started yet"}
	}
	return jobFinding{placement.GateWaiting, name + " runs since " + started}
}
