package placement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A RunGate is a gate after a stage, with its last answer.
type RunGate struct {
	Name string
	Spec api.RolloutGateSpec
	// Passed is when it passed, and Failed when it failed; zero if it has not. Since is when it last began to say Answer.
	Passed time.Time `json:",omitzero"`
	Failed time.Time `json:",omitzero"`
	Since  time.Time `json:",omitzero"`
	// Answer says why it passed or has not; empty if it has not been asked.
	Answer string `json:",omitempty"`
	// Asked is what is known of the answers of a server, in the present round.
	Asked GateAnswers `json:",omitzero"`
}

// Text names the gate and says what it has answered last.
func (g *RunGate) Text() string { return "the gate " + g.Name + ": " + g.Answer }

// A GateState is the state of a gate.
type GateState string

// The states. A gate is unknown as long as it cannot be evaluated.
const (
	GateStateWaiting GateState = "waiting"
	GateStateUnknown GateState = "unknown"
	GateStatePassed  GateState = "passed"
	GateStateFailed  GateState = "failed"
)

// State returns the state of the gate. It is meaningful once the clusters of the stage are updated.
func (g *RunGate) State() GateState {
	switch {
	case g.HasFailed():
		return GateStateFailed
	case !g.Passed.IsZero():
		return GateStatePassed
	case g.Asked.Verdict == GateUnknown, g.Spec.Soak == nil && g.Spec.Schedule() == nil:
		return GateStateUnknown
	}
	return GateStateWaiting
}

// HasFailed reports whether the gate has failed.
func (g RunGate) HasFailed() bool { return !g.Failed.IsZero() }

// Judge says what the answers mean: the text of the gate's answer, and whether it has passed or failed.
func (g *RunGate) Judge() (text string, passed, failed bool) {
	a, s := &g.Asked, g.Spec.Schedule()
	long := s.For()
	progress := ""
	if long > 0 {
		progress = fmt.Sprintf(", for %s of %s", duration.HumanDuration(a.GoodFor), duration.HumanDuration(long))
	}
	bad := ""
	if a.Bad > 0 {
		bad = fmt.Sprintf("; %d of %d tolerated failures", a.Bad, s.ToleratedFailures)
	}
	failures := "bad answers"
	if g.Spec.Job != nil {
		failures = "failed Jobs"
	}
	switch {
	case a.Bad > s.ToleratedFailures:
		return fmt.Sprintf("it has failed: %s; %s: %d, tolerated: %d", a.Text, failures, a.Bad, s.ToleratedFailures), false, true
	case a.Verdict == "":
		return "it has not been answered yet", false, false
	case a.Verdict == GateUnknown:
		return fmt.Sprintf("cannot be evaluated since %s: %s", a.At.UTC().Format(time.RFC3339), a.Text), false, false
	case a.Verdict == GateGood && a.GoodFor >= long:
		return a.Text + progress, true, false
	}
	return a.Text + progress + bad, false, false
}

// Reset forgets the answers, so that the gate is asked from the beginning. A Job that has completed is not run again for the content.
func (g *RunGate) Reset() {
	g.Passed, g.Failed, g.Asked = time.Time{}, time.Time{}, GateAnswers{Jobs: g.Asked.Jobs}
}

// JobOn returns how the Jobs of the gate have ended on a cluster.
func (g *RunGate) JobOn(cluster string) GateJob {
	if i, found := g.Asked.jobOn(cluster); found {
		return g.Asked.Jobs[i]
	}
	return GateJob{Cluster: cluster}
}

// A GateVerdict is what an answer means for a gate.
type GateVerdict string

// The verdicts. An answer that cannot be evaluated is neither good nor bad: it lets a gate neither pass nor fail. GateWaiting does not
// either: a Job has not ended yet.
const (
	GateGood    GateVerdict = "Good"
	GateBad     GateVerdict = "Bad"
	GateUnknown GateVerdict = "Unknown"
	GateWaiting GateVerdict = "Waiting"
)

// GateAnswers are the answers of a server that a gate has got, as far as they matter.
type GateAnswers struct {
	// Verdict is that of the last answer, Text says why, and At is when it was given; of several unknown or waiting answers in a row,
	// when the first one was. All are empty if there was none.
	Verdict GateVerdict `json:",omitempty"`
	Text    string      `json:",omitempty"`
	At      time.Time   `json:",omitzero"`
	// GoodFor is for how long answers have been good. The time between two of them counts if nothing is missing in between.
	GoodFor time.Duration `json:"Held,omitempty"`
	// Bad is how many answers were bad; of a gate that runs a Job, how many Jobs have failed.
	Bad int `json:",omitempty"`
	// Jobs has the results of the gate's Jobs by cluster. They are kept until the run ends. The slice is immutable.
	Jobs []GateJob `json:",omitempty"`
}

// A GateJob records the results of the Jobs of a gate on one cluster.
type GateJob struct {
	Cluster string
	// Failed is the number of failed Jobs. The name of the next Job depends on it.
	Failed int `json:",omitempty"`
	// Completed reports whether a Job has completed. No other one is run after that.
	Completed bool `json:",omitempty"`
}

// add adds an answer, of which there is one at every interval.
func (g *GateAnswers) add(a GateAnswer, interval time.Duration) bool {
	before := *g
	g.Verdict, g.Text, g.At = a.Verdict, a.Text, a.At
	ended := g.addJobs(a.Jobs)
	switch a.Verdict {
	case GateBad:
		if a.Jobs == nil {
			g.Bad++
		}
	case GateGood:
		// What happened between two answers that are further apart is not known, such as while gitfleet was not running.
		if gap := a.At.Sub(before.At); before.Verdict == GateGood && gap > 0 && gap <= 2*interval {
			g.GoodFor += gap
		}
	default:
		if a.Verdict != GateWaiting {
			g.Verdict = GateUnknown
		}
		if g.Verdict == before.Verdict {
			g.At = before.At
		}
		return ended || g.Verdict != before.Verdict || g.Text != before.Text
	}
	return true
}

// addJobs records how Jobs have ended, and reports whether that was not known of one. What was known before stays so, since an answer may
// be to an earlier question.
func (g *GateAnswers) addJobs(jobs []GateJob) (ended bool) {
	g.Jobs = slices.Clone(g.Jobs)
	for _, j := range jobs {
		i, found := g.jobOn(j.Cluster)
		if !found {
			g.Jobs = slices.Insert(g.Jobs, i, GateJob{Cluster: j.Cluster})
		}
		known := &g.Jobs[i]
		if j.Failed > known.Failed {
			g.Bad += j.Failed - known.Failed
			known.Failed, ended = j.Failed, true
		}
		if j.Completed && !known.Completed {
			known.Completed, ended = true, true
		}
	}
	return ended
}

// jobOn is where in Jobs a cluster is, or belongs.
func (g *GateAnswers) jobOn(cluster string) (i int, found bool) {
	return slices.BinarySearchFunc(g.Jobs, cluster, func(j GateJob, cluster string) int { return strings.Compare(j.Cluster, cluster) })
}

// A GateRound identifies what a gate is asked about: the clusters of a stage that have had the content of a run since a time. An
// answer counts for no other one.
type GateRound struct {
	Placement        api.PlacementKey
	Run, Stage, Gate string
	// Content is the fingerprint of the content.
	Content string
	// Updated is when the clusters were available, in Unix nanoseconds.
	Updated int64
}

// A GateQuestion is a gate that has to be asked now and again.
type GateQuestion struct {
	GateRound
	Spec *api.RolloutGateSpec
	// Fleet is the ID of the fleet.
	Fleet string
	// Targets are the clusters of the stage, if the gate looks at objects or runs a Job there.
	Targets []GateTarget
	// Last is when it was answered last; zero if it has to be asked at once.
	Last time.Time
}

// A GateTarget is a cluster of a stage with the objects of the placement that a gate looks at there, as they are in Git. They are shared
// and must not be changed.
type GateTarget struct {
	// Cluster is its name, and Context the kubeconfig context that its manifest names.
	Cluster, Context string
	Objects          []*api.Object
	// Unknown is why nothing can be said of the cluster, such as that one of the objects has been changed there; empty if nothing speaks
	// against it.
	Unknown string
	// Job has the results of the Jobs of the gate on the cluster.
	Job GateJob
}

// Job returns the Job to run on a cluster. Its name is a hash of the run, stage, gate, content and the number of failed Jobs, so every process
// derives the same name and no Job is run twice.
func (q *GateQuestion) Job(t GateTarget) *unstructured.Unstructured {
	g, o := q.Spec.Job, &unstructured.Unstructured{}
	_ = json.Unmarshal(g.Template, &o.Object) // validated when it was loaded
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, o.GetLabels())
	maps.Copy(annotations, o.GetAnnotations())
	labels[api.RolloutGateLabel] = q.Gate
	annotations[api.FleetIDAnnotation], annotations[api.PlacementAnnotation], annotations[api.RunAnnotation] = q.Fleet, q.Placement.String(), q.Run
	o.SetAPIVersion("batch/v1")
	o.SetKind("Job")
	o.SetNamespace(g.Namespace)
	o.SetName(q.jobName(t.Job.Failed))
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	for field, d := range map[string]time.Duration{"activeDeadlineSeconds": g.Deadline(), "ttlSecondsAfterFinished": jobKept} {
		_ = unstructured.SetNestedField(o.Object, int64(d/time.Second), "spec", field) // validated when it was loaded
	}
	return o
}

// jobKept is how long a finished Job is kept. If it is deleted before gitfleet has seen the result, it is run again.
const jobKept = 24 * time.Hour

// jobName is the name of the Job of a gate after some have failed.
func (q *GateQuestion) jobName(failed int) string {
	const longest = 40 // Pods of a Job are named after it
	prefix := strings.ReplaceAll(q.Gate, ".", "-")
	prefix = strings.TrimRight(prefix[:min(len(prefix), longest)], "-")
	what, _ := json.Marshal([]any{q.Fleet, q.Placement.String(), q.Run, q.Stage, q.Gate, q.Content, failed})
	sum := sha256.Sum256(what)
	return prefix + "-" + hex.EncodeToString(sum[:5])
}

// A GateAnswer is one answer. Its text has no secrets.
type GateAnswer struct {
	GateRound
	Verdict GateVerdict
	Text    string
	At      time.Time
	// Jobs are the results of the Jobs on the clusters of the question, if the gate runs any.
	Jobs []GateJob
}
