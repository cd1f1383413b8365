package health

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

func service(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	switch typ := get[string](&f, "spec", "type"); typ {
	case "", "ClusterIP", "NodePort":
		// "None" is the clusterIP of a headless service
		ips := get[[]any](&f, "spec", "clusterIPs")
		return f.first(messageIf(len(ips) == 0 || ips[0] == "", "no cluster IP assigned"))
	case "LoadBalancer":
		ingress := get[[]any](&f, "status", "loadBalancer", "ingress")
		return f.first(messageIf(len(ingress) == 0 || !hasAddress(ingress[0]), "no load balancer address assigned"))
	default: // a service of type ExternalName needs nothing
		return Health{State: NotTrackable}
	}
}

func hasAddress(ingress any) bool {
	m, _ := ingress.(map[string]any)
	ip, _ := m["ip"].(string)
	host, _ := m["hostname"].(string)
	return ip != "" || host != ""
}

func definition(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	established, accepted := f.condition("Established"), f.condition("NamesAccepted")
	h := f.first(
		messageIf(accepted.Status != "True", "names not accepted%s", accepted.why()),
		messageIf(established.Status != "True", "not established%s", established.why()),
	)
	if h.State == NotAvailableYet && accepted.Status == "False" {
		h.Failure = h.Message
	}
	return h
}

func disruptionBudget(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	allowed, c := f.status("disruptionsAllowed"), f.condition("DisruptionAllowed")
	want := condition{Status: "False", Reason: "InsufficientPods"}
	if allowed > 0 {
		want = condition{Status: "True", Reason: "SufficientPods"}
	}
	return f.first(
		f.observed(),
		messageIf(c.Status == "", "no condition DisruptionAllowed yet"),
		messageIf(c.Generation != live.GetGeneration(), "condition DisruptionAllowed is of generation %d, not %d", c.Generation, live.GetGeneration()),
		messageIf(c.Status != want.Status || c.Reason != want.Reason,
			"condition DisruptionAllowed is %s/%s with %d disruptions allowed", c.Status, c.Reason, allowed),
	)
}

func deployment(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	want := f.replicas()
	replicas, updated, available := f.status("replicas"), f.status("updatedReplicas"), f.status("availableReplicas")
	unavailable, refused := f.status("unavailableReplicas"), ""
	if c := f.condition("ReplicaFailure"); c.Status == "True" {
		refused = c.why() // pods that do not exist have no reason
	}
	progressing := f.condition("Progressing")
	h := f.first(
		f.observed(),
		messageIf(updated != want, "%d of %d replicas updated%s", updated, want, refused),
		messageIf(available != want, "%d of %d replicas available%s", available, want, refused),
		messageIf(unavailable != 0, "unavailable replicas: %d", unavailable),
		messageIf(replicas > updated, "replicas of an earlier version that are still there: %d", replicas-updated), // and may be those that are available
	)
	if h.State == NotAvailableYet && !h.Unseen && progressing.Status == "False" && progressing.Reason == "ProgressDeadlineExceeded" {
		h.Failure = withMessage(progressing.Reason, progressing.Message)
	}
	return h
}

// job judges a Job: only one that has failed can be judged, others are not trackable.
func job(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	failed, complete, suspended := f.condition("Failed"), f.condition("Complete"), get[bool](&f, "spec", "suspend")
	begun := f.status("ready") + f.status("succeeded") + f.status("failed")
	switch {
	case f.err != nil:
		return Health{State: NotTrackable}
	case failed.Status == "True":
		return Health{State: NotAvailableYet, Message: "the Job failed" + failed.why(), Failure: "the Job failed" + failed.why()}
	}
	return Health{State: NotTrackable, Message: messageIf(begun == 0 && complete.Status != "True" && !suspended, "no pod of the Job has started")}
}

// cronJob returns the health of a CronJob: it is not trackable. The message names its unfinished Jobs, whose
// pods may be unable to start. Jobs from before the CronJob was last applied say nothing about it as it is now.
func cronJob(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	var applied time.Time
	for _, e := range live.GetManagedFields() {
		if e.Manager == api.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.Time != nil {
			applied = e.Time.Time
		}
	}
	var names []string
	for _, active := range get[[]any](&f, "status", "active") {
		reference, _ := active.(map[string]any)
		name, _ := reference["name"].(string)
		if at, known := scheduled(live.GetName(), name); !known || at.After(applied) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return Health{State: NotTrackable, Message: messageIf(len(names) > 0 && f.err == nil, "its Job %s has not finished", strings.Join(names, ", "))}
}

// scheduled returns the time for which a CronJob has created a Job, which the name of the Job has in minutes.
func scheduled(cronJob, job string) (at time.Time, known bool) {
	minutes, err := strconv.ParseInt(strings.TrimPrefix(job, cronJob+"-"), 10, 64)
	return time.Unix(60*minutes, 0), err == nil
}

// replicaSet judges a ReplicaSet or ReplicationController: it is not trackable unless pods cannot be
// created.
func replicaSet(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	want, available, refused := f.replicas(), f.status("availableReplicas"), f.condition("ReplicaFailure")
	switch {
	case f.err != nil || available >= want:
		return Health{State: NotTrackable}
	case refused.Status == "True":
		return Health{State: NotAvailableYet, Message: fmt.Sprintf("%d of %d replicas available%s", available, want, refused.why())}
	}
	return Health{State: NotTrackable, Message: fmt.Sprintf("%d of %d replicas available", available, want)}
}

// claim judges a PersistentVolumeClaim, which is not trackable: it may wait for its first pod. While
// it is pending it may be blocked.
func claim(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	return Health{State: NotTrackable, Message: messageIf(f.text("phase") == "Pending" && f.err == nil, "it is pending")}
}

// pod judges a Pod, which is not trackable. While it is pending it may be blocked.
func pod(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	return Health{State: NotTrackable, Message: messageIf(f.text("phase") == "Pending" && f.err == nil, "the Pod has not started")}
}

func statefulSet(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	want := f.replicas()
	available, current, updated := f.status("availableReplicas"), f.status("currentReplicas"), f.status("updatedReplicas")
	from, to := f.text("currentRevision"), f.text("updateRevision")
	return f.first(
		f.observed(),
		messageIf(available != want, "%d of %d replicas available", available, want),
		messageIf(current != updated, "%d replicas current, %d updated", current, updated),
		messageIf(from != to, "moving from revision %q to %q", from, to),
	)
}

func daemonSet(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	want, available := f.status("desiredNumberScheduled"), f.status("numberAvailable")
	scheduled, updated := f.status("currentNumberScheduled"), f.status("updatedNumberScheduled")
	return f.first(
		f.observed(),
		messageIf(available != want, "%d of %d nodes have an available pod", available, want),
		messageIf(updated != scheduled, "%d of %d scheduled pods updated", updated, scheduled),
	)
}
