package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Pod has the fields of a Pod that say why it does not run.
type Pod struct {
	Metadata struct {
		Name, DeletionTimestamp string
		CreationTimestamp       time.Time
		Labels                  map[string]string
	}
	Spec struct {
		Volumes []struct {
			Name                  string
			PersistentVolumeClaim *struct{ ClaimName string }
			Ephemeral             *struct{}
		}
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

// A termination also has a message, which is not shown: the container wrote it, so that it may
// contain anything.
type termination struct {
	ExitCode int
	Reason   string
}

// A Diagnosis is the reason why a workload is not available, according to its pods.
type Diagnosis struct {
	// Why is the most specific reason, with the name of the Pod; empty if there is none.
	Why, Pod string
	// Start is the start state of the pods of the newest template.
	Start Start
	// Blocked says that Why is what keeps a pod from starting for the first time.
	Blocked bool
	// Pending says that there is no pod, or one that has not started.
	Pending bool
	// Waiting is the pod of Why if that is vague, since it waits for a node or for volumes: its
	// events and its claims may say more. Otherwise nil.
	Waiting *Pod
	// Newest is when the newest pod was created; zero if there is none.
	Newest time.Time
}

// A Start is the start state of pods.
type Start int

// The start states of pods.
const (
	// Starting means that no pod reports a reason why it cannot start.
	Starting Start = iota
	// Restarted means that a container has ended before, and now runs without being ready. The
	// earlier state continues to hold.
	Restarted
	// NotStarting means that the kubelet cannot start a container, or keeps restarting it.
	NotStarting
)

// Diagnose returns why a workload is not available. It prefers the pods of the newest template,
// since older ones are being replaced, and ignores pods that are being deleted.
func Diagnose(pods []Pod) Diagnosis {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Metadata.DeletionTimestamp != "" })
	slices.SortFunc(pods, func(a, b Pod) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	newest := newestTemplate(pods)
	d := diagnose(newest)
	if d.Why == "" {
		d = diagnose(pods)
	}
	d.Pending = len(pods) == 0
	for _, p := range newest {
		d.Start = max(d.Start, p.start())
	}
	for _, p := range pods {
		d.Pending = d.Pending || p.Status.Phase == "Pending"
		if p.Metadata.CreationTimestamp.After(d.Newest) {
			d.Newest = p.Metadata.CreationTimestamp
		}
	}
	return d
}

// Claims returns the names of the PersistentVolumeClaims that the pod uses, in order.
func (p *Pod) Claims() (names []string) {
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, p.Metadata.Name+"-"+v.Name)
		}
	}
	return names
}

// Unscheduled reports whether the scheduler has found no node for the pod.
func (p *Pod) Unscheduled() bool { return unscheduled(*p) != "" }

// templateLabels are the labels by which controllers distinguish pod templates.
var templateLabels = []string{"pod-template-hash", "controller-revision-hash"}

// newestTemplate returns the pods with the same template as the newest pod.
func newestTemplate(pods []Pod) []Pod {
	if len(pods) == 0 {
		return nil
	}
	last := slices.MaxFunc(pods, func(a, b Pod) int { return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp) })
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool {
		return slices.ContainsFunc(templateLabels, func(label string) bool { return p.Metadata.Labels[label] != last.Metadata.Labels[label] })
	})
}

// start returns the start state of one pod. A pod that failed as a whole, such as an evicted
// one, is replaced by another.
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

// diagnose returns the most specific reason of all pods.
func diagnose(pods []Pod) (d Diagnosis) {
	for _, r := range reasons {
		for i := range pods {
			p := &pods[i]
			why := r.find(*p)
			if why == "" {
				continue
			}
			d.Why, d.Pod, d.Blocked = "pod "+p.Metadata.Name+why, p.Metadata.Name, p.blocked()
			if r.vague {
				d.Waiting = p
			}
			return d
		}
	}
	return d
}

// reasons find why a pod does not run, the most specific first. The vague ones leave open what it
// waits for.
var reasons = []struct {
	find  func(Pod) string
	vague bool
}{
	{inContainers(refused), false}, {unscheduled, true}, {inContainers(ended), false}, {failed, false}, {inContainers(unready), false},
	{inContainers(starting), true}, {pending, true},
}

// blocked reports whether something is known to keep the pod from starting for the first time.
func (p *Pod) blocked() bool {
	return p.Unscheduled() || slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(c containerStatus) bool {
		return refused(c) != "" && c.State.Waiting.Reason != "CrashLoopBackOff" && c.RestartCount == 0
	})
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

// refused returns why a container is not started.
func refused(c containerStatus) string {
	w := c.State.Waiting
	if w == nil || w.Reason == "" || isStarting(w.Reason) {
		return ""
	}
	if t := c.LastState.Terminated; t != nil && w.Reason == "CrashLoopBackOff" {
		return w.Reason + t.code()
	}
	return withMessage(w.Reason, w.Message)
}

// ended returns why a container has ended unexpectedly.
func ended(c containerStatus) string {
	t := c.State.Terminated
	if t == nil || t.ExitCode == 0 {
		return ""
	}
	return "Terminated" + t.code()
}

// code returns the exit code, and the reason if it says more.
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
			return ": " + withMessage("Pending", cmp.Or(c.Message, c.Reason))
		}
	}
	return ""
}

// pending returns that a pod has not started, which is all that is known if no kubelet has taken it.
func pending(p Pod) string {
	if p.Status.Phase != "Pending" {
		return ""
	}
	return ": Pending"
}

func failed(p Pod) string {
	if p.Status.Phase != "Failed" {
		return ""
	}
	return ": " + withMessage(cmp.Or(p.Status.Reason, p.Status.Phase), p.Status.Message)
}

// maxKept is the maximum length in bytes of a message of a kubelet, scheduler or controller
// before secrets are masked.
const maxKept = 4 << 10

// Cut shortens a text to at most most bytes.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// OneLine returns a message on one line, and shortens one that is very long.
func OneLine(message string) string { return Cut(strings.Join(strings.Fields(message), " "), maxKept) }

// withMessage returns a reason, followed by a message on the same line.
func withMessage(reason, message string) string {
	return strings.TrimSuffix(reason+": "+OneLine(message), ": ")
}
