package chart

import (
	"cmp"
	"encoding/hex"
	"hash"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// LeftOut returns a function that reports whether an object of a chart is not placed: a hook of Helm that is not run.
func LeftOut(policy api.HookPolicy) func(map[string]any) bool {
	return func(object map[string]any) bool {
		hooks := api.HelmHooks(object)
		_, around := api.HookOf(object)
		return len(hooks) > 0 && !slices.Contains(hooks, "crd-install") && (!around || policy != api.HooksRun)
	}
}

// LeaveOut reports whether an object of a chart is not placed, and reports a hook that the chart may rely on.
func LeaveOut(r *document.Report, object map[string]any, policy api.HookPolicy) bool {
	var others []string
	for _, hook := range api.HelmHooks(object) {
		if !slices.Contains(slices.Concat(knownHooks, testHooks), hook) {
			others = append(others, hook)
		}
	}
	_, around := api.HookOf(object)
	left := LeftOut(policy)(object)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	switch {
	case around && policy == api.HooksFail:
		r.Errorf(nil, "%s is a hook (%s), which hooks: %s refuses; turn it off by a value of the chart, or write hooks: %s or %s",
			name, strings.Join(api.HelmHooks(object), ", "), policy, api.HooksRun, api.HooksIgnore)
	case len(others) > 0 && left:
		r.Warnf(nil, "left out: %s is a hook for %s, which is not supported", name, strings.Join(others, ", "))
	case len(others) > 0:
		r.Warnf(nil, "%s is a hook for %s as well, which is not supported", name, strings.Join(others, ", "))
	}
	return left
}

// knownHooks are the hooks that are applied, and testHooks those that are left out.
var (
	knownHooks = []string{"pre-install", "pre-upgrade", "post-install", "post-upgrade", "crd-install"}
	testHooks  = []string{"test", "test-success", "test-failure"}
)

// hookTTL is how long the Job of a hook stays after its end, in seconds, if it does not say so itself.
const hookTTL = 24 * 3600

// PrepareHook gives the Job of a hook a name of its own for each content of the chart, so that it runs again with each of them: what a
// Job runs cannot be changed. One for the installation alone keeps its name.
func PrepareHook(r *document.Report, object map[string]any, content string) {
	hook, is := api.HookOf(object)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	prefix, _ := metadata["generateName"].(string)
	switch kind := object["kind"]; {
	case !is || metadata == nil:
		return
	case kind == "Pod" && object["apiVersion"] == "v1":
		r.Errorf(nil, "%s is a Pod that is a hook, and only Jobs are run as hooks; make it a Job, or write hooks: %s, which is skipHooks: true in a kustomization", cmp.Or(name, prefix), api.HooksIgnore)
		return
	case kind != "Job":
		return
	}
	if name == "" {
		name = strings.TrimRight(prefix, "-.")
		delete(metadata, "generateName")
	}
	if !hook.Once() {
		name = strings.TrimRight(name[:min(len(name), longestHook)], "-.") + "-" + content
	}
	metadata["name"] = name
	if spec, is := object["spec"].(map[string]any); is && spec["ttlSecondsAfterFinished"] == nil {
		spec["ttlSecondsAfterFinished"] = int64(hookTTL)
	}
}

// contentLength is the length of what identifies the content of a chart in the names of its hooks. Pods have the name of their Job as
// a label, which has 63 characters at most.
const (
	contentLength = 8
	longestHook   = 63 - 1 - contentLength
)

// ContentName returns what identifies the content of a chart in the names of its hooks, from the hash of the content.
func ContentName(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:contentLength] }

// Keep adds gitfleet's annotation against pruning to an object that has Helm's resource policy keep.
func Keep(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations["helm.sh/resource-policy"] == "keep" && annotations[api.PruneAnnotation] == nil {
		annotations[api.PruneAnnotation] = api.PruneDisabled
	}
}
