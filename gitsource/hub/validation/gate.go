package validation

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
)

// The limits of gates.
const (
	// longestGate is the longest time that a gate may ask for.
	longestGate = 366 * 24 * time.Hour
	// shortestInterval is the shortest time between two questions.
	shortestInterval = 5 * time.Second
	longestQuery     = 4 << 10
)

// CheckGate validates a RolloutGate.
func CheckGate(r *document.Report, id api.ID, spec *api.RolloutGateSpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	kinds := 0
	if spec.Soak != nil {
		kinds++
		checkGateTime(r, r.Field("spec", "soak", "duration"), spec.Soak.Duration, time.Second)
	}
	if spec.Prometheus != nil {
		kinds++
		checkPrometheusGate(r, r.Field("spec", "prometheus"), spec.Prometheus)
	}
	if spec.HTTP != nil {
		kinds++
		checkHTTPGate(r, r.Field("spec", "http"), spec.HTTP)
	}
	if spec.Objects != nil {
		kinds++
		checkObjectsGate(r, r.Field("spec", "objects"), spec.Objects)
	}
	switch kinds {
	case 0:
		r.Rulef(r.Field("spec"), "says nothing that has to pass; write soak, prometheus, http or objects")
	case 1:
	default:
		r.Rulef(r.Field("spec"), "says several things that have to pass; write a gate for each, and a task for each gate")
	}
}

// checkGateTime validates a time that something of a gate takes.
func checkGateTime(r *document.Report, at *document.FieldPath, text string, shortest time.Duration) {
	if d, err := time.ParseDuration(text); err != nil || d < shortest || d > longestGate {
		r.Rulef(at, "%q is not a duration from %s to 366 days; write for example 30m or 24h", text, shortest)
	}
}

func checkPrometheusGate(r *document.Report, at *document.FieldPath, g *api.PrometheusGate) {
	checkGateAddress(r, at.Child("address"), g.Address)
	notEmpty(r, at.Child("query"), g.Query)
	if len(g.Query) > longestQuery {
		r.Rulef(at.Child("query"), "has %d bytes, more than %d; make it a recording rule", len(g.Query), longestQuery)
	}
	if _, err := api.ParseThreshold(g.Condition); err != nil {
		r.Rulef(at.Child("condition"), "%v", err)
	}
	checkGateSchedule(r, at, &g.GateSchedule)
}

func checkHTTPGate(r *document.Report, at *document.FieldPath, g *api.HTTPGate) {
	checkGateAddress(r, at.Child("url"), g.URL)
	if g.Status != 0 && (g.Status < 200 || g.Status > 599) {
		r.Rulef(at.Child("status"), "%d is not a status code from 200 to 599", g.Status)
	}
	if g.Condition != "" {
		if _, err := expression.CompileResponse(g.Condition); err != nil {
			r.Rulef(at.Child("condition"), "%v; write for example response.body.ready == true", err)
		}
	}
	checkGateSchedule(r, at, &g.GateSchedule)
}

func checkObjectsGate(r *document.Report, at *document.FieldPath, g *api.ObjectsGate) {
	gv, err := schema.ParseGroupVersion(g.APIVersion)
	if err != nil || gv.Version == "" {
		r.Rulef(at.Child("apiVersion"), "%q is not an API version; write for example apps/v1", g.APIVersion)
	}
	notEmpty(r, at.Child("kind"), g.Kind)
	if gv.Group == "" && g.Kind == "Secret" {
		r.Rulef(at.Child("kind"), "a gate does not read Secrets, since what it answers is shown; look at an object that uses it")
	}
	if _, err := expression.CompileGate(g.Condition); err != nil {
		r.Rulef(at.Child("condition"), "%v; write for example object.status.readyReplicas == object.spec.replicas", err)
	}
	checkGateSchedule(r, at, &g.GateSchedule)
}

// checkGateAddress validates the address of a server, whose line is needed to compare it with the configuration.
func checkGateAddress(r *document.Report, at *document.FieldPath, address string) {
	if err := api.CheckAddress(address); err != nil {
		r.Rulef(at, "%v", err)
	}
	r.RecordLine(at)
}

func checkGateSchedule(r *document.Report, at *document.FieldPath, s *api.GateSchedule) {
	if s.Interval != "" {
		checkGateTime(r, at.Child("interval"), s.Interval, shortestInterval)
	}
	if s.Duration != "" {
		checkGateTime(r, at.Child("duration"), s.Duration, time.Second)
	}
	if s.ToleratedFailures < 0 {
		r.Rulef(at.Child("toleratedFailures"), "must be 0 or more")
	}
}
