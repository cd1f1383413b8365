package check

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A renderer prints a plan as documents.
type renderer struct {
	cluster    string // empty for all
	secrets    bool   // whether to print secret values
	out, notes io.Writer
	snapshot   *hub.Snapshot

	masked int
	failed bool
}

// clusters are the names of the clusters to render, in order.
func (r *renderer) clusters(p *plan.Plan) ([]string, error) {
	var names []string
	for _, m := range p.Members {
		names = append(names, m.Name)
	}
	if err := lookup.Name("MemberCluster", r.cluster, names); err != nil {
		return nil, err
	}
	if r.cluster != "" {
		names = []string{r.cluster}
	}
	return names, nil
}

// finish reports what was left out.
func (r *renderer) finish(p *plan.Plan) error {
	offline.PrintUnknownSelections(r.notes, p)
	if r.masked > 0 {
		fmt.Fprintf(r.notes, "values of Secrets are masked in %s; --show-secrets prints them\n", output.Count(r.masked, "document"))
	}
	if r.failed {
		return exit.Failed
	}
	return nil
}

// invalid reports placements that select nothing since they are invalid.
func (r *renderer) invalid(p *plan.Plan) {
	for pl := range p.Placements.Values() {
		if pl.Selection.Invalid != "" {
			r.problem(fmt.Sprintf("%s: %s: %s", pl.Spec.Lines.At(pl.Spec.Origin, pl.Selection.InvalidField), pl.Key, pl.Selection.Invalid))
		}
	}
}

// unrendered reports that a cluster gets no content of a placement.
func (r *renderer) unrendered(p *plan.Placement, c *plan.OnCluster) {
	at, field, _ := forecast.FailingOverride(r.snapshot, c.Err)
	r.problem(problem.Problem{Origin: at, Field: field, Message: fmt.Sprintf("%s gets nothing of %s: %v", c.Binding.Cluster, p.Key, c.Err)}.Error())
}

// problem reports a problem as a comment between the documents, and on standard error.
func (r *renderer) problem(text string) {
	r.failed = true
	fmt.Fprintf(r.out, "# %s\n", output.Escape(text))
	fmt.Fprintln(r.notes, output.Escape(text))
}

// text returns an object as YAML, without secret values unless they are to be shown.
func (r *renderer) text(m *work.Manifest) ([]byte, error) {
	object := diff.Normalize(m.Object.Content)
	if !r.secrets {
		// the placeholder is not valid base64, so that no cluster accepts the object
		shown := diff.Redact(object)
		if !reflect.DeepEqual(shown.Object, object.Object) {
			r.masked++
		}
		object = shown
	}
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.ID, err)
	}
	return text, nil
}

// provenance returns the file or position and the placement of a document.
func provenance(from string, p *plan.Placement, m *work.Manifest) string {
	text := fmt.Sprintf("%s, placement %s", from, p.Key)
	if k := m.Origin.Kustomization; k != "" && k != m.Origin.Path {
		text += ", built by " + k
	}
	if e := m.Envelope; e != nil {
		text += fmt.Sprintf(", out of %s %s", e.Type, strings.TrimPrefix(e.Namespace+"/"+e.Name, "/"))
	}
	if p.Spec.Spec.Strategy.ReportsDiff() {
		text += ", compared and never written"
	}
	return text
}
