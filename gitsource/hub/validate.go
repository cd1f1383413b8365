package hub

import (
	"fmt"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The rules of KubeFleet's schema and webhooks for a single manifest. KubeFleet's messages are
// part of the messages here.

func checkPlacement(r *report, it *item, annotations map[string]string, spec *api.PlacementSpec) {
	checkName(r, it.id.Name, "the name field cannot have length exceeding 63")
	checkOnFailure(r, annotations)
	checkAvailableTimeout(r, annotations)
	checkDriftRule(r, annotations)
	checkTerms(r, it, spec)
	between(r, r.field("spec", "revisionHistoryLimit"), *spec.RevisionHistoryLimit, 1, 1000)
	checkPolicy(r, r.field("spec", "policy"), spec.Policy)
	checkStrategy(r, r.field("spec", "strategy"), &spec.Strategy)
	for i := range spec.Policy.ClusterNames {
		it.recordLine(r, r.field("spec", "policy", "clusterNames").at(i))
	}
}

// checkOnFailure refuses invalid values, which would otherwise count as the default.
func checkOnFailure(r *report, annotations map[string]string) {
	value, written := annotations[api.OnFailureAnnotation]
	if written && value != api.OnFailureContinue && value != api.OnFailureStop {
		r.errorf(r.field("metadata", "annotations", api.OnFailureAnnotation), "%q is unknown; write %q, or %q, which is the default", value, api.OnFailureContinue, api.OnFailureStop)
	}
}

// checkAvailableTimeout refuses invalid durations.
func checkAvailableTimeout(r *report, annotations map[string]string) {
	value, written := annotations[api.AvailableTimeoutAnnotation]
	if d, err := time.ParseDuration(value); written && (err != nil || d < 0) {
		r.errorf(r.field("metadata", "annotations", api.AvailableTimeoutAnnotation), "%q is no duration; write one such as %q, or %q for any time", value, "10m", "0s")
	}
}

// checkDriftRule refuses an invalid drift rule.
func checkDriftRule(r *report, annotations map[string]string) {
	if value, written := annotations[api.DriftAnnotation]; written {
		if _, err := api.ParseDriftRule(value); err != nil {
			r.errorf(r.field("metadata", "annotations", api.DriftAnnotation), "%v", err)
		}
	}
}

// checkName applies the rules for names of gitfleet's kinds.
func checkName(r *report, name, tooLong string) {
	p := r.field("metadata", "name")
	if len(name) > 63 {
		r.rulef(p, "%s; it has %d", tooLong, len(name))
		return
	}
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		r.rulef(p, "%q is no valid name: %s", name, msg)
	}
}

func between(r *report, p *fieldPath, value, low, high int32) {
	if value < low || value > high {
		r.rulef(p, "must be between %d and %d, not %d", low, high, value)
	}
}

// count checks the length of a list.
func count(r *report, p *fieldPath, n, low, high int) {
	switch {
	case n < low:
		r.rulef(p, "must have at least %d entry", low)
	case n > high:
		r.rulef(p, "must have at most %d entries, and has %d", high, n)
	}
}

func checkTerms(r *report, it *item, spec *api.PlacementSpec) {
	terms := spec.ResourceSelectors
	at := r.field("spec", "resourceSelectors")
	count(r, at, len(terms), 1, 100)
	for i := range terms {
		checkTerm(r, at.at(i), &terms[i])
		it.recordLine(r, at.at(i).child("kind"))
	}
	checkNamespaceTerms(r, at, terms)
	if it.id.Namespace == "" && spec.StatusReportingScope == api.NamespaceAccessible && ofKind(terms, "Namespace") != 1 {
		r.rulef(r.field("spec", "statusReportingScope"),
			"when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required")
	}
	checkTermScopes(r, at, terms, it.id.Namespace != "")
}

func checkTerm(r *report, p *fieldPath, term *api.ResourceSelectorTerm) {
	if term.Name != "" && term.LabelSelector != nil {
		r.rulef(p, "name and labelSelector are mutually exclusive in a resource selector; remove one of them")
	}
	notEmpty(r, p.child("kind"), term.Kind)
	notEmpty(r, p.child("version"), term.Version)
	checkLabelSelector(r, p.child("labelSelector"), term.LabelSelector, "the labelSelector in resource selector is invalid")
}

func notEmpty(r *report, p *fieldPath, value string) {
	if value == "" {
		r.rulef(p, "must not be empty")
	}
}

func checkLabelSelector(r *report, p *fieldPath, s *metav1.LabelSelector, what string) {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		r.rulef(p, "%s: %v", what, err)
	}
}

func isNamespaceTerm(t api.ResourceSelectorTerm) bool {
	return t.Group == "" && t.Version == "v1" && t.Kind == "Namespace"
}

func ofKind(terms []api.ResourceSelectorTerm, kind string) int {
	n := 0
	for _, t := range terms {
		if t.Kind == kind {
			n++
		}
	}
	return n
}

// withSelectors reports whether the terms select single objects of a namespace.
func withSelectors(terms []api.ResourceSelectorTerm) bool {
	for _, t := range terms {
		if isNamespaceTerm(t) && t.SelectionScope == api.NamespaceWithResourceSelectors {
			return true
		}
	}
	return false
}

func checkNamespaceTerms(r *report, at *fieldPath, terms []api.ResourceSelectorTerm) {
	first := -1
	for i, t := range terms {
		if !isNamespaceTerm(t) || t.SelectionScope != api.NamespaceWithResourceSelectors {
			continue
		}
		if first >= 0 {
			r.rulef(at.at(i), "only one namespace selector with NamespaceWithResourceSelectors mode is allowed")
			continue
		}
		first = i
		if t.Name == "" || t.LabelSelector != nil {
			r.rulef(at.at(i), "namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)")
		}
	}
	for i, t := range terms {
		if first >= 0 && isNamespaceTerm(t) && t.SelectionScope != api.NamespaceWithResourceSelectors {
			r.rulef(at.at(i), "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)")
		}
	}
}

// checkTermScopes refuses kinds that the placement cannot select.
func checkTermScopes(r *report, at *fieldPath, terms []api.ResourceSelectorTerm, inNamespace bool) {
	for i, t := range terms {
		namespaced, known := api.Namespaced(api.GroupKind{Group: t.Group, Kind: t.Kind})
		if msg := scopeFault(terms, t.Kind, namespaced, known, inNamespace); msg != "" {
			r.rulef(at.at(i).child("kind"), "%s", msg)
		}
	}
}

func scopeFault(terms []api.ResourceSelectorTerm, kind string, namespaced, known, inNamespace bool) string {
	switch {
	case known && inNamespace && !namespaced:
		return fmt.Sprintf("%s is a cluster scoped resource, which a ResourcePlacement cannot select; use a ClusterResourcePlacement", kind)
	case known && !inNamespace && namespaced && !withSelectors(terms):
		return fmt.Sprintf("%s is not a cluster scoped resource; select its Namespace by name with selectionScope: NamespaceWithResourceSelectors beside it, or use a ResourcePlacement", kind)
	}
	return ""
}

func checkStrategy(r *report, p *fieldPath, s *api.RolloutStrategy) {
	if s.Type == api.External && s.RollingUpdate != nil {
		r.rulef(p.child("rollingUpdate"), "rollingUpdateConifg is not valid for ExternalRollout strategy type; remove it")
	}
	if s.RollingUpdate != nil {
		checkRollingUpdate(r, p.child("rollingUpdate"), s.RollingUpdate)
	}
	if a := s.ApplyStrategy; a.ServerSideApplyConfig != nil && a.Type != api.ServerSideApply {
		r.rulef(p.child("applyStrategy", "serverSideApplyConfig"), "serverSideApplyConfig is only valid for ServerSideApply strategy type; remove it, or write type: ServerSideApply")
	}
	checkReportBack(r, p.child("reportBackStrategy"), s.ReportBackStrategy)
}

func checkReportBack(r *report, p *fieldPath, s *api.ReportBackStrategy) {
	switch {
	case s == nil || s.Type != api.ReportBackMirror:
	case s.Destination == nil:
		r.rulef(p.child("destination"), "when reportBackStrategy.type is 'Mirror', a destination must be specified")
	case *s.Destination == api.ReportBackOriginalResource:
		r.warnf(p.child("destination"), "OriginalResource has no effect: a Git repository has no object to write the status to; use WorkAPI, or remove reportBackStrategy")
	}
}

func checkRollingUpdate(r *report, p *fieldPath, u *api.RollingUpdateConfig) {
	ok := checkAmount(r, p, "maxUnavailable", u.MaxUnavailable)
	ok = checkAmount(r, p, "maxSurge", u.MaxSurge) && ok
	if n := *u.UnavailablePeriodSeconds; n < 0 {
		r.rulef(p.child("unavailablePeriodSeconds"), "unavailablePeriodSeconds must be greater than or equal to 0, got %d", n)
	}
	switch {
	case !ok || !isZero(u.MaxUnavailable):
	case isZero(u.MaxSurge):
		r.rulef(p, "maxUnavailable and maxSurge are both 0, so nothing could ever be rolled out; raise one of them, for example maxUnavailable: 1")
	default:
		r.warnf(p.child("maxUnavailable"), "0 lets no update reach a cluster that is available: maxSurge lets clusters be added, and updates none; write 1 or more")
	}
}

var percentage = regexp.MustCompile(`^(100|[0-9]{1,2})%$`)

func checkAmount(r *report, p *fieldPath, name string, v *intstr.IntOrString) bool {
	switch {
	case v.Type == intstr.String && !percentage.MatchString(v.StrVal):
		r.rulef(p.child(name), "%s `%s` is invalid: write a whole number without quotes, or a percentage from 0%% to 100%%", name, v.StrVal)
	case v.Type == intstr.Int && v.IntVal < 0:
		r.rulef(p.child(name), "%s must be greater than or equal to 0, got `%d`", name, v.IntVal)
	default:
		return true
	}
	return false
}

func isZero(v *intstr.IntOrString) bool {
	return v.String() == "0" || v.String() == "0%" || v.String() == "00%"
}
