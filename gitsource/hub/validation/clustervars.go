package validation

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// CheckClusterVars validates the values of variables.
func CheckClusterVars(r *document.Report, id api.ID, spec *api.ClusterVarsSpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	checkVars(r, r.Field("spec", "vars"), spec.Vars)
	for i, rule := range spec.Clusters {
		p := r.Field("spec", "clusters").At(i)
		checkVars(r, p.Child("vars"), rule.Vars)
		if len(rule.Names) == 0 && rule.LabelSelector == nil {
			r.Rulef(p, "is for no cluster; write names or labelSelector")
		}
		if _, err := metav1.LabelSelectorAsSelector(rule.LabelSelector); err != nil {
			r.Rulef(p.Child("labelSelector"), "%v", err)
		}
	}
}

func checkVars(r *document.Report, p *document.FieldPath, vars map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if name == "" || strings.ContainsAny(name, "{}:$ \t\r\n") {
			r.Rulef(p, "%q cannot be the name of a variable, which is written ${vars.NAME}", name)
		}
		if len(vars[name]) > api.LargestVariable {
			r.Rulef(p.Child(name), "a value may have at most %d KiB; put more into a ConfigMap", api.LargestVariable>>10)
		}
	}
}
