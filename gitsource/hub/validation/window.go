package validation

import (
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/window"
)

// CheckWindow validates a RolloutWindow, and returns it compiled; nil if it is invalid.
func CheckWindow(r *document.Report, id api.ID, spec *api.RolloutWindowSpec) *window.Window {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	w, faults := window.Compile(id.Name, spec)
	for _, f := range faults {
		p := r.Field("spec")
		if f.Path != "" {
			p = p.Child(f.Path)
		}
		if f.Index >= 0 {
			p = p.At(f.Index).Child(f.Field)
		}
		r.Rulef(p, "%s", f.Message)
	}
	if len(faults) > 0 {
		return nil
	}
	for _, selector := range []string{"placementSelector", "clusterSelector"} {
		r.RecordLine(r.Field("spec", selector))
	}
	return w
}
