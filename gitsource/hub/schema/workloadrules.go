package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

func init() {
	rules[reflect.TypeFor[appsv1.DeploymentSpec]()] = checkDeployment
	rules[reflect.TypeFor[appsv1.ReplicaSetSpec]()] = checkWorkload
	rules[reflect.TypeFor[appsv1.StatefulSetSpec]()] = checkWorkload
	rules[reflect.TypeFor[appsv1.DaemonSetSpec]()] = checkWorkload
	rules[reflect.TypeFor[batchv1.JobSpec]()] = checkJob
	rules[reflect.TypeFor[batchv1.CronJobSpec]()] = checkCronJob
	of(func(c *comparison, update *appsv1.RollingUpdateDeployment, p *document.FieldPath) {
		checkShare(c, update.MaxSurge, p.Child("maxSurge"))
		checkShare(c, update.MaxUnavailable, p.Child("maxUnavailable"))
	})
	of(func(c *comparison, update *appsv1.RollingUpdateDaemonSet, p *document.FieldPath) {
		checkShare(c, update.MaxSurge, p.Child("maxSurge"))
		checkShare(c, update.MaxUnavailable, p.Child("maxUnavailable"))
	})
	of(func(c *comparison, update *appsv1.RollingUpdateStatefulSetStrategy, p *document.FieldPath) {
		checkShare(c, update.MaxUnavailable, p.Child("maxUnavailable"))
	})
}

// checkWorkload checks the selector of a workload against the labels of its Pods.
func checkWorkload(c *comparison, spec map[string]any, p *document.FieldPath) {
	countsNotNegative(c, spec, p, "replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
	checkRestartPolicy(c, spec, p, "Always")
	switch selector := spec["selector"].(type) {
	case nil:
		c.missing(p.Child("selector"), "add the labels of the Pods")
	case map[string]any:
		var typed metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed) != nil {
			return
		}
		matcher, err := metav1.LabelSelectorAsSelector(&typed)
		podLabels, _, _ := unstructured.NestedStringMap(spec, "template", "metadata", "labels")
		switch {
		case err != nil: // reported for the selector itself
		case matcher.Empty():
			c.report(p.Child("selector"), "must not be empty; add the labels of the Pods")
		case !matcher.Matches(labels.Set(podLabels)):
			c.report(p.Child("template", "metadata", "labels"), "do not match the selector; make the labels and the selector the same")
		}
	}
}

func checkDeployment(c *comparison, spec map[string]any, p *document.FieldPath) {
	checkWorkload(c, spec, p)
	strategy, _ := spec["strategy"].(map[string]any)
	if strategy["type"] == string(appsv1.RecreateDeploymentStrategyType) && strategy["rollingUpdate"] != nil {
		c.report(p.Child("strategy", "rollingUpdate"), "not allowed with the type Recreate; remove it")
	}
	isZero := func(v any) bool { return v == int64(0) || v == "0%" }
	if update, _ := strategy["rollingUpdate"].(map[string]any); isZero(update["maxSurge"]) && isZero(update["maxUnavailable"]) {
		c.report(p.Child("strategy", "rollingUpdate"), "maxSurge and maxUnavailable must not both be zero")
	}
}

func checkJob(c *comparison, spec map[string]any, p *document.FieldPath) {
	countsNotNegative(c, spec, p, "parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds")
	checkRestartPolicy(c, spec, p, "OnFailure", "Never")
}

func checkCronJob(c *comparison, spec map[string]any, p *document.FieldPath) {
	countsNotNegative(c, spec, p, "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
	switch schedule := spec["schedule"].(type) {
	case nil:
		c.missing(p.Child("schedule"), "add it")
	case string:
		if !isSchedule(schedule) {
			c.report(p.Child("schedule"), fmt.Sprintf("%q is not a schedule; write five fields such as 0 3 * * 1, or a word such as @daily", schedule))
		}
	}
}

// isSchedule reports whether a schedule has the form of one; it does not know all rules.
func isSchedule(s string) bool {
	if rest, isWord := strings.CutPrefix(strings.TrimSpace(s), "@"); isWord {
		return strings.HasPrefix(rest, "every ") || slices.Contains([]string{"yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"}, rest)
	}
	fields := strings.Fields(s)
	if len(fields) > 0 && (strings.HasPrefix(fields[0], "TZ=") || strings.HasPrefix(fields[0], "CRON_TZ=")) {
		return false // Kubernetes has the field timeZone for that
	}
	malformed := func(field string) bool {
		return strings.ContainsFunc(field, func(r rune) bool { return !strings.ContainsRune("*/,-?", r) && !isASCIIAlphanumeric(r) })
	}
	return len(fields) == 5 && !slices.ContainsFunc(fields, malformed)
}

func isASCIIAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// checkRestartPolicy checks the restart policy of the Pods; Always is the default.
func checkRestartPolicy(c *comparison, spec map[string]any, p *document.FieldPath, allowed ...string) {
	if _, there := spec["template"].(map[string]any); !there {
		c.missing(p.Child("template"), "add it")
		return
	}
	policy, _, _ := unstructured.NestedString(spec, "template", "spec", "restartPolicy")
	if policy == "" {
		policy = "Always"
	}
	if !slices.Contains(allowed, policy) {
		c.report(p.Child("template", "spec", "restartPolicy"), fmt.Sprintf("must be %s here, not %s", strings.Join(allowed, " or "), policy))
	}
}

func countsNotNegative(c *comparison, spec map[string]any, p *document.FieldPath, fields ...string) {
	for _, name := range fields {
		if n, isNumber := spec[name].(int64); isNumber {
			notNegative(c, &n, p.Child(name))
		}
	}
}
