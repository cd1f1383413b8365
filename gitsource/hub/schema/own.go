package schema

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

func newOwnRules(r *document.Report, gvk schema.GroupVersionKind) *ownRules {
	own := &ownRules{newest: schema.GroupVersion{Group: gvk.Group, Version: "v1beta1"}.String()}
	at := indexes.ReplaceAllString(r.Object.String(), "[]")
	for _, f := range api.ManifestKinds[gvk.GroupKind()].Lacks[gvk.Version] {
		own.absent = append(own.absent, strings.TrimPrefix(at+"."+f, "."))
	}
	return own
}

// indexes are those of items in a path.
var indexes = regexp.MustCompile(`\[\d+\]`)

// lacks reports whether the API version does not have a field.
func (o *ownRules) lacks(p *document.FieldPath) bool {
	return o != nil && len(o.absent) > 0 && slices.Contains(o.absent, indexes.ReplaceAllString(p.String(), "[]"))
}

// correct corrects frequent mistakes of public samples, with a warning. It also returns the
// shape of the value, which is stricter for enumerations.
func (c *comparison) correct(v any, t goType, is shape, p *document.FieldPath) (any, shape) {
	list, _ := v.([]any)
	m, isMap := v.(map[string]any)
	switch t.Type {
	case reflect.TypeFor[api.ClusterSelectorTerm]():
		if len(list) == 1 && p.IsField("preference") {
			c.r.Warnf(p, "is a mapping, not a list; remove the dash in front of it")
			return list[0], is
		}
	case reflect.TypeFor[[]api.PreferredClusterSelector]():
		if isMap {
			c.r.Warnf(p, "is a list of {weight, preference}; write a dash in front of this one")
			return []any{m}, is
		}
	case reflect.TypeFor[api.ApplyStrategy]():
		c.correctComparisonOption(m, p)
	}
	allowed, isEnum := enums[t.Type]
	if !isEnum {
		return v, is
	}
	word, _ := v.(string)
	for _, a := range allowed {
		if word != a && upperFirst(word) == upperFirst(a) {
			c.r.Warnf(p, "%q is written %s", word, a)
			v = a
		}
	}
	return v, shape{fault: func(v any) string { return enumFault(v, allowed) }}
}

// correctComparisonOption accepts the field as KubeFleet's public documentation spells it.
func (c *comparison) correctComparisonOption(m map[string]any, p *document.FieldPath) {
	plural, there := m["comparisonOptions"]
	if !there {
		return
	}
	delete(m, "comparisonOptions")
	singular, both := m["comparisonOption"]
	if both && !sameWord(plural, singular) {
		c.r.Errorf(p.Child("comparisonOptions"), "contradicts comparisonOption, which is the right spelling; remove comparisonOptions")
		return
	}
	c.r.Warnf(p.Child("comparisonOptions"), "the right spelling is comparisonOption")
	if !both {
		m["comparisonOption"] = plural
	}
}

func sameWord(a, b any) bool {
	x, ok := a.(string)
	y, ok2 := b.(string)
	return ok && ok2 && upperFirst(x) == upperFirst(y)
}

// required reports the required fields that are missing.
func (c *comparison) required(m map[string]any, fields structFields, at *document.FieldPath) {
	if at.IsField("clusterSelector") {
		return // an empty selector of an override selects every cluster
	}
	for _, f := range fields {
		if p := at.Child(f.name); f.required && m[f.name] == nil && !c.r.IsMuted(p.String()) {
			c.report(p, "required, and missing; add it")
		}
	}
}

func init() {
	enum(api.PickAll, api.PickN, api.PickFixed)
	enum(api.NamespaceOnly, api.NamespaceWithResources, api.NamespaceWithResourceSelectors)
	enum(api.ClusterScopeOnly, api.NamespaceAccessible)
	enum(api.TolerationEqual, api.TolerationExists)
	enum(api.NoSchedule)
	enum(api.DoNotSchedule, api.ScheduleAnyway)
	enum(api.Ascending, api.Descending)
	enum(api.PropertyGreaterThan, api.PropertyGreaterThanOrEqualTo, api.PropertyEqualTo,
		api.PropertyNotEqualTo, api.PropertyLessThan, api.PropertyLessThanOrEqualTo)
	enum(api.RollingUpdate, api.External)
	enum(api.PartialComparison, api.FullComparison)
	enum(api.ApplyAlways, api.ApplyIfNotDrifted)
	enum(api.ClientSideApply, api.ServerSideApply, api.ReportDiff)
	enum(api.TakeOverAlways, api.TakeOverIfNoDiff, api.TakeOverNever)
	enum(api.DeletePropagationDelete, api.DeletePropagationAbandon)
	enum(api.ReportBackDisabled, api.ReportBackMirror)
	enum(api.ReportBackOriginalResource, api.ReportBackWorkAPI)
	enum(api.DeleteValidationSkip, api.DeleteValidationStrict)
	enum(api.OverrunFinish, api.OverrunStop)
	enum(api.ClusterScoped, api.NamespaceScoped)
	enum(api.WhenMissingFail, api.WhenMissingIgnore)
	enum(api.HooksRun, api.HooksFail, api.HooksIgnore)
	enum(api.TimedWait, api.ApprovalTask, api.GateTask)
	enum(api.RunInitialize, api.RunRun, api.RunStop)
	enum(api.JSONPatchOverrideType, api.DeleteOverrideType)
	enum(api.JSONPatchAdd, api.JSONPatchRemove, api.JSONPatchReplace, api.JSONPatchTest)
	enum(metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
}
