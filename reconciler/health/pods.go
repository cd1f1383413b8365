package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Pod is as much of a Pod, read from JSON, as says why it does not work.
type Pod struct {
	Metadata struct {
		Name, DeletionTimestamp string
		CreationTimestamp       time.Time
		Labels                  map[string]string
	}
	Status struct {
		Phase, Reason, Message                   string
		Conditions                               []struct{ Type, Status, Reason, Message string }
		InitContainerStatuses, ContainerStatuses []containerStatus
	}
}

type containerStatus struct {
	Name             string
	Ready            bool
	RestartCount     int
	State, LastState struct {
		Waiting    *struct{ Reason, Message string }
		Running    *struct{}
		Terminated *termination
	}
}

// A termination has a message as well, which the container wrote: it may be
// anything, and is not told.
type termination struct {
	ExitCode int
	Reason   string
}

// A Diagnosis is what the pods of one workload say of why it is not available.
type Diagnosis struct {
	// Why is the plainest reason, with the name of the pod; empty if none tells
	// of any.
	Why string
	// Start is whether the pods of the newest template get started.
	Start Start
}

// A Start is how the start of pods goes.
type Start int

// The ways a start can go.
const (
	// Starting means that no pod reports a reason why it cannot start.
	Starting Start = iota
	// Restarted: a container has ended before, and runs again without being ready.
	// That ends no time of not starting, and begins none.
	Restarted
	// NotStarting: the kubelet cannot start a container, or has to start it again
	// and again.
	NotStarting
)

// Diagnose finds out why a workload does not work: first from the pods of its
// newest template, since those of an older one are on their way out. Pods that
// are being deleted are passed over.
func Diagnose(pods []Pod) Diagnosis {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Metadata.DeletionTimestamp != "" })
	slices.SortFunc(pods, func(a, b Pod) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	newest := newestTemplate(pods)
	d := Diagnosis{Why: cmp.Or(why(newest), why(pods))}
	for _, p := range newest {
		d.Start = max(d.Start, p.start())
	}
	return d
}

// templateLabels are those by which controllers tell pods of two templates apart.
var templateLabels = []string{"pod-template-hash", "controller-revision-hash"}

// newestTemplate returns the pods that are of the same template as the one that
// was created last.
func newestTemplate(pods []Pod) []Pod {
	if len(pods) == 0 {
		return nil
	}
	last := slices.MaxFunc(pods, func(a, b Pod) int { return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp) })
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool {
		return slices.ContainsFunc(templateLabels, func(label string) bool { return p.Metadata.Labels[label] != last.Metadata.Labels[label] })
	})
}

// start is how the start of one pod goes. A pod that failed as a whole, one that
// was evicted say, is replaced by another.
func (p *Pod) start() Start {
	if p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" {
		return Starting
	}
	s := Starting
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case refused(c) != "" || ended(c) != "":
			return NotStarting
		case c.State.Running != nil && !c.Ready && c.RestartCount > 0:
			s = Restarted
		}
	}
	return s
}

// why is the plainest reason that any of the pods has not to work; empty if none
// tells of any.
func why(pods []Pod) string {
	for _, hindered := range hindrances {
		for _, p := range pods {
			if why := hindered(p); why != "" {
				return "pod " + p.Metadata.Name + why
			}
		}
	}
	return ""
}

// hindrances are what may keep a pod from working, the plainest first.
var hindrances = []func(Pod) string{
	inContainers(refused), unscheduled, inContainers(ended), failed, inContainers(unready), inContainers(starting),
}

func inContainers(hindered func(containerStatus) string) func(Pod) string {
	return func(p Pod) string {
		if p.Status.Phase == "Succeeded" {
			return ""
		}
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if why := hindered(c); why != "" {
				return ", container " + c.Name + ": " + why
			}
		}
		return ""
	}
}

// refused says that a container is not started, and why not.
func refused(c containerStatus) string {
	w := c.State.Waiting
	if w == nil || w.Reason == "" || isStarting(w.Reason) {
		return ""
	}
	if t := c.LastState.Terminated; t != nil && w.Reason == "CrashLoopBackOff" {
		return w.Reason + t.code()
	}
	return with(w.Reason, w.Message)
}

// ended says that a container has ended as it should not have.
func ended(c containerStatus) string {
	t := c.State.Terminated
	if t == nil || t.ExitCode == 0 {
		return ""
	}
	return "Terminated" + t.code()
}

// code is the exit code, and the reason if it says more than that.
func (t *termination) code() string {
	if t.Reason == "" || t.Reason == "Error" || t.Reason == "Completed" {
		return fmt.Sprintf(" (exit code %d)", t.ExitCode)
	}
	return fmt.Sprintf(" (exit code %d, %s)", t.ExitCode, t.Reason)
}

func unready(c containerStatus) string {
	switch {
	case c.State.Running == nil || c.Ready:
		return ""
	case c.RestartCount > 0:
		return fmt.Sprintf("running, but not ready (restarted %d times)", c.RestartCount)
	}
	return "running, but not ready"
}

func starting(c containerStatus) string {
	if w := c.State.Waiting; w != nil && isStarting(w.Reason) {
		return w.Reason
	}
	return ""
}

func isStarting(reason string) bool {
	return reason == "ContainerCreating" || reason == "PodInitializing"
}

func unscheduled(p Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return ": " + with("Pending", cmp.Or(c.Message, c.Reason))
		}
	}
	return ""
}

func failed(p Pod) string {
	if p.Status.Phase != "Failed" {
		return ""
	}
	return ": " + with(cmp.Or(p.Status.Reason, p.Status.Phase), p.Status.Message)
}

const (
	// mostWords is how much is told of what a kubelet, a scheduler or a controller has
	// to say, in bytes: it is read in a line of a status.
	mostWords = 400
	// keptWords is how much of it is kept until then.
	keptWords = 4 << 10
)

// Brief cuts what others have said to what fits a line of a status. What a text may
// quote of Secrets is to be masked before: half of one would not be found.
func Brief(text string) string { return cut(text, mostWords) }

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// with is a reason, and on the same line what was said of it.
func with(reason, message string) string {
	message = cut(strings.Join(strings.Fields(message), " "), keptWords)
	return strings.TrimSuffix(reason+": "+message, ": ")
}
